/*
 * Baselines: MTTKRP over lists in the device's memory as the field computes it. Private to gpu/.
 *
 * Written anew from what papers say, and kept to be measured beside the kernels of sluice in the
 * same run: nothing else computes by them.
 *
 *   amped   AMPED is Wijeratne et al., ICPP 2025 (arXiv 2507.15121), section 4: every
 *           multiprocessor takes an equal share of the nonzeros, in the list's order; a block has R
 *           x 32 threads, R for each of 32 nonzeros, one per column, and each adds its product to
 *           the output atomically. Beyond 32 columns a thread takes every 32nd, for a block has at
 *           most 1024 threads.
 *
 *     prepare (once per kernel and mode) -> launch .. -> destroy
 */
#ifndef SLC_GPU_BASELINES_H
#define SLC_GPU_BASELINES_H

#include "gpu/coo.h"
#include "gpu/mttkrp.h"

enum slc_gpu_kernel { SLC_GPU_AMPED, SLC_GPU_KERNELS };

const char *slc_gpu_kernel_name(enum slc_gpu_kernel kernel); /* "amped" */
/* SLC_GPU_KERNELS for a name that is none's. */
enum slc_gpu_kernel slc_gpu_kernel_parse(const char *name);

/* A tensor in the forms that kernels take. */
struct slc_gpu_forms {
    struct slc_gpu_coo *coo;
};

/*
 * Adds the MTTKRP of a tensor to the job's output. Values of either type; products in the type of
 * the output, which is also what is added up in. Order: sums in no fixed order. Errors:
 * cudaErrorInvalidValue where the tensor has another order than the job, or not the form that the
 * kernel takes; those of launches.
 */
cudaError_t slc_gpu_baseline(enum slc_gpu_kernel kernel,
                             const struct slc_gpu_forms *tensor,
                             const struct slc_gpu_mttkrp *job,
                             const struct slc_gpu_machine *machine,
                             cudaStream_t stream);

#endif
