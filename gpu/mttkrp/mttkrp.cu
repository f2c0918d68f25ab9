/* Computes the MTTKRP of encoded blocks: M(i, r) = sum of (x * product of A(m)(i_m, r) over m !=
 * mode) over the nonzeros x of a batch that belong to row i ([Kolda2009] section 2.6).
 *
 * The grid is persistent: every thread block processes chunks of the batch at a stride. For each
 * chunk, each warp decodes a part of a run into shared memory, the thread block sorts the nonzeros
 * by output row (mttkrp_group.h), and groups of warp lanes multiply and add them
 * (mttkrp_compute.h).
 *
 * The cuts of chunks and shares, and therefore the sums of segments, depend only on the tile, the
 * rank and the types. With exact sums, the bits of the result depend only on the cuts and the
 * nonzeros. */
#include "gpu/mttkrp/mttkrp_plan.h"

uint32_t slc_gpu_mttkrp_chunk_runs(const struct slc_gpu_mttkrp *job,
                                   const struct slc_gpu_machine *machine)
{
    struct slc_gpu_mttkrp_plan plan;

    return slc_gpu_mttkrp_plan(job, machine, &plan) ? plan.chunk_runs : 0;
}

cudaError_t slc_gpu_mttkrp_batch(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream)
{
    struct slc_gpu_mttkrp_plan plan;

    if (batch->chunk_count == 0) {
        return cudaSuccess;
    }
    if (!slc_gpu_mttkrp_plan(job, machine, &plan) || batch->chunk_runs != plan.chunk_runs) {
        return cudaErrorInvalidValue;
    }
    return job->exact.words != NULL ? slc_gpu_mttkrp_exact(job, batch, machine, &plan, stream)
                                    : slc_gpu_mttkrp_ordinary(job, batch, machine, &plan, stream);
}
