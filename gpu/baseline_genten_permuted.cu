/* GenTen's permuted traversal, genten-c; see baselines.h. */
#include "gpu/baseline_genten.h"

/*
 * Nonzeros in the order of their rows. Of a row that neither begins nor ends a tile no other tile
 * has any: such rows are added to without atomics.
 */
template <typename Element, typename Sum, int panel>
__global__ void __launch_bounds__(SLC_GENTEN_TEAM, SLC_GENTEN_TEAMS)
    slc_genten_permuted(const struct slc_gpu_coo coo, const struct slc_baseline_job job)
{
    const uint64_t tile = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const uint64_t begin = tile * SLC_GENTEN_TILE;
    const uint64_t end = begin + SLC_GENTEN_TILE < coo.nnz ? begin + SLC_GENTEN_TILE : coo.nnz;
    const uint32_t *order = coo.permutation[job.mode];

    if (begin >= end) {
        return;
    }
    const uint32_t first = coo.coords[static_cast<uint64_t>(order[begin]) * coo.order + job.mode];

    for (uint32_t c = threadIdx.x; c < job.rank; c += panel * blockDim.x) {
        uint32_t row = first;
        Sum sum[panel] = {};

        for (uint64_t k = begin; k < end; k++) {
            const uint64_t i = order[k];
            const uint32_t *coords = coo.coords + i * coo.order;
            const Sum value = slc_baseline_value<Sum>(coo.type, coo.values, i);
            Sum product[panel];

            if (coords[job.mode] != row) {
                slc_genten_add<Sum, panel>(&job, row, c, sum, row == first);
                row = coords[job.mode];
                for (int p = 0; p < panel; p++) {
                    sum[p] = 0;
                }
            }
            slc_genten_product<Element, Sum, panel>(&job, coords, value, c, product);
            for (int p = 0; p < panel; p++) {
                sum[p] += product[p];
            }
        }
        slc_genten_add<Sum, panel>(&job, row, c, sum, true);
    }
}

template <typename Element, typename Sum>
static cudaError_t
launch(const struct slc_gpu_coo *coo, const struct slc_gpu_mttkrp *job, cudaStream_t stream)
{
    const uint32_t vector = slc_genten_vector(job->rank, SLC_WARP);
    const uint64_t nonzeros = SLC_GENTEN_TEAM / vector * SLC_GENTEN_TILE;
    const dim3 grid(static_cast<unsigned>((coo->nnz + nonzeros - 1) / nonzeros));
    const dim3 block(vector, SLC_GENTEN_TEAM / vector);
    const struct slc_baseline_job given = slc_baseline_job_of(job);

    switch (slc_genten_panel(job->rank, vector)) {
    case 1:
        return slc_launch(slc_genten_permuted<Element, Sum, 1>, grid, block, 0, stream, *coo,
                          given);
    case 2:
        return slc_launch(slc_genten_permuted<Element, Sum, 2>, grid, block, 0, stream, *coo,
                          given);
    default:
        return slc_launch(slc_genten_permuted<Element, Sum, SLC_GENTEN_PANEL>, grid, block, 0,
                          stream, *coo, given);
    }
}

cudaError_t slc_baseline_genten_permuted(const struct slc_gpu_coo *coo,
                                         const struct slc_gpu_mttkrp *job,
                                         cudaStream_t stream)
{
    return SLC_BASELINE_BY_TYPES(job, launch, coo, job, stream);
}
