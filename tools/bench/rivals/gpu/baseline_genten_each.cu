/* GenTen's portable loop, genten-a: MTTKRP-A of its figure 1; see baselines.h. */
#include "tools/bench/rivals/gpu/baseline_genten.h"

template <typename Element>
__global__ void __launch_bounds__(SLC_GENTEN_TEAM)
    slc_genten_each(const struct slc_gpu_coo coo, const struct slc_baseline_job job, uint32_t block)
{
    SLC_DYNAMIC_SHARED(double, shared);
    const struct slc_genten_range range = slc_genten_range_of(coo.nnz);
    /* A thread reads and writes only its own columns: no thread waits for another. */
    double *product = shared + threadIdx.y * block;

    for (uint32_t first = 0; first < job.rank; first += block) {
        const uint32_t left = job.rank - first;
        const uint32_t width = left < block ? left : block;

        for (uint64_t i = range.begin; i < range.end; i++) {
            const uint32_t *coords = coo.coords + i * coo.order;
            const double value = slc_baseline_value(coo.type, coo.values, i);
            double *row = slc_baseline_row(&job, coords[job.mode]);

            for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
                product[c] = value;
            }
            for (unsigned f = 0; f < job.others; f++) {
                for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
                    product[c] *= static_cast<double>(
                        slc_baseline_element<Element>(&job, f, coords, first + c));
                }
            }
            for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
                atomicAdd(row + first + c, product[c]);
            }
        }
    }
}

template <typename Element>
static cudaError_t
launch(const struct slc_gpu_coo *coo, const struct slc_gpu_mttkrp *job, cudaStream_t stream)
{
    const struct slc_genten_launch made =
        slc_genten_launch_of(SLC_GPU_GENTEN_EACH, coo, job, stream);
    const uint32_t columns = made.blocking.columns;

    return slc_launch(slc_genten_each<Element>, made.grid, made.block,
                      made.block.y * columns * sizeof(double), stream, *coo, made.job, columns);
}

cudaError_t slc_baseline_genten_each(const struct slc_gpu_coo *coo,
                                     const struct slc_gpu_mttkrp *job,
                                     cudaStream_t stream)
{
    return SLC_BASELINE_BY_PRECISION(job, launch, coo, job, stream);
}
