/* BLCO's register-based kernel; see baselines.h. */
#include "tools/bench/rivals/gpu/baseline_blco.h"

/* A block is a work-group, of which each warp computes `coarsening` tiles. */
template <typename Element, unsigned factors>
__global__ void __launch_bounds__(SLC_BLCO_GROUP_MAX, SLC_BLCO_GROUPS)
    slc_blco_registers(const __grid_constant__ struct slc_gpu_blco_part part,
                       const __grid_constant__ struct slc_baseline_job job,
                       uint32_t coarsening)
{
    SLC_DYNAMIC_SHARED(double, shared);
    const struct slc_gpu_blco_group group = part.groups[blockIdx.x];
    const uint32_t warp = threadIdx.x / SLC_WARP;
    uint32_t *upper = reinterpret_cast<uint32_t *>(shared + blockDim.x);
    struct slc_blco_tile tile;

    tile.values = shared + warp * SLC_WARP;
    tile.coords = upper + part.order + warp * SLC_WARP * part.order;
    if (threadIdx.x < part.order) {
        upper[threadIdx.x] = part.blocks[group.block].upper[threadIdx.x];
    }
    SLC_PLANT(blco_upper_not_there, __syncthreads());
    for (uint32_t t = 0; t < coarsening; t++) {
        uint32_t first;
        const uint32_t count = slc_blco_tile_count(&group, t, &first);

        if (count == 0) {
            break;
        }
        slc_blco_stage(&part, upper, job.mode, group.first - part.base + first, count, &tile);
        for (uint32_t c = threadIdx.x % SLC_WARP; c < job.rank; c += SLC_WARP) {
            double sum = 0;

            for (uint32_t k = 0; k < tile.count; k++) {
                const uint32_t *coords = tile.coords + k * part.order;

                sum += slc_baseline_product<Element, factors>(&job, coords, tile.values[k], c);
                if (slc_blco_ends_row(&tile, k)) {
                    atomicAdd(slc_baseline_row(&job, coords[job.mode]) + c, sum);
                    sum = 0;
                }
            }
        }
        SLC_PLANT(blco_tile_overwritten, __syncwarp());
    }
}

template <typename Element, unsigned factors>
static cudaError_t launch_with(const struct slc_baseline_job *job,
                               const struct slc_gpu_blco_part *part,
                               const struct slc_baseline_copies *copies,
                               const struct slc_gpu_lists_options *options,
                               cudaStream_t stream)
{
    (void)copies;
    return slc_launch(slc_blco_registers<Element, factors>, dim3(part->group_count),
                      dim3(options->work_group),
                      slc_baseline_blco_shared_bytes(part->order, options->work_group), stream,
                      *part, *job, options->coarsening);
}

SLC_BLCO_KERNEL(slc_baseline_blco_registers)
