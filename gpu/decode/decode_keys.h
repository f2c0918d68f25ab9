/* Computes keys from gaps, for the codecs `packed` and `lz4` (docs/FORMAT.md, sections 7.1 and
 * 7.2). Device code.
 *
 * The first and last key of a run are computed before the run is decoded: from bases, or from the
 * sum of all earlier gaps. These two keys show whether the keys of the run differ only in the low
 * 32 bits. A check after decoding shows whether the gaps lead to the last key. */
#ifndef SLC_GPU_DECODE_KEYS_H
#define SLC_GPU_DECODE_KEYS_H

#include "gpu/decode/decode_patched.h"

/* The keys of a run that are not decoded yet: the next key is `start` plus the next gap. */
struct slc_key_range {
    slc_wide start, last;
};

__device__ static inline slc_wide slc_wide_join(uint64_t lo, uint64_t hi)
{
    return (slc_wide)hi << 64 | lo;
}

/* Returns base `run` of a tile of codec `packed`. */
__device__ static inline slc_wide
slc_packed_base(const struct slc_bit_string &bases, unsigned width, uint32_t run)
{
    return width <= 32 ? slc_bits_read<uint32_t>(bases, run * width, width)
                       : slc_bits_read<slc_wide>(bases, run * width, width);
}

/* Sets *range to the keys of run `run`, which has nonzeros first .. first + count - 1. Returns
 * false if the bases are outside the tile's keys, or if the first base is not 0. */
__device__ static inline bool slc_packed_range(const struct slc_gpu_tile *tile,
                                               uint32_t run,
                                               uint32_t count,
                                               struct slc_key_range *range)
{
    const struct slc_encoded_tile *t = &tile->tile;
    const struct slc_bit_string bases = slc_bit_string_at(tile->block + t->bases_at);
    const slc_wide first = slc_wide_join(t->first_lo, t->first_hi);
    const slc_wide last = slc_wide_join(t->last_lo, t->last_hi);
    const slc_wide base = slc_packed_base(bases, t->base_width, run);
    bool sound = base <= last - first && (run > 0 || base == 0);

    range->start = first + base;
    range->last = last;
    if (run * SLC_RUN_NNZ + count < t->nnz) {
        const slc_wide next = slc_packed_base(bases, t->base_width, run + 1);

        sound = sound && next <= last - first;
        range->last = first + next - 1;
    }
    return sound;
}

__device__ static inline struct slc_planes slc_gap_planes(const struct slc_gpu_tile *tile)
{
    const struct slc_encoded_tile *t = &tile->tile;

    return slc_planes_at((t->lz4.bytes > 0 ? tile->expanded : tile->block) + t->planes_at, t->nnz,
                         t->gap_bytes);
}

/* Does the same as slc_packed_range for tiles without bases. Cost: sums all earlier gaps of the
 * tile, on average half of the gaps of a full tile, with four bytes per operation. */
__device__ static inline bool slc_planes_range(const struct slc_gpu_tile *tile,
                                               uint32_t run,
                                               uint32_t count,
                                               uint32_t lane,
                                               struct slc_key_range *range)
{
    const struct slc_encoded_tile *t = &tile->tile;
    const struct slc_planes gaps = slc_gap_planes(tile);
    const uint32_t begin = run * SLC_RUN_NNZ;
    const slc_wide first = slc_wide_join(t->first_lo, t->first_hi);
    const slc_wide span = slc_wide_join(t->last_lo, t->last_hi) - first;
    const slc_wide before = slc_planes_sum(gaps, 0, begin, lane) + begin;
    const slc_wide after = before + slc_planes_sum(gaps, begin, begin + count, lane) + count - 1;

    range->start = first + before;
    range->last = first + after;
    return before <= span && (begin + count < t->nnz ? after < span : after == span);
}

template <typename Word> __device__ static inline Word slc_shuffle_up(Word value, unsigned delta)
{
    if constexpr (sizeof(Word) > 8) {
        return slc_wide_join(__shfl_up_sync(SLC_ALL_LANES, (uint64_t)value, delta),
                             __shfl_up_sync(SLC_ALL_LANES, (uint64_t)(value >> 64), delta));
    } else {
        return __shfl_up_sync(SLC_ALL_LANES, value, delta);
    }
}

template <typename Word> __device__ static inline Word slc_shuffle_last(Word value)
{
    if constexpr (sizeof(Word) > 8) {
        return slc_wide_join(__shfl_sync(SLC_ALL_LANES, (uint64_t)value, SLC_WARP - 1),
                             __shfl_sync(SLC_ALL_LANES, (uint64_t)(value >> 64), SLC_WARP - 1));
    } else {
        return __shfl_sync(SLC_ALL_LANES, value, SLC_WARP - 1);
    }
}

/* Returns the sum of the values of all warp lanes before this warp lane. */
template <typename Word> __device__ static inline Word slc_sum_before(Word value, uint32_t lane)
{
    Word sum = value;

    SLC_UNROLL
    for (unsigned d = 1; d < SLC_WARP; d *= 2) {
        const Word other = slc_shuffle_up(sum, d);

        sum += lane >= d ? other : 0;
    }
    return sum - value;
}

/* Returns true if the key is the tile's first key or greater than the last key of the previous warp
 * lane. The last key before warp lane 0 is start - 1, so a key of warp lane 0 must be at least
 * `start`. Only the low bits, which fit in Word, are compared: if those of `start` are all zero,
 * every key passes. */
template <typename Word>
__device__ static inline bool
slc_key_follows(Word key, Word last_of_lane, Word start, uint32_t nonzero, uint32_t lane)
{
    const Word before = slc_shuffle_up(last_of_lane, 1);

    if (nonzero == 0) {
        return key == start;
    }
    return lane == 0 ? key >= start : key > before;
}

/* Turns the warp lane's gaps of a group into keys; nonzeros that do not exist get the last key.
 * `start` is slc_key_range.start. Returns false if keys do not ascend, or if the tile's first key
 * is wrong. */
template <typename Word>
__device__ static inline bool
slc_keys_sum(const struct slc_group_place &place, Word start, Word keys[SLC_LANE_NNZ])
{
    Word sum = 0, below;
    bool sound;

    for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
        sum += slc_lane_has(place, j) ? keys[j] + 1 : 0;
        keys[j] = sum;
    }
    below = start + slc_sum_before(sum, place.lane) - 1;
    for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
        keys[j] += below;
    }
    sound = slc_key_follows(keys[0], keys[SLC_LANE_NNZ - 1], start, place.first + place.lane,
                            place.lane) ||
            !slc_lane_has(place, 0);
    for (uint32_t j = 1; j < SLC_LANE_NNZ; j++) {
        sound &= keys[j] > keys[j - 1] || !slc_lane_has(place, j);
    }
    return sound;
}

#endif
