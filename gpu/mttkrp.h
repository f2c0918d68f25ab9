/*
 * MTTKRP of a batch of encoded blocks on the device. Private to gpu/.
 */
#ifndef SLC_GPU_MTTKRP_H
#define SLC_GPU_MTTKRP_H

#include "gpu/batch.h"

/* What kernels are fitted to. */
struct slc_gpu_machine {
    unsigned multiprocessors;
    unsigned shared_bytes; /* of a thread block, at most */
    unsigned architecture; /* 90: sm_90 */
};

struct slc_gpu_mttkrp {
    unsigned order, mode;
    uint32_t rank;
    enum slc_arithmetic arithmetic;
    struct slc_gpu_matrix factor[SLC_MAX_ORDER]; /* that of `mode` is not read */
    struct slc_gpu_matrix output; /* added to: f64, or f32 under SLC_ARITHMETIC_F32 */
};

/* How many runs a chunk of the job's batches has: slc_gpu_batch.chunk_runs. */
uint32_t slc_gpu_mttkrp_chunk_runs(const struct slc_gpu_mttkrp *job,
                                   const struct slc_gpu_machine *machine);

/* Adds a batch to the job's output. `batch` itself lies in the host's memory. */
cudaError_t slc_gpu_mttkrp_batch(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream);

#endif
