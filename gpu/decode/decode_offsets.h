/* Computes the offsets of every mode from keys, by the bit moves of struct slc_compress. Device
 * code.
 *
 * Cost: three operations per move. A 32-bit word needs at most five moves per mode, so keys are
 * processed in 32-bit words whenever all keys of a group agree in the higher bits. */
#ifndef SLC_GPU_DECODE_OFFSETS_H
#define SLC_GPU_DECODE_OFFSETS_H

#include "gpu/decode/decode_bits.h"

/* Destination of offsets. Each warp lane stores the offsets of its nonzeros 16 bytes at a time. */
struct slc_offset_place {
    /* offset of the group's first nonzero in mode 0, aligned to 16 bytes; NULL: no offsets are
     * computed */
    uint32_t *offsets;
    uint32_t stride; /* elements from one mode to the next; a multiple of SLC_LANE_NNZ */
};

/* Gathers the bits that `compress` selects in each of `count` words. Executes all moves, because
 * branches that skip moves without effect would take about as much time as they save. */
template <typename Word, unsigned count>
__device__ static inline void slc_compress_words(const struct slc_compress *compress,
                                                 Word words[count])
{
    const Word mask = (Word)compress->mask;

    for (unsigned i = 0; i < count; i++) {
        words[i] &= mask;
    }
    SLC_UNROLL
    for (unsigned s = 0; s < (sizeof(Word) == 4 ? SLC_COMPRESS_STEPS - 1 : SLC_COMPRESS_STEPS);
         s++) {
        const Word move = (Word)compress->move[s];

        for (unsigned i = 0; i < count; i++) {
            const Word moved = words[i] & move;

            words[i] = (words[i] ^ moved) | moved >> (1U << s);
        }
    }
}

/* Returns the contribution of key bits 64..127, which are `hi`, to the coordinate of mode n. */
__device__ static inline uint64_t
slc_coordinate_above(const struct slc_encoded_layout *layout, unsigned n, uint64_t hi)
{
    if (layout->hi[n].mask == 0) {
        return 0;
    }
    slc_compress_words<uint64_t, 1>(&layout->hi[n], &hi);
    return hi << layout->lo[n].bits;
}

/* Returns the coordinate of a key in mode n. */
__device__ static inline uint64_t
slc_coordinate(const struct slc_encoded_layout *layout, unsigned n, slc_wide key)
{
    uint64_t lo = (uint64_t)key;

    slc_compress_words<uint64_t, 1>(&layout->lo[n], &lo);
    return lo | slc_coordinate_above(layout, n, (uint64_t)(key >> 64));
}

/* Returns the contribution of bits 32..127 of `key` to offsets of mode `lane`, for
 * slc_offsets_of_words, or 0 if mode `lane` does not exist. */
__device__ static inline uint32_t slc_addend_of_key(const struct slc_encoded_layout *layout,
                                                    const struct slc_encoded_tile *tile,
                                                    slc_wide key,
                                                    uint32_t lane)
{
    uint64_t above;

    if (lane >= layout->order) {
        return 0;
    }
    above =
        tile->key_words == 1 ? tile->above[lane] : slc_coordinate(layout, lane, key >> 32 << 32);
    return (uint32_t)(above - tile->corner[lane]);
}

/* Stores the warp lane's offsets of mode n, limited to `extent`. Returns false if an offset
 * exceeded `extent`. */
template <typename Word>
__device__ static inline bool slc_offsets_store(const struct slc_offset_place &to,
                                                unsigned n,
                                                uint32_t lane,
                                                uint32_t extent,
                                                const Word found[SLC_LANE_NNZ])
{
    Word offset[SLC_LANE_NNZ], largest = 0;

    for (unsigned j = 0; j < SLC_LANE_NNZ; j++) {
        offset[j] = found[j];
        largest = offset[j] > largest ? offset[j] : largest;
    }
    if (largest > extent) {
        for (unsigned j = 0; j < SLC_LANE_NNZ; j++) {
            offset[j] = offset[j] < extent ? offset[j] : extent;
        }
    }
    reinterpret_cast<uint4 *>(to.offsets + (size_t)n * to.stride)[lane] = make_uint4(
        (uint32_t)offset[0], (uint32_t)offset[1], (uint32_t)offset[2], (uint32_t)offset[3]);
    return largest <= extent;
}

