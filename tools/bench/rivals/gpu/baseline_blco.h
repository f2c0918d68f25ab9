/*
 * What BLCO's kernels share: a warp brings a tile of 32 nonzeros to shared memory, those of one
 * output row together. Device code, included by the kernels.
 */
#ifndef SLC_GPU_BASELINE_BLCO_H
#define SLC_GPU_BASELINE_BLCO_H

#include "tools/bench/rivals/gpu/baseline.h"

/* Registers are allotted for this number of the largest work-groups per multiprocessor: without the
 * bound nvcc 13 allots them for more work-groups and spills. */
enum { SLC_BLCO_GROUPS = 2 };

/* A warp's nonzeros, in shared memory. */
struct slc_blco_tile {
    double *values;   /* SLC_WARP */
    uint32_t *coords; /* of nonzero k in mode m at k * order + m */
    uint32_t count;
    uint32_t heads; /* bit k: nonzero k has another row than the one before it */
};

/* Nonzeros of tile t of a warp, from `first` of the work-group's on; 0: there is none. */
__device__ static inline uint32_t
slc_blco_tile_count(const struct slc_gpu_blco_group *group, uint32_t t, uint32_t *first)
{
    *first = t * blockDim.x + threadIdx.x / SLC_WARP * SLC_WARP;
    if (*first >= group->count) {
        return 0;
    }
    return group->count - *first < SLC_WARP ? group->count - *first : +SLC_WARP;
}

__device__ static inline uint32_t slc_blco_coordinate(const struct slc_gpu_blco_part *part,
                                                      const uint32_t *upper,
                                                      uint64_t index,
                                                      unsigned mode)
{
    const uint64_t mask = (UINT64_C(1) << part->bits[mode]) - 1;

    return upper[mode] | static_cast<uint32_t>(index >> part->shift[mode] & mask);
}

/*
 * The place of each lane of `active` in an order that has equal rows next to each other: a counting
 * sort by the first lane that has a row. Bits of *heads: places at which a row begins.
 */
__device__ static inline unsigned
slc_blco_place(unsigned active, unsigned lane, uint32_t row, uint32_t *heads)
{
    const unsigned same = __match_any_sync(active, row);
    const unsigned leader = static_cast<unsigned>(__ffs(same)) - 1;
    const unsigned size = static_cast<unsigned>(__popc(same));
    unsigned end = lane == leader ? size : 0;

    for (unsigned delta = 1; delta < SLC_WARP; delta *= 2) {
        const unsigned before = __shfl_up_sync(active, end, delta);

        end += lane >= delta ? before : 0;
    }
    const unsigned begin = __shfl_sync(active, end, static_cast<int>(leader)) - size;

    *heads = __reduce_or_sync(active, lane == leader ? 1U << begin : 0);
    return begin + static_cast<unsigned>(__popc(same & ((1U << lane) - 1U)));
}

/*
 * Brings `count` nonzeros, at least one, from `first` of the part's arrays on. All lanes call it
 * and can then read them. `upper` has the upper bits of their block, in shared memory.
 */
__device__ static inline void slc_blco_stage(const struct slc_gpu_blco_part *part,
                                             const uint32_t *upper,
                                             unsigned mode,
                                             uint64_t first,
                                             uint32_t count,
                                             struct slc_blco_tile *tile)
{
    const unsigned lane = threadIdx.x % SLC_WARP;

    tile->count = count;
    tile->heads = 0;
    if (lane < count) {
        const unsigned active = SLC_ALL_LANES >> (SLC_WARP - count);
        const uint64_t index = part->indices[first + lane];
        const double value = slc_baseline_value(part->type, part->values, first + lane);
        const uint32_t row = slc_blco_coordinate(part, upper, index, mode);
        const unsigned place = slc_blco_place(active, lane, row, &tile->heads);

        tile->values[place] = value;
        for (unsigned m = 0; m < part->order; m++) {
            tile->coords[place * part->order + m] = slc_blco_coordinate(part, upper, index, m);
        }
    }
    tile->heads = __shfl_sync(SLC_ALL_LANES, tile->heads, 0);
    SLC_PLANT(blco_tile_not_there, __syncwarp());
}

/* Whether nonzero k is the last of its row in the tile. */
__device__ static inline bool slc_blco_ends_row(const struct slc_blco_tile *tile, uint32_t k)
{
    return k + 1 == tile->count || (tile->heads >> (k + 1) & 1U) != 0;
}

/* The end of the nonzeros of one row that begin at `begin`. */
__device__ static inline uint32_t slc_blco_row_end(const struct slc_blco_tile *tile, uint32_t begin)
{
    uint32_t end = begin + 1;

    while (!slc_blco_ends_row(tile, end - 1)) {
        end++;
    }
    return end;
}

/*
 * Defines the function `name` of baseline.h, which calls launch_with<Element, factors>(job, part,
 * copies, options, stream) by the job's precision and number of factors.
 */
#define SLC_BLCO_KERNEL(name)                                                                      \
    template <typename Element>                                                                    \
    static cudaError_t launch(const struct slc_baseline_job *job,                                  \
                              const struct slc_gpu_blco_part *part,                                \
                              const struct slc_baseline_copies *copies,                            \
                              const struct slc_gpu_lists_options *options, cudaStream_t stream)    \
    {                                                                                              \
        return job->others == 2   ? launch_with<Element, 2>(job, part, copies, options, stream)    \
               : job->others == 3 ? launch_with<Element, 3>(job, part, copies, options, stream)    \
                                  : launch_with<Element, 0>(job, part, copies, options, stream);   \
    }                                                                                              \
    cudaError_t name(const struct slc_gpu_blco_part *part, const struct slc_gpu_mttkrp *job,       \
                     const struct slc_baseline_copies *copies,                                     \
                     const struct slc_gpu_lists_options *options, cudaStream_t stream)             \
    {                                                                                              \
        const struct slc_baseline_job given = slc_baseline_job_of(job);                            \
                                                                                                   \
        return SLC_BASELINE_BY_PRECISION(job, launch, &given, part, copies, options, stream);      \
    }

#endif
