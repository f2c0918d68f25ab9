/* Decoder on the device: a warp decodes a run of up to SLC_RUN_NNZ nonzeros of a tile,
 * independently of other runs, starting at the run's base. Device code, included by kernels.
 *
 * Cost in sm_90 instructions per nonzero, for codec `packed` and a tile whose keys differ in 32
 * bits: 47 for the key, 24 per mode, 18 if the group has exceptions, 35 for an integer value, and
 * 24 to find the run in a full tile. */
#ifndef SLC_GPU_DECODE_H
#define SLC_GPU_DECODE_H

#include "gpu/cuda/fault.h"
#include "gpu/decode/decode_fields.h"
#include "gpu/decode/decode_keys.h"
#include "gpu/decode/decode_values.h"

/* State of a warp that decodes the keys of a run. */
struct slc_key_state {
    struct slc_key_range range;
    struct slc_patched_cursor gaps; /* used only with codec `packed` */
    bool moved;      /* bits 32..127 of range.start have changed since `addend` was computed */
    uint32_t addend; /* result of slc_addend_of_key; warp lane n has the result for mode n */
    unsigned fault;  /* first fault of this warp lane */
};

/* Nonzeros of a run that a warp decodes. */
struct slc_run_part {
    uint32_t begin, end;
};

/* Decodes the warp lane's gaps of a group. */
template <typename Word>
__device__ static inline void slc_decode_gaps(const struct slc_gpu_tile *tile,
                                              const struct slc_group_place &place,
                                              const struct slc_patched_group &group,
                                              struct slc_decode_scratch *scratch,
                                              struct slc_key_state *state,
                                              Word gaps[SLC_LANE_NNZ])
{
    if (tile->tile.encoding == SLC_ENCODING_PLANES) {
        slc_planes_read(slc_gap_planes(tile), place, gaps);
    } else {
        slc_gpu_note(&state->fault, slc_patched_read<Word>(group, place, scratch, gaps),
                     SLC_GPU_FAULT_PATCH);
    }
}

/* Decodes a group whose gaps fit in a Word and whose keys agree in all higher bits. */
template <typename Word>
__device__ static inline void slc_decode_group_words(const struct slc_encoded_layout *layout,
                                                     const struct slc_gpu_tile *tile,
                                                     const struct slc_group_place &place,
                                                     const struct slc_patched_group &group,
                                                     struct slc_decode_scratch *scratch,
                                                     const struct slc_offset_place &to,
                                                     struct slc_key_state *state)
{
    const struct slc_encoded_tile *t = &tile->tile;
    const slc_wide start = state->range.start;
    Word keys[SLC_LANE_NNZ];
    bool inside = true;

    slc_decode_gaps(tile, place, group, scratch, state, keys);
    slc_gpu_note(&state->fault, slc_keys_sum(place, (Word)start, keys), SLC_GPU_FAULT_KEYS);
    if (to.offsets == nullptr) {
        /* only the next key is needed */
    } else if constexpr (sizeof(Word) == 4) {
        if (state->moved) {
            state->moved = false;
            state->addend = slc_addend_of_key(layout, t, start, place.lane);
        }
        inside = slc_offsets_of_words(layout, t, place.lane, state->addend, keys, to);
    } else {
        inside =
            slc_offsets_of_long_words(layout, t, place.lane, (uint64_t)(start >> 64), keys, to);
    }
    slc_gpu_note(&state->fault, inside, SLC_GPU_FAULT_OFFSET);
    state->range.start = (start & ~(slc_wide)slc_low_bits<Word>(8 * sizeof(Word))) +
                         slc_shuffle_last(keys[SLC_LANE_NNZ - 1]) + 1;
}

/* Decodes any group: each warp lane decodes one nonzero at a time. */
__device__ static inline void slc_decode_group_wide(const struct slc_encoded_layout *layout,
                                                    const struct slc_gpu_tile *tile,
                                                    const struct slc_group_place &place,
                                                    const struct slc_patched_group &group,
                                                    const struct slc_offset_place &to,
                                                    struct slc_key_state *state)
{
    const bool planes = tile->tile.encoding == SLC_ENCODING_PLANES;