/* Stores offsets computed from the low words of keys that agree in all higher bits. In warp lane n,
 * `addend` is the result of slc_addend_of_key for mode n. A coordinate less than the corner wraps
 * to an offset greater than the extent, because the description, which was checked before,
 * guarantees that the corner and all 32-bit coordinates are within 2^32 of each other. Needs: a
 * tile without long_modes. */
__device__ static inline bool slc_offsets_of_words(const struct slc_encoded_layout *layout,
                                                   const struct slc_encoded_tile *tile,
                                                   uint32_t lane,
                                                   uint32_t addend,
                                                   const uint32_t keys[SLC_LANE_NNZ],
                                                   const struct slc_offset_place &to)
{
    bool sound = true;

    SLC_ROLL
    for (unsigned n = 0; n < layout->order; n++) {
        const uint32_t add = __shfl_sync(SLC_ALL_LANES, addend, (int)n);
        uint32_t field[SLC_LANE_NNZ];

        for (unsigned j = 0; j < SLC_LANE_NNZ; j++) {
            field[j] = keys[j];
        }
        slc_compress_words<uint32_t, SLC_LANE_NNZ>(&layout->word[n], field);
        for (unsigned j = 0; j < SLC_LANE_NNZ; j++) {
            field[j] += add;
        }
        sound &= slc_offsets_store(to, n, lane, tile->extent[n], field);
    }
    return sound;
}

/* Does the same as slc_offsets_of_words with the low 64 bits of keys. The upper 64 bits of every
 * key are `upper`. */
__device__ static inline bool slc_offsets_of_long_words(const struct slc_encoded_layout *layout,
                                                        const struct slc_encoded_tile *tile,
                                                        uint32_t lane,
                                                        uint64_t upper,
                                                        const uint64_t keys[SLC_LANE_NNZ],
                                                        const struct slc_offset_place &to)
{
    bool sound = true;

    SLC_ROLL
    for (unsigned n = 0; n < layout->order; n++) {
        const uint64_t add = slc_coordinate_above(layout, n, upper) - tile->corner[n];
        uint64_t field[SLC_LANE_NNZ];

        for (unsigned j = 0; j < SLC_LANE_NNZ; j++) {
            field[j] = keys[j];
        }
        slc_compress_words<uint64_t, SLC_LANE_NNZ>(&layout->lo[n], field);
        for (unsigned j = 0; j < SLC_LANE_NNZ; j++) {
            field[j] += add;
        }
        sound &= slc_offsets_store(to, n, lane, tile->extent[n], field);
    }
    return sound;
}

/* Stores the offset of nonzero i of the group in mode n, limited to `extent`. Returns false if the
 * offset exceeded `extent`. */
__device__ static inline bool slc_offset_store(const struct slc_offset_place &to,
                                               const struct slc_encoded_tile *tile,
                                               unsigned n,
                                               uint32_t i,
                                               uint64_t coordinate)
{
    const uint64_t offset = coordinate - tile->corner[n];
    const uint32_t extent = tile->extent[n];

    to.offsets[(size_t)n * to.stride + i] = offset < extent ? (uint32_t)offset : extent;
    return offset <= extent;
}

/* Stores the offsets of nonzero i of the group, whose key is `key`, in all modes. */
__device__ static inline bool slc_offsets_of_key(const struct slc_encoded_layout *layout,
                                                 const struct slc_encoded_tile *tile,
                                                 uint32_t i,
                                                 slc_wide key,
                                                 const struct slc_offset_place &to)
{
    bool sound = true;

    SLC_ROLL
    for (unsigned n = 0; n < layout->order; n++) {
        sound &= slc_offset_store(to, tile, n, i, slc_coordinate(layout, n, key));
    }
    return sound;
}

#endif
