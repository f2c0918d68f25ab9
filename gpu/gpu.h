/*
 * Devices that CUDA knows. Everything else about them is behind base/device.h.
 */
#ifndef SLC_GPU_GPU_H
#define SLC_GPU_GPU_H

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct slc_gpu_options {
    unsigned ordinal; /* which of the machine's devices */
    /* Of the device that may be used, no more than is free; 0: nine tenths of that. */
    uint64_t memory_bytes;
};

/* The version of the CUDA toolkit this is built with, 12040 for 12.4; 0 where it is without. */
int slc_gpu_toolkit(void);

/*
 * How many devices there are: 0 and SLC_ERR_SYSTEM with a line that says why (built without CUDA,
 * no driver, none there, too old a driver).
 */
enum slc_status slc_gpu_count(unsigned *count, struct slc_error *err) SLC_NODISCARD;

/*
 * Owns: the device's destroy. Errors: SLC_ERR_SYSTEM as above, SLC_ERR_USAGE for an ordinal that is
 * not there and for more memory than is free, SLC_ERR_UNSUPPORTED for a device older than those
 * that sluice is built for, SLC_ERR_MEMORY.
 */
enum slc_status slc_gpu_create(const struct slc_gpu_options *options,
                               struct slc_device **device,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Gives back what CUDA holds in this process for a device that was created: hundreds of MiB, which
 * else count in every later plan. Needs: none of its slc_device is left.
 */
void slc_gpu_release(unsigned ordinal);

/* The chips that can be described, up to NULL. */
extern const char *const slc_gpu_chip_names[];

/*
 * Describes a device for plans, on any machine; it cannot be opened. It has the memory,
 * multiprocessors and shared memory of the chip `name`, and memory_bytes, host_bytes and those of
 * products answer as on a device that is there. `budget_bytes` of its memory may be used; 0: nine
 * tenths. Owns: its destroy. Errors: SLC_ERR_USAGE for an unknown name, naming the known ones, and
 * for more memory than the chip has; SLC_ERR_MEMORY.
 */
enum slc_status slc_gpu_describe(const char *name,
                                 uint64_t budget_bytes,
                                 struct slc_device **device,
                                 struct slc_error *err) SLC_NODISCARD;

/* All of that as a table. */
const struct slc_device_maker *slc_gpu_maker(void);

#ifdef __cplusplus
}
#endif

#endif
