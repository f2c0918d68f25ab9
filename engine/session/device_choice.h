/*
 * Which devices compute: what is asked for, whether it goes together, and the devices with memory
 * of their own that come of it. engine/ knows none: whoever asks brings what makes them.
 */
#ifndef SLC_ENGINE_DEVICE_CHOICE_H
#define SLC_ENGINE_DEVICE_CHOICE_H

#include "base/device.h"
#include "engine/plan/plan.h"
#include "storage/manifest/store.h"

enum slc_device_kind {
    SLC_DEVICE_CPU,
    SLC_DEVICE_AUTO, /* a GPU, where there is one and nothing that the CPU alone can do is asked */
    SLC_DEVICE_GPU
};

enum { SLC_DEVICE_NUMBERS_MAX = 16 };

/* How work is split. */
struct slc_split_wish {
    bool given;
    enum slc_split between;        /* several devices, if `hybrid` is SLC_HYBRID_NONE */
    struct slc_hybrid_wish hybrid; /* the CPU and one GPU */
};

/*
 * Parses "partitions" or "nnz" (only if `several`), "static=F", "adaptive" or "queue"; NULL: not
 * given. Errors: SLC_ERR_USAGE, which lists what is accepted.
 */
enum slc_status slc_split_wish_parse(const char *text,
                                     bool several,
                                     struct slc_split_wish *split,
                                     struct slc_error *err) SLC_NODISCARD;

/* What is asked for, in the words of the command's options. All of it is borrowed. */
struct slc_device_wish {
    enum slc_device_kind kind;
    uint64_t memory_bytes; /* of each GPU; 0: most of what is free */
    unsigned streams;      /* of each GPU; 0: chosen */
    struct slc_split_wish split;
    /* Of the CPU one number: of devices, 0: none. Of GPUs which; none: the first. */
    unsigned count;
    uint64_t number[SLC_DEVICE_NUMBERS_MAX];
    bool any_layouts; /* layouts were not chosen: devices read those that they divide */
    /* The chip of GPUs that are described and not opened, which plans alone can use; NULL: those of
     * the machine. */
    const char *chip;
    bool plan_only; /* nothing will be computed */
};

/* What is described where no chip is named. */
#define SLC_DEVICE_CHIP "h100"

/* The devices that have been made. */
struct slc_device_set {
    const struct slc_device_maker *maker;
    struct slc_device *devices[SLC_DEVICE_NUMBERS_MAX];
    unsigned ordinals[SLC_DEVICE_NUMBERS_MAX];
    unsigned count; /* 0: the CPU */
    bool described; /* none of them can be opened */
};

/*
 * Fills in what a request says of devices: how many, what is divided or shared, and the layouts
 * that this takes of the modes in the set `modes`. Errors: SLC_ERR_USAGE for what does not go
 * together, or a layout that the store does not have.
 */
enum slc_status slc_device_wish_apply(const struct slc_device_wish *wish,
                                      const struct slc_store *store,
                                      uint32_t modes,
                                      struct slc_plan_request *request,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Makes the devices that are wished for, one where none are named: set->count is 0 for the CPU.
 * With SLC_DEVICE_AUTO that is where there is no other, or where the wish or the request, which may
 * be NULL, ask for what the CPU alone can do; `why` then says so.
 *
 * A plan (wish->plan_only) gets described devices if the wish names a chip. With SLC_DEVICE_GPU it
 * also gets them, of SLC_DEVICE_CHIP, if the machine has no device and the wish says how much
 * memory to plan with; `why` then has the driver's reason. Owns: slc_device_set_drop. Errors: with
 * SLC_DEVICE_GPU those of the maker; SLC_ERR_USAGE for options of GPUs where none is asked for, and
 * for a chip where something will be computed.
 */
enum slc_status slc_device_set_make(const struct slc_device_wish *wish,
                                    const struct slc_device_maker *maker,
                                    const struct slc_plan_request *request,
                                    struct slc_device_set *set,
                                    struct slc_error *why,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Destroys them, and gives back what their driver holds in this process: for a run that goes on
 * without. Takes an all-zero set.
 */
void slc_device_set_drop(struct slc_device_set *set);

/* The device that multiplies tiles (engine/product/products.h), one at most. */
struct slc_products_choice {
    struct slc_device_set set;
    struct slc_device *device;     /* NULL: the CPU alone */
    bool optional;                 /* the CPU may do without it */
    struct slc_hybrid_wish hybrid; /* between both */
    struct slc_error refused;      /* why SLC_DEVICE_AUTO took the CPU; SLC_OK: it did not */
};

/*
 * The device that is wished for. Owns: slc_products_drop, which takes an all-zero choice. Errors:
 * as slc_device_set_make; SLC_ERR_USAGE for a split that shares nothing between CPU and GPU.
 */
enum slc_status slc_products_choose(const struct slc_device_wish *wish,
                                    const struct slc_device_maker *maker,
                                    struct slc_products_choice *choice,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_products_drop(struct slc_products_choice *choice);

#endif
