/* GenTen's permuted traversal, genten-c: MTTKRP-C of its figure 4; see baselines.h. */
#include "tools/bench/rivals/gpu/baseline_genten.h"

/*
 * A team member's nonzeros, in the order of their rows. No other member has nonzeros of a row that
 * is neither the first nor the last of these: such rows are added to without atomics.
 */
template <typename Element> struct slc_genten_permuted {
    template <int vector, int panel, bool whole>
    __device__ static inline void
    add_columns(const struct slc_gpu_coo *coo, const struct slc_baseline_job *job, uint32_t column)
    {
        const struct slc_genten_range range = slc_genten_range_of(coo->nnz);
        const uint32_t *order = coo->permutation[job->mode];
        slc_genten_vec<vector, panel, whole> sum, product;
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
            const double value = slc_baseline_value(coo->type, coo->values, i);

            if (coords[job->mode] != row) {
                sum.add_to(slc_baseline_row(job, row), row == first);
                row = coords[job->mode];
                sum.fill(0);
            }
            slc_genten_product<Element>(job, coords, value, &product);
            sum.add(product);
        }
        sum.add_to(slc_baseline_row(job, row), true);
    }
};

cudaError_t slc_baseline_genten_permuted(const struct slc_gpu_coo *coo,
                                         const struct slc_gpu_mttkrp *job,
                                         cudaStream_t stream)
{
    return slc_genten_run<slc_genten_permuted>(SLC_GPU_GENTEN_PERMUTED, coo, job, stream);
}
