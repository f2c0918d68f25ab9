/* Computes the MTTKRP of encoded blocks: M(i, r) = sum of (x * product of A(m)(i_m, r) over m !=
 * mode) over the nonzeros x of a batch that belong to row i ([Kolda2009] section 2.6).
 *
 * The grid is persistent: every thread block processes a contiguous range of the batch's chunks, in
 * which neighbouring nonzeros share rows of the factors. For each chunk, each warp decodes a run
 * into shared memory, the thread block sorts the nonzeros by output row (mttkrp_group.h), and
 * groups of warp lanes multiply and add them (mttkrp_compute.h).
 *
 * The cuts of chunks and shares, and therefore the sums of segments, depend only on the tile, the
 * rank and the types. With exact sums, the bits of the result depend only on the cuts and the
 * nonzeros. */
#include "gpu/mttkrp/mttkrp_plan.h"

/* Each variant except the last differs from the default in one property. */
static const struct slc_gpu_named_variant variant_list[] = {
    {"default", {0, 0, false}},
    {"chunks-2", {0, 2, false}},
    {"chunks-8", {0, 8, false}},
    {"interleaved", {0, 0, true}},
    {"no-stash", {SLC_MTTKRP_WITHOUT_STASH, 0, false}},
    {"full-sectors", {SLC_MTTKRP_FULL_SECTORS, 0, false}},
    {"shared-fields", {SLC_MTTKRP_SHARED_FIELDS, 0, false}},
    {"transcoded", {SLC_MTTKRP_TRANSCODED, 0, false}},
    /* Without decoding, a multiprocessor has enough registers for three thread blocks. */
    {"transcoded-3",
     {SLC_MTTKRP_TRANSCODED | SLC_MTTKRP_WITHOUT_STASH | SLC_MTTKRP_THREE_BLOCKS, 2, false}},
};

const struct slc_gpu_named_variant *slc_gpu_mttkrp_variant_list(unsigned *count)
{
    *count = sizeof variant_list / sizeof variant_list[0];
    return variant_list;
}

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
    return job->variant.flags != 0 ? slc_gpu_mttkrp_variants(job, batch, machine, &plan, stream)
                                   : slc_gpu_mttkrp_ordinary(job, batch, machine, &plan, stream);
}
