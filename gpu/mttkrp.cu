/*
 * MTTKRP of encoded blocks: M(i, r) = sum of x * product over m != mode of A(m)(i_m, r) (KB section
 * 2.6), for all nonzeros x of a batch.
 *
 * A persistent grid; every thread block takes a contiguous range of the batch's chunks, whose
 * nonzeros share rows of the factors with their neighbours. Per chunk its warps decode a run each
 * into shared memory; the nonzeros are brought into the order of their output rows
 * (mttkrp_group.h); then groups of lanes take equal shares of them. A lane has 16 bytes of a row of
 * every factor, so that a group has as many lanes as a row has 16 bytes, and wider rows are taken
 * in panels of 32 lanes. Products are added up in registers while the output row stays the same,
 * and a segment's sum goes where mttkrp_sums.h puts it.
 *
 * Cuts of chunks and shares depend on the tile, the rank and the types alone, and so do the sums of
 * segments: with exact sums the bits of the result depend on nothing else.
 */
#include "gpu/mttkrp_plan.h"

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
    if (job->exact.words != NULL) {
        return slc_gpu_mttkrp_exact(job, batch, machine, &plan, stream);
    }
    return job->form.code != 0 ? slc_gpu_mttkrp_forms(job, batch, machine, &plan, stream)
                               : slc_gpu_mttkrp_f64(job, batch, machine, &plan, stream);
}
