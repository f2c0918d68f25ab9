/*
 * What both of BLCO's kernels do with 32 neighbours: a warp brings them to shared memory, those of
 * one output row together. Device code, included by the kernels.
 */
#ifndef SLC_GPU_BASELINE_BLCO_H
#define SLC_GPU_BASELINE_BLCO_H

#include "gpu/baseline.h"

/* A warp's nonzeros, in shared memory behind one another. */
template <typename Sum> struct slc_blco_tile {
    Sum *values;      /* SLC_WARP */
    uint32_t *coords; /* side by side */
    uint32_t count;
    uint32_t heads; /* bit k: nonzero k has another row than the one before it */
};

static inline size_t slc_blco_tile_bytes(unsigned order, size_t sum_bytes)
{
    return SLC_WARP * (sum_bytes + order * sizeof(uint32_t));
}

/* The block of nonzero i: the last that begins at or before it. */
__device__ static inline const struct slc_gpu_blco_block *
slc_blco_block_of(const struct slc_gpu_blco *blco, uint64_t i)
{
    uint64_t first = 0, end = blco->block_count;

    while (end - first > 1) {
        const uint64_t middle = first + (end - first) / 2;

        if (blco->blocks[middle].first <= i) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return blco->blocks + first;
}

__device__ static inline uint32_t slc_blco_coordinate(const struct slc_gpu_blco *blco,
                                                      const struct slc_gpu_blco_block *block,
                                                      uint64_t index,
                                                      unsigned mode)
{
    const uint64_t mask = (UINT64_C(1) << blco->bits[mode]) - 1;

    return block->upper[mode] | static_cast<uint32_t>(index >> blco->shift[mode] & mask);
}

/*
 * Where each lane of `active` goes so that equal rows are neighbours: a counting sort by the lane
 * that has a row first. *heads: where rows begin.
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

/* Brings the nonzeros from `first` on, at least one; by all lanes, which can then read them. */
template <typename Sum>
__device__ static inline void slc_blco_stage(const struct slc_gpu_blco *blco,
                                             unsigned mode,
                                             uint64_t first,
                                             struct slc_blco_tile<Sum> *tile)
{
    const unsigned lane = threadIdx.x;
    const uint64_t left = blco->nnz - first;
    const uint32_t count = static_cast<uint32_t>(left < SLC_WARP ? left : +SLC_WARP);

    tile->count = count;
    tile->heads = 0;
    if (lane < count) {
        const unsigned active = SLC_ALL_LANES >> (SLC_WARP - count);
        const struct slc_gpu_blco_block *block = slc_blco_block_of(blco, first + lane);
        const uint64_t index = blco->indices[first + lane];
        const uint32_t row = slc_blco_coordinate(blco, block, index, mode);
        const unsigned place = slc_blco_place(active, lane, row, &tile->heads);

        tile->values[place] = slc_baseline_value<Sum>(blco->type, blco->values, first + lane);
        for (unsigned m = 0; m < blco->order; m++) {
            tile->coords[place * blco->order + m] = slc_blco_coordinate(blco, block, index, m);
        }
    }
    tile->heads = __shfl_sync(SLC_ALL_LANES, tile->heads, 0);
    SLC_PLANT(blco_tile_not_there, __syncwarp());
}

/* Whether nonzero k is the last of its row in the tile. */
template <typename Sum>
__device__ static inline bool slc_blco_ends_row(const struct slc_blco_tile<Sum> *tile, uint32_t k)
{
    return k + 1 == tile->count || (tile->heads >> (k + 1) & 1U) != 0;
}

#endif