    slc_gpu_note(&state->fault, planes || slc_patched_is_sound(group, place), SLC_GPU_FAULT_PATCH);
    SLC_ROLL
    for (uint32_t begin = 0; begin < SLC_GROUP_NNZ; begin += SLC_WARP) {
        const uint32_t i = begin + place.lane;
        const bool there = i < place.size;
        slc_wide step = 0, key;

        if (there) {
            step = 1 + (planes ? slc_planes_number(slc_gap_planes(tile), place.first + i)
                               : slc_patched_number(group, place.size, i));
        }
        key = state->range.start + slc_sum_before(step, place.lane) + step - 1;
        const bool follows =
            slc_key_follows(key, key, state->range.start, place.first + i, place.lane);

        slc_gpu_note(&state->fault, follows || !there, SLC_GPU_FAULT_KEYS);
        if (to.offsets != nullptr) {
            slc_gpu_note(&state->fault, slc_offsets_of_key(layout, &tile->tile, i, key, to),
                         SLC_GPU_FAULT_OFFSET);
        }
        state->range.start = slc_shuffle_last(key) + 1;
    }
}

/* Decodes a group in the shortest words that suffice. 32 bits suffice if the keys of the tile
 * differ only in the low 32 bits, so that gaps have at most 32 bits, and if the coordinates of each
 * mode differ only in the low 32 bits. The last key of the group is at most the last key of the
 * range, and its distance from the group's first key is at most the sum of the largest gaps that
 * the bit width can express. */
__device__ static inline void slc_decode_group(const struct slc_encoded_layout *layout,
                                               const struct slc_gpu_tile *tile,
                                               const struct slc_group_place &place,
                                               struct slc_decode_scratch *scratch,
                                               const struct slc_offset_place &to,
                                               struct slc_key_state *state)
{
    const struct slc_encoded_tile *t = &tile->tile;
    struct slc_patched_group group = {nullptr, 0, 0, 0};
    uint32_t bits = 8 * t->gap_bytes;

    if (t->encoding == SLC_ENCODING_PACKED) {
        group = slc_patched_next(tile->block, t->gaps, place.size, &state->gaps);
        bits = group.width + group.extra;
    }
    const slc_wide start = state->range.start;
    slc_wide differ = 0;

    if (t->key_words > 1) {
        slc_wide last = state->range.last;

        if (bits <= 64 && start + ((slc_wide)SLC_GROUP_NNZ << bits) < last) {
            last = start + ((slc_wide)SLC_GROUP_NNZ << bits);
        }
        differ = start ^ last;
    }
    if (bits <= 32 && differ >> 32 == 0 && t->long_modes == 0) {
        slc_decode_group_words<uint32_t>(layout, tile, place, group, scratch, to, state);
    } else if (bits <= 64 && differ >> 64 == 0) {
        slc_decode_group_words<uint64_t>(layout, tile, place, group, scratch, to, state);
    } else {
        slc_decode_group_wide(layout, tile, place, group, to, state);
    }
    state->moved |= t->key_words > 1 && (state->range.start ^ start) >> 32 != 0;
}

/* Starts a run of codec `packed` or `lz4`. */
__device__ static inline void slc_decode_open_keys(const struct slc_encoded_layout *layout,
                                                   const struct slc_gpu_tile *tile,
                                                   uint32_t run,
                                                   uint32_t count,
                                                   uint32_t lane,
                                                   struct slc_key_state *state)
{
    const struct slc_encoded_tile *t = &tile->tile;
    bool sound;

    if (t->encoding == SLC_ENCODING_PACKED) {
        sound = slc_packed_range(tile, run, count, &state->range);
        state->gaps = slc_patched_seek(tile->block, t->gaps, run, lane);
    } else {
        sound = slc_planes_range(tile, run, count, lane, &state->range);
    }
    state->addend = slc_addend_of_key(layout, t, state->range.start, lane);
    slc_gpu_note(&state->fault, sound, SLC_GPU_FAULT_KEYS);
}

