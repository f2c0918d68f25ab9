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

/* The two above as a table. */
const struct slc_device_maker *slc_gpu_maker(void);

#ifdef __cplusplus
}
#endif

#endif
