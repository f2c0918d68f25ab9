/* GenTen's products in registers, genten-b; see baselines.h. */
#include "gpu/baseline_genten.h"

template <typename Element, typename Sum, int panel>
__global__ void __launch_bounds__(SLC_GENTEN_TEAM, SLC_GENTEN_TEAMS)
    slc_genten_tiles(const struct slc_gpu_coo coo, const struct slc_baseline_job job)
{
    const uint64_t tile = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const uint64_t begin = tile * SLC_GENTEN_TILE;
    const uint64_t end = begin + SLC_GENTEN_TILE < coo.nnz ? begin + SLC_GENTEN_TILE : coo.nnz;

    for (uint32_t c = threadIdx.x; c < job.rank; c += panel * blockDim.x) {
        for (uint64_t i = begin; i < end; i++) {
            const uint32_t *coords = coo.coords + i * coo.order;
            const Sum value = slc_baseline_value<Sum>(coo.type, coo.values, i);
            Sum product[panel];

            slc_genten_product<Element, Sum, panel>(&job, coords, value, c, product);
            slc_genten_add<Sum, panel>(&job, coords[job.mode], c, product, true);
        }
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
        return slc_launch(slc_genten_tiles<Element, Sum, 1>, grid, block, 0, stream, *coo, given);
    case 2:
        return slc_launch(slc_genten_tiles<Element, Sum, 2>, grid, block, 0, stream, *coo, given);
    default:
        return slc_launch(slc_genten_tiles<Element, Sum, SLC_GENTEN_PANEL>, grid, block, 0, stream,
                          *coo, given);
    }
}

cudaError_t slc_baseline_genten_tiles(const struct slc_gpu_coo *coo,
                                      const struct slc_gpu_mttkrp *job,
                                      cudaStream_t stream)
{
    return SLC_BASELINE_BY_TYPES(job, launch, coo, job, stream);
}
