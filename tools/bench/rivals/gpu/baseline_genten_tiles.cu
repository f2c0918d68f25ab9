/* GenTen's products in registers, genten-b: MTTKRP-B of its figure 3; see baselines.h. */
#include "tools/bench/rivals/gpu/baseline_genten.h"

template <typename Element> struct slc_genten_tiles {
    template <int vector, int panel, bool whole>
    __device__ static inline void
    add_columns(const struct slc_gpu_coo *coo, const struct slc_baseline_job *job, uint32_t first)
    {
        const struct slc_genten_range range = slc_genten_range_of(coo->nnz);
        slc_genten_vec<vector, panel, whole> product;

        product.first = first + threadIdx.x;
        product.rank = job->rank;
        for (uint64_t i = range.begin; i < range.end; i++) {
            const uint32_t *coords = coo->coords + i * coo->order;

            slc_genten_product<Element>(job, coords, slc_baseline_value(coo->type, coo->values, i),
                                        &product);
            product.add_to(slc_baseline_row(job, coords[job->mode]), true);
        }
    }
};

cudaError_t slc_baseline_genten_tiles(const struct slc_gpu_coo *coo,
                                      const struct slc_gpu_mttkrp *job,
                                      cudaStream_t stream)
{
    return slc_genten_run<slc_genten_tiles>(SLC_GPU_GENTEN_TILES, coo, job, stream);
}