/* Decodes a part of run `run` (from 0) of a tile: its nonzeros [part.begin, part.end), or those of
 * them that exist. Returns their number. All warp lanes call the function together, in
 * one-dimensional thread blocks. The value of nonzero i of the run is stored in values[i]. For each
 * mode n, its coordinate minus the tile's corner is stored in offsets[n * stride + i]; for any
 * input bytes, this offset is at most the tile's extent. Synchronize the warp before reading values
 * or offsets that other warp lanes stored. Bytes that contradict the tile's description set *fault;
 * offsets are then still within the tile's extents, and invalid values become zeros.
 *
 * Needs: part.begin and part.end are multiples of SLC_GROUP_NNZ; offsets and values aligned to 16
 * bytes, in memory that only this warp uses; `stride` a multiple of 4; space for `stride` values.
 * Whole groups are written, so `stride` must be at least the number of nonzeros rounded up to a
 * multiple of SLC_GROUP_NNZ.
 *
 * Cost: also reads the gaps of the run's groups before the part, because a key is the sum of all
 * gaps before it. */
template <typename T>
__device__ static inline uint32_t slc_decode_part(const struct slc_encoded_layout *layout,
                                                  const struct slc_gpu_tile *tile,
                                                  uint32_t run,
                                                  const struct slc_run_part &part,
                                                  struct slc_decode_scratch *scratch,
                                                  uint32_t *offsets,
                                                  uint32_t stride,
                                                  T *values,
                                                  struct slc_gpu_fault *fault)
{
    const struct slc_encoded_tile *t = &tile->tile;
    const uint32_t first = run * SLC_RUN_NNZ, lane = threadIdx.x % SLC_WARP;
    const uint32_t count = slc_least(t->nnz - first, SLC_RUN_NNZ);
    const uint32_t end = slc_least(count, part.end);
    const bool fields = t->encoding == SLC_ENCODING_FIELDS;
    struct slc_patched_cursor integers = {};
    struct slc_key_state state = {};

    if (part.begin >= end) {
        return 0;
    }
    if (!fields) {
        slc_decode_open_keys(layout, tile, run, count, lane, &state);
    }
    if (t->form == SLC_FORM_INTEGER) {
        integers = slc_patched_seek(tile->block, t->integers, run, lane);
    }
    SLC_ROLL
    for (uint32_t done = 0; done < end; done += SLC_GROUP_NNZ) {
        const struct slc_group_place place = {first + done, slc_least(count - done, SLC_GROUP_NNZ),
                                              lane};
        const bool wanted = done >= part.begin;
        const struct slc_offset_place to = {wanted ? offsets + done : nullptr, stride};

        if (!fields) {
            slc_decode_group(layout, tile, place, scratch, to, &state);
        } else if (wanted) {
            slc_gpu_note(&state.fault, false, slc_fields_group(layout, tile, place, to));
        }
        if (wanted) {
            T stored[SLC_LANE_NNZ];

            slc_gpu_note(&state.fault, false,
                         slc_values_read(tile, place, &integers, scratch, stored));
            slc_values_store(values + done, lane, stored);
        } else if (t->form == SLC_FORM_INTEGER) {
            slc_patched_next(tile->block, t->integers, place.size, &integers);
        }
    }
    slc_gpu_note(&state.fault, fields || end < count || state.range.start == state.range.last + 1,
                 SLC_GPU_FAULT_KEYS);
    slc_gpu_report(fault, tile, state.fault);
    return end - part.begin;
}

/* Decodes a whole run, with the arguments and results of slc_decode_part. */
template <typename T>
__device__ static inline uint32_t slc_decode_run(const struct slc_encoded_layout *layout,
                                                 const struct slc_gpu_tile *tile,
                                                 uint32_t run,
                                                 struct slc_decode_scratch *scratch,
                                                 uint32_t *offsets,
                                                 uint32_t stride,
                                                 T *values,
                                                 struct slc_gpu_fault *fault)
{
    const struct slc_run_part whole = {0, SLC_RUN_NNZ};

    return slc_decode_part(layout, tile, run, whole, scratch, offsets, stride, values, fault);
}

#endif
