/* CUDA devices. All operations on them are in base/device.h. */
#ifndef SLC_GPU_GPU_H
#define SLC_GPU_GPU_H

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct slc_gpu_options {
    unsigned ordinal; /* number of the device in the machine */
    /* Device memory that may be used, at most the free memory; 0: nine tenths of that. */
    uint64_t memory_bytes;
};

/* The version of the CUDA toolkit of this build, 12040 for 12.4; 0 without CUDA. */
int slc_gpu_toolkit(void);

/* The number of devices. If it is 0: SLC_ERR_SYSTEM with the reason (built without CUDA, no driver,
 * no device, driver too old). */
enum slc_status slc_gpu_count(unsigned *count, struct slc_error *err) SLC_NODISCARD;

/*
 * Creates a device. Owns: release with the device's destroy. Errors: SLC_ERR_SYSTEM as above,
 * SLC_ERR_USAGE for an ordinal that does not exist and for more memory than is free,
 * SLC_ERR_UNSUPPORTED for a device older than this build supports, SLC_ERR_MEMORY.
 */
enum slc_status slc_gpu_create(const struct slc_gpu_options *options,
                               struct slc_device **device,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Releases the memory that CUDA holds in this process for a device that was created: hundreds of
 * MiB, which would otherwise count in every later plan. Needs: its slc_device objects are
 * destroyed.
 */
void slc_gpu_release(unsigned ordinal);

/* The chips that can be described, up to NULL. */
extern const char *const slc_gpu_chip_names[];

/*
 * Describes a device for plans, on any machine; it cannot be opened. It has the memory,
 * multiprocessors and shared memory of the chip `name`; memory_bytes, host_bytes and those of
 * products work as on a real device. `budget_bytes` of its memory may be used; 0: nine tenths.
 * Owns: release with its destroy. Errors: SLC_ERR_USAGE for an unknown name, listing the known
 * ones, and for more memory than the chip has; SLC_ERR_MEMORY.
 */
enum slc_status slc_gpu_describe(const char *name,
                                 uint64_t budget_bytes,
                                 struct slc_device **device,
                                 struct slc_error *err) SLC_NODISCARD;

/* These functions as a table. */
const struct slc_device_maker *slc_gpu_maker(void);

#ifdef __cplusplus
}
#endif

#endif
