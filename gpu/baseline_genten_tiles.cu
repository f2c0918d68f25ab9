/* GenTen's products in registers, genten-b: MTTKRP-B of its figure 3; see baselines.h. */
#include "gpu/baseline_genten.h"

/* A block of columns of a team member's nonzeros. */
template <typename Element, typename Sum, int vector, int panel, bool whole>
__device__ static inline void
add_columns(const struct slc_gpu_coo *coo, const struct slc_baseline_job *job, uint32_t first)
{
    const struct slc_genten_range range = slc_genten_range_of(coo->nnz);
    slc_genten_vec<Sum, vector, panel, whole> product;

    product.first = first + threadIdx.x;
    product.rank = job->rank;
    for (uint64_t i = range.begin; i < range.end; i++) {
        const uint32_t *coords = coo->coords + i * coo->order;

        slc_genten_product<Element>(job, coords, slc_baseline_value<Sum>(coo->type, coo->values, i),
                                    &product);
        product.add_to(slc_baseline_row<Sum>(job, coords[job->mode]), true);
    }
}

template <typename Element, typename Sum, int vector, int panel>
__global__ void __launch_bounds__(SLC_GENTEN_TEAM, slc_genten_teams(panel))
    slc_genten_tiles(const struct slc_gpu_coo coo, const struct slc_baseline_job job)
{
    const uint32_t columns = vector * panel;
    uint32_t first = 0;

    for (; job.rank - first >= columns; first += columns) {
        add_columns<Element, Sum, vector, panel, true>(&coo, &job, first);
    }
    if (first < job.rank) {
        add_columns<Element, Sum, vector, panel, false>(&coo, &job, first);
    }
}

template <typename Element, typename Sum> struct launcher {
    struct slc_genten_launch with;

    template <int vector, int panel> cudaError_t run(void) const
    {
        return slc_launch(slc_genten_tiles<Element, Sum, vector, panel>, with.grid, with.block, 0,
                          with.stream, *with.coo, with.job);
    }
};

template <typename Element, typename Sum>
static cudaError_t
launch(const struct slc_gpu_coo *coo, const struct slc_gpu_mttkrp *job, cudaStream_t stream)
{
    const launcher<Element, Sum> made = {
        slc_genten_launch_of(SLC_GPU_GENTEN_TILES, coo, job, stream)};

    return slc_genten_dispatch(&made.with.blocking, made);
}

cudaError_t slc_baseline_genten_tiles(const struct slc_gpu_coo *coo,
                                      const struct slc_gpu_mttkrp *job,
                                      cudaStream_t stream)
{
    return SLC_BASELINE_BY_TYPES(job, launch, coo, job, stream);
}
