/* Reduces partial results of groups of rows (dense_cuts.h). Shared by the kernels of dense algebra.
 * Private to gpu/dense*. */
#ifndef SLC_GPU_DENSE_GROUPS_H
#define SLC_GPU_DENSE_GROUPS_H

#include "gpu/dense/dense.h"

/* Returns the number of warp lanes that share a row of `cols` columns; the other warp lanes process
 * the next rows. */
__host__ __device__ static inline unsigned slc_lanes_of_row(uint32_t cols)
{
    return cols <= 8 ? 8 : cols <= 16 ? 16 : SLC_WARP;
}

/* 32 warps reduce the results of many groups, 32 results at a time; each warp reduces a part of the
 * groups. A single thread would need thousands of dependent additions. */
enum {
    SLC_GROUP_SLICES = 32,
    SLC_GROUP_THREADS_MAX = SLC_GROUP_SLICES * SLC_WARP,
    /* Loads in flight per thread. With one load at a time, thousands of groups would each cost the
     * latency of a load. */
    SLC_GROUP_LOADS = 16
};
static inline unsigned slc_group_threads(uint32_t count)
{
    return count < 2 * SLC_GROUP_SLICES ? (unsigned)SLC_WARP : (unsigned)SLC_GROUP_THREADS_MAX;
}

/* Returns the sum or, if `largest`, the maximum of from[g * stride] over all g less than `count`.
 * The order of additions depends only on `count`. Called by all slc_group_threads(count) threads of
 * a thread block. `from` may differ between the warp lanes of a warp, but not between the warps.
 * Only the results in warp 0 are valid. Needs: shared memory for one f64 per thread. */
__device__ static inline double
slc_reduce_groups(const double *from, uint64_t stride, uint32_t count, bool largest)
{
    SLC_DYNAMIC_SHARED(double, parts);
    const uint32_t slices = blockDim.x / SLC_WARP, share = (count + slices - 1) / slices;
    const uint32_t first = threadIdx.x / SLC_WARP * share, begin = first < count ? first : count;
    const uint32_t end = share < count - begin ? begin + share : count;
    double result = 0.0;

    for (uint32_t g = begin; g < end; g += SLC_GROUP_LOADS) {
        double loaded[SLC_GROUP_LOADS];

        for (uint32_t i = 0; i < SLC_GROUP_LOADS; i++) {
            loaded[i] = i < end - g ? from[(g + i) * stride] : 0.0;
        }
        /* The result is never negative zero, so the zeros at the end do not change it. */
        for (uint32_t i = 0; i < SLC_GROUP_LOADS; i++) {
            result = !largest ? result + loaded[i] : loaded[i] > result ? loaded[i] : result;
        }
    }
    parts[threadIdx.x] = result;
    __syncthreads();
    for (unsigned i = threadIdx.x + SLC_WARP; i < blockDim.x; i += SLC_WARP) {
        result = !largest ? result + parts[i] : parts[i] > result ? parts[i] : result;
    }
    return result;
}

#endif
