/*
 * The field's kernels (gpu/baselines.h) on the factors of an open device, timed: for benchmarks
 * that set them beside what the device computes from blocks.
 */
#ifndef SLC_GPU_LISTS_H
#define SLC_GPU_LISTS_H

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

unsigned slc_gpu_lists_kernels(void);
const char *slc_gpu_lists_kernel(unsigned kernel); /* "blco-registers"; of so many */

struct slc_gpu_lists;

/*
 * Takes a list of coordinates (of nonzero i in mode m at i * order + m) and values to an open
 * device of gpu/, in memory beside what it holds. Owns: slc_gpu_lists_destroy, which takes NULL,
 * before the device is closed. Errors: SLC_ERR_USAGE for a device that is not open, or
 * deterministic, which no such kernel is; SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status slc_gpu_lists_create(struct slc_device *device,
                                     uint64_t nnz,
                                     const uint32_t *coords,
                                     enum slc_value_type type,
                                     const void *values,
                                     struct slc_gpu_lists **lists,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_gpu_lists_destroy(struct slc_gpu_lists *lists);

/*
 * The MTTKRP of `mode` by a kernel, into the device's output, as by mttkrp_begin .. mttkrp_end.
 * What the kernel needs of the tensor besides (its own form, a permutation) is made by its first
 * call and kept; *seconds is what the kernel alone takes, by the device's clock. Errors:
 * SLC_ERR_UNSUPPORTED where the kernel cannot take the tensor, SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status slc_gpu_lists_mttkrp(struct slc_gpu_lists *lists,
                                     unsigned kernel,
                                     unsigned mode,
                                     double *seconds,
                                     struct slc_error *err) SLC_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
