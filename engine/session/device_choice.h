/*
 * Chooses the devices of an operation: parses and checks the request and creates devices with
 * memory of their own. engine/ implements no such devices; the caller supplies a maker.
 */
#ifndef SLC_ENGINE_DEVICE_CHOICE_H
#define SLC_ENGINE_DEVICE_CHOICE_H

#include "base/device.h"
#include "engine/plan/plan.h"
#include "storage/manifest/store.h"

enum slc_device_kind {
    SLC_DEVICE_CPU,
    SLC_DEVICE_AUTO, /* a GPU if there is one and nothing requested needs the CPU */
    SLC_DEVICE_GPU
};

enum { SLC_DEVICE_NUMBERS_MAX = 16 };

/* How work is split. */
struct slc_split_wish {
    bool given;
    enum slc_split between;        /* between several devices, if `hybrid` is SLC_HYBRID_NONE */
    struct slc_hybrid_wish hybrid; /* between the CPU and one GPU */
};

/* Parses "partitions" or "nnz" (only if `several`), "static=F", "adaptive" or "queue"; NULL: no
 * split was requested. Errors: SLC_ERR_USAGE, listing the accepted forms. */
enum slc_status slc_split_wish_parse(const char *text,
                                     bool several,
                                     struct slc_split_wish *split,
                                     struct slc_error *err) SLC_NODISCARD;

/* The request, with members named like the options of the command. All of it is borrowed. */
struct slc_device_wish {
    enum slc_device_kind kind;
    uint64_t memory_bytes; /* memory of each GPU; 0: most of its free memory */
    unsigned streams;      /* streams of each GPU; 0: chosen by the plan */
    struct slc_split_wish split;
    /* For the CPU, a single number: the number of devices; 0: none. For GPUs, their ordinals; if
     * there are none, the first GPU is used. */
    unsigned count;
    uint64_t number[SLC_DEVICE_NUMBERS_MAX];
    bool any_layouts; /* layouts were not set, so devices read the layouts that they divide */
    /* Chip of GPUs that are described but not opened, for plans only; NULL: the GPUs of the
     * machine. */
    const char *chip;
    bool plan_only; /* nothing will be computed */
};

/* The chip that is described by default. */
#define SLC_DEVICE_CHIP "h100"

/* The devices that were created. */
struct slc_device_set {
    const struct slc_device_maker *maker;
    struct slc_device *devices[SLC_DEVICE_NUMBERS_MAX];
    unsigned ordinals[SLC_DEVICE_NUMBERS_MAX];
    unsigned count; /* 0: the CPU computes */
    bool described; /* the devices cannot be opened */
};

/*
 * Fills in the parts of a plan request that follow from the devices: their number, the split, and
 * the layouts needed for the modes in the set `modes`. Errors: SLC_ERR_USAGE for options that
 * conflict, or for a layout that the store does not have.
 */
enum slc_status slc_device_wish_apply(const struct slc_device_wish *wish,
                                      const struct slc_store *store,
                                      uint32_t modes,
                                      struct slc_plan_request *request,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Creates the requested devices, or one device if none are named; set->count is 0 for the CPU.
 * SLC_DEVICE_AUTO chooses the CPU if there is no other device, or if the wish or the request (which
 * may be NULL) needs the CPU; `why` then states the reason.
 *
 * For a plan (wish->plan_only), devices are only described if the wish names a chip. With
 * SLC_DEVICE_GPU, devices of SLC_DEVICE_CHIP are also described if the machine has no device and
 * the wish sets the memory size to plan with; `why` then states the driver's reason. Owns: release
 * with slc_device_set_drop. Errors: with SLC_DEVICE_GPU those of the maker; SLC_ERR_USAGE for
 * options of GPUs if none is requested, and for a chip if something will be computed.
 */
enum slc_status slc_device_set_make(const struct slc_device_wish *wish,
                                    const struct slc_device_maker *maker,
                                    const struct slc_plan_request *request,
                                    struct slc_device_set *set,
                                    struct slc_error *why,
                                    struct slc_error *err) SLC_NODISCARD;

/* Destroys the devices and releases their driver's resources in this process, so that a run can
 * continue without them. Accepts an all-zero set. */
void slc_device_set_drop(struct slc_device_set *set);

/* The device that multiplies tiles (engine/product/products.h). There is at most one. */
struct slc_products_choice {
    struct slc_device_set set;
    struct slc_device *device;     /* NULL: the CPU alone */
    bool optional;                 /* the CPU may compute without the device */
    struct slc_hybrid_wish hybrid; /* split between CPU and device */
    struct slc_error refused;      /* why SLC_DEVICE_AUTO chose the CPU; SLC_OK if it did not */
};

/*
 * Chooses the requested device. Owns: release with slc_products_drop, which accepts an all-zero
 * choice. Errors: those of slc_device_set_make; SLC_ERR_USAGE for a split that shares nothing
 * between CPU and GPU.
 */
enum slc_status slc_products_choose(const struct slc_device_wish *wish,
                                    const struct slc_device_maker *maker,
                                    struct slc_products_choice *choice,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_products_drop(struct slc_products_choice *choice);

#endif
