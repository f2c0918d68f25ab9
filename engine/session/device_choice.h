/* Chooses the devices of an operation: parses and checks the request, and creates devices with
 * their own memory. engine/ does not implement such devices; the caller passes a maker. */
#ifndef SLC_ENGINE_DEVICE_CHOICE_H
#define SLC_ENGINE_DEVICE_CHOICE_H

#include "base/device.h"
#include "engine/plan/plan.h"
#include "storage/manifest/store.h"

enum slc_device_kind {
    SLC_DEVICE_CPU,
    /* a GPU if the machine has one and no other option needs the CPU; otherwise the CPU */
    SLC_DEVICE_AUTO,
    SLC_DEVICE_GPU
};

enum { SLC_DEVICE_NUMBERS_MAX = 16 };

/* The requested split. */
struct slc_split_wish {
    bool given;
    enum slc_split between; /* split between several devices; used if `hybrid` is SLC_HYBRID_NONE */
    struct slc_hybrid_wish hybrid; /* split between the CPU and one GPU */
};

/* Parses "partitions" or "nnz" (only if `several`), "static=F", "adaptive" or "queue". `text` is
 * NULL if no split was requested. Errors: SLC_ERR_USAGE, listing the accepted forms. */
enum slc_status slc_split_wish_parse(const char *text,
                                     bool several,
                                     struct slc_split_wish *split,
                                     struct slc_error *err) SLC_NODISCARD;

/* The request. Its members have the names of the command's options. Everything is borrowed. */
struct slc_device_wish {
    enum slc_device_kind kind;
    uint64_t memory_bytes; /* memory of each GPU; 0: most of its free memory */
    unsigned streams;      /* streams of each GPU; 0: chosen by the plan */
    struct slc_split_wish split;
    /* For the CPU, number[0] is the number of CPU devices (groups of workers); 0 means no devices.
     * For GPUs, the numbers are `count` ordinals; without ordinals, the first GPU is used. */
    unsigned count;
    uint64_t number[SLC_DEVICE_NUMBERS_MAX];
    /* true: no layouts were requested, so devices read the layouts that the split needs */
    bool any_layouts;
    /* Only for plans: chip of GPUs that are described but not opened. NULL: GPUs of the machine. */
    const char *chip;
    bool plan_only; /* true: nothing will be computed */
};

/* The chip that is described if none is named. */
#define SLC_DEVICE_CHIP "h100"

/* The devices that were created. */
struct slc_device_set {
    const struct slc_device_maker *maker;
    struct slc_device *devices[SLC_DEVICE_NUMBERS_MAX];
    unsigned ordinals[SLC_DEVICE_NUMBERS_MAX];
    unsigned count; /* 0: the CPU computes */
    bool described; /* true: the devices are only described and cannot be opened */
};

/* Sets the members of a plan request that the devices determine: the number of devices, the split,
 * and the layouts for the modes in `modes` (bit n: mode n). Errors: SLC_ERR_USAGE if options
 * conflict, or if the store lacks a layout. */
enum slc_status slc_device_wish_apply(const struct slc_device_wish *wish,
                                      const struct slc_store *store,
                                      uint32_t modes,
                                      struct slc_plan_request *request,
                                      struct slc_error *err) SLC_NODISCARD;

/* Creates the requested devices, or one device if none are named. If the CPU is chosen, set->count
 * is 0. SLC_DEVICE_AUTO chooses the CPU if there is no other device, or if the wish or the request
 * (which may be NULL) needs the CPU; `why` then states the reason.
 *
 * For a plan (wish->plan_only), devices are described but not opened if the wish names a chip. With
 * SLC_DEVICE_GPU, devices of SLC_DEVICE_CHIP are described if the machine has no device and the
 * wish sets the memory size; `why` then states the driver's reason. Ownership: release with
 * slc_device_set_drop. Errors: with SLC_DEVICE_GPU, those of the maker. SLC_ERR_USAGE if there are
 * GPU options but no GPU is requested, or if a chip is named and more than a plan is requested. */
enum slc_status slc_device_set_make(const struct slc_device_wish *wish,
                                    const struct slc_device_maker *maker,
                                    const struct slc_plan_request *request,
                                    struct slc_device_set *set,
                                    struct slc_error *why,
                                    struct slc_error *err) SLC_NODISCARD;

/* Destroys the devices and releases the driver's resources in this process. The run can then
 * continue without devices. Accepts an all-zero set. */
void slc_device_set_drop(struct slc_device_set *set);

/* The choice of a device that multiplies tiles (engine/product/products.h): one device or none. */
struct slc_products_choice {
    struct slc_device_set set;
    struct slc_device *device;     /* NULL: the CPU computes alone */
    bool optional;                 /* true: if the device cannot be used, the CPU computes alone */
    struct slc_hybrid_wish hybrid; /* split between CPU and device */
    struct slc_error refused;      /* why SLC_DEVICE_AUTO chose the CPU; SLC_OK if it did not */
};

/* Creates the requested device. Ownership: release with slc_products_drop, which accepts an
 * all-zero choice. Errors: those of slc_device_set_make; SLC_ERR_USAGE if the requested split is
 * not between CPU and GPU. */
enum slc_status slc_products_choose(const struct slc_device_wish *wish,
                                    const struct slc_device_maker *maker,
                                    struct slc_products_choice *choice,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_products_drop(struct slc_products_choice *choice);

#endif
