/* BLCO's register-based kernel; see baselines.h. */
#include "gpu/baseline_blco.h"

/* A block is a warp, which computes `coarsening` tiles one after the other. */
template <typename Element, typename Sum, unsigned factors>
__global__ void __launch_bounds__(SLC_WARP)
    slc_blco_registers(const __grid_constant__ struct slc_gpu_blco blco,
                       const __grid_constant__ struct slc_baseline_job job,
                       uint32_t coarsening)
{
    SLC_DYNAMIC_SHARED(Sum, shared);
    const uint64_t first = static_cast<uint64_t>(blockIdx.x) * coarsening * SLC_WARP;
    struct slc_blco_tile<Sum> tile;

    tile.values = shared;
    tile.coords = reinterpret_cast<uint32_t *>(shared + SLC_WARP);
    for (uint32_t t = 0; t < coarsening && first + t * SLC_WARP < blco.nnz; t++) {
        slc_blco_stage(&blco, job.mode, first + t * SLC_WARP, &tile);
        for (uint32_t c = threadIdx.x; c < job.rank; c += SLC_WARP) {
            Sum sum = 0;

            for (uint32_t k = 0; k < tile.count; k++) {
                const uint32_t *coords = tile.coords + k * blco.order;

                sum += slc_baseline_product<Element, Sum, factors>(&job, coords, tile.values[k], c);
                if (slc_blco_ends_row(&tile, k)) {
                    atomicAdd(slc_baseline_row<Sum>(&job, coords[job.mode]) + c, sum);
                    sum = 0;
                }
            }
        }
        SLC_PLANT(blco_tile_overwritten, __syncwarp());
    }
}

template <typename Element, typename Sum, unsigned factors>
static cudaError_t launch_with(const struct slc_gpu_blco *blco,
                               const struct slc_baseline_job *job,
                               const struct slc_gpu_baseline_options *options,
                               cudaStream_t stream)
{
    const uint64_t tiles = (blco->nnz + SLC_WARP - 1) / SLC_WARP;
    const uint64_t blocks = (tiles + options->coarsening - 1) / options->coarsening;

    return slc_launch(slc_blco_registers<Element, Sum, factors>,
                      dim3(static_cast<unsigned>(blocks)), dim3(SLC_WARP),
                      slc_blco_tile_bytes(blco->order, sizeof(Sum)), stream, *blco, *job,
                      options->coarsening);
}

template <typename Element, typename Sum>
static cudaError_t launch(const struct slc_gpu_blco *blco,
                          const struct slc_baseline_job *job,
                          const struct slc_gpu_baseline_options *options,
                          cudaStream_t stream)
{
    switch (job->others) {
    case 2:
        return launch_with<Element, Sum, 2>(blco, job, options, stream);
    case 3:
        return launch_with<Element, Sum, 3>(blco, job, options, stream);
    default:
        return launch_with<Element, Sum, 0>(blco, job, options, stream);
    }
}

cudaError_t slc_baseline_blco_registers(const struct slc_gpu_forms *forms,
                                        const struct slc_gpu_mttkrp *job,
                                        const struct slc_gpu_baseline_options *options,
                                        cudaStream_t stream)
{
    const struct slc_baseline_job given = slc_baseline_job_of(job);

    return SLC_BASELINE_BY_TYPES(job, launch, &forms->blco, &given, options, stream);
}
