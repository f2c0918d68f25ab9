/* GenTen's permuted traversal, genten-c: MTTKRP-C of its figure 4; see baselines.h. */
#include "gpu/baseline_genten.h"

/*
 * A block of columns of a team member's nonzeros, in the order of their rows. No other member has
 * nonzeros of a row that is neither the first nor the last of these: such rows are added to without
 * atomics.
 */
template <typename Element, typename Sum, int vector, int panel, bool whole>
__device__ static inline void
add_columns(const struct slc_gpu_coo *coo, const struct slc_baseline_job *job, uint32_t column)
{
    const struct slc_genten_range range = slc_genten_range_of(coo->nnz);
    const uint32_t *order = coo->permutation[job->mode];
    slc_genten_vec<Sum, vector, panel, whole> sum, product;
    uint32_t first, row;

    if (range.begin >= range.end) {
        return;
    }
    product.first = sum.first = column + threadIdx.x;
    product.rank = sum.rank = job->rank;
    sum.fill(0);
    first = coo->coords[static_cast<uint64_t>(order[range.begin]) * coo->order + job->mode];
    row = first;
    for (uint64_t k = range.begin; k < range.end; k++) {
        const uint64_t i = order[k];
        const uint32_t *coords = coo->coords + i * coo->order;
        const Sum value = slc_baseline_value<Sum>(coo->type, coo->values, i);

        if (coords[job->mode] != row) {
            sum.add_to(slc_baseline_row<Sum>(job, row), row == first);
            row = coords[job->mode];
            sum.fill(0);
        }
        slc_genten_product<Element>(job, coords, value, &product);
        sum.add(product);
    }
    sum.add_to(slc_baseline_row<Sum>(job, row), true);
}

template <typename Element, typename Sum, int vector, int panel>
__global__ void __launch_bounds__(SLC_GENTEN_TEAM, slc_genten_teams(panel))
    slc_genten_permuted(const struct slc_gpu_coo coo, const struct slc_baseline_job job)
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
        return slc_launch(slc_genten_permuted<Element, Sum, vector, panel>, with.grid, with.block,
                          0, with.stream, *with.coo, with.job);
    }
};

template <typename Element, typename Sum>
static cudaError_t
launch(const struct slc_gpu_coo *coo, const struct slc_gpu_mttkrp *job, cudaStream_t stream)
{
    const launcher<Element, Sum> made = {
        slc_genten_launch_of(SLC_GPU_GENTEN_PERMUTED, coo, job, stream)};

    return slc_genten_dispatch(&made.with.blocking, made);
}

cudaError_t slc_baseline_genten_permuted(const struct slc_gpu_coo *coo,
                                         const struct slc_gpu_mttkrp *job,
                                         cudaStream_t stream)
{
    return SLC_BASELINE_BY_TYPES(job, launch, coo, job, stream);
}
