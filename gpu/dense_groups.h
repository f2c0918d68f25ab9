/*
 * What the files of dense algebra share: rows cut into groups, partial results of groups, and how
 * these are put together. Private to gpu/dense*.
 */
#ifndef SLC_GPU_DENSE_GROUPS_H
#define SLC_GPU_DENSE_GROUPS_H

#include "gpu/dense.h"

extern "C" {
#include "base/checked.h"
}

/* Rows in groups, each a whole number of units but the last. */
struct slc_gpu_row_cut {
    uint64_t rows, group_rows;
    uint32_t groups;
};

static inline struct slc_gpu_row_cut
slc_gpu_row_cut(uint64_t rows, uint64_t unit_rows, uint32_t groups_max)
{
    const uint64_t units = slc_div_up_u64(rows, unit_rows);
    struct slc_gpu_row_cut cut = {rows, unit_rows, 0};

    if (units > 0) {
        cut.group_rows = slc_div_up_u64(units, slc_min_u64(units, groups_max)) * unit_rows;
        cut.groups = (uint32_t)slc_div_up_u64(rows, cut.group_rows);
    }
    return cut;
}

/* Groups of any cut of up to so many rows. */
static inline uint64_t slc_gpu_groups_most(uint64_t rows, uint64_t unit_rows, uint32_t groups_max)
{
    return slc_min_u64(slc_div_up_u64(rows, unit_rows), groups_max);
}

/* Columns of a packed solver: blocks of as many are solved together (dense_update.cu). */
static inline uint32_t slc_gpu_solver_width(uint32_t rank)
{
    return (rank + 7) / 8 * 8;
}

/* Lanes of a warp that share a row of so many columns; the warp's others take the next rows. */
__host__ __device__ static inline unsigned slc_lanes_of_row(uint32_t cols)
{
    return cols <= 8 ? 8 : cols <= 16 ? 16 : SLC_WARP;
}

/* Scratch of the operations. */
uint64_t slc_gpu_update_scratch_bytes(uint64_t rows, uint32_t rank);
uint64_t slc_gpu_gram_scratch_bytes(uint64_t rows, uint32_t rank);

/*
 * Results of many groups are put together by 8 warps for 32 of them, each of which takes an eighth
 * of the groups: one thread alone would wait for thousands of additions one after the other.
 */
enum { SLC_GROUP_SLICES = 8, SLC_GROUP_THREADS_MAX = SLC_GROUP_SLICES * SLC_WARP };
static inline unsigned slc_group_threads(uint32_t count)
{
    return count < 8 * SLC_GROUP_SLICES ? (unsigned)SLC_WARP : (unsigned)SLC_GROUP_THREADS_MAX;
}

/*
 * The sum, or the largest, of from[g * stride] over all g below `count`, in an order that `count`
 * alone says. Called by all threads of a block of slc_group_threads(count), each lane of a warp
 * with a `from` of its own, the same in all warps; the result is that of warp 0. Takes an f64 of
 * shared memory per thread.
 */
__device__ static inline double
slc_put_together(const double *from, uint64_t stride, uint32_t count, bool largest)
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
