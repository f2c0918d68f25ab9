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

/* Eight warps reduce the results of many groups, 32 results at a time; each warp reduces an eighth
 * of the groups. A single thread would need thousands of dependent additions. */
enum { SLC_GROUP_SLICES = 8, SLC_GROUP_THREADS_MAX = SLC_GROUP_SLICES * SLC_WARP };
static inline unsigned slc_group_threads(uint32_t count)
{
    return count < 8 * SLC_GROUP_SLICES ? (unsigned)SLC_WARP : (unsigned)SLC_GROUP_THREADS_MAX;
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
    const uint32_t begin = threadIdx.x / SLC_WARP * share;
    double result = 0.0;

    for (uint32_t g = begin; g < count && g - begin < share; g++) {
        const double part = from[g * stride];

        result = !largest ? result + part : part > result ? part : result;
    }
    parts[threadIdx.x] = result;
    __syncthreads();
    for (unsigned i = threadIdx.x + SLC_WARP; i < blockDim.x; i += SLC_WARP) {
        result = !largest ? result + parts[i] : parts[i] > result ? parts[i] : result;
    }
    return result;
}

#endif
