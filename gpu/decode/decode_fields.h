/* Computes offsets for the codec `blco` (docs/FORMAT.md, section 7.3): a stored index has one field
 * per mode, and its sub-block stores the upper bits of the coordinates. Device code. */
#ifndef SLC_GPU_DECODE_FIELDS_H
#define SLC_GPU_DECODE_FIELDS_H

#include "gpu/cuda/fault.h"
#include "gpu/decode/decode_offsets.h"

/* A sub-block as stored in the block, at a multiple of 8 bytes. */
struct slc_sub_block {
    uint64_t upper;
    uint32_t first, count;
};

/* Returns the sub-block that contains nonzero i: the last sub-block whose first nonzero is not
 * after i. */
__device__ static inline uint32_t
slc_sub_block_of(const struct slc_sub_block *sub_blocks, uint32_t count, uint32_t i)
{
    uint32_t begin = 0, end = count;

    SLC_ROLL
    while (end - begin > 1) {
        const uint32_t middle = begin + (end - begin) / 2;

        if (__ldg(&sub_blocks[middle].first) <= i) {
            begin = middle;
        } else {
            end = middle;
        }
    }
    return begin;
}

__device__ static inline uint64_t
slc_index_field(const struct slc_encoded_layout *layout, unsigned n, uint64_t index)
{
    const uint32_t bits = layout->lo[n].bits;

    return bits == 0 ? 0 : index >> layout->field_shift[n] & slc_low_bits<uint64_t>(bits);
}

/* Returns true if the index belongs to a key whose low 64 bits are `lo`. */
__device__ static inline bool
slc_index_is_of_key(const struct slc_encoded_layout *layout, uint64_t index, uint64_t lo)
{
    SLC_ROLL
    for (unsigned n = 0; n < layout->order; n++) {
        uint64_t field = lo;

        slc_compress_words<uint64_t, 1>(&layout->lo[n], &field);
        if (slc_index_field(layout, n, index) != field) {
            return false;
        }
    }
    return true;
}

/* Stores the offsets of nonzero i of the group and returns its fault. Bits outside all fields are
 * also a fault. */
__device__ static inline unsigned slc_fields_nonzero(const struct slc_encoded_layout *layout,
                                                     const struct slc_gpu_tile *tile,
                                                     const struct slc_group_place &place,
                                                     uint32_t i,
                                                     const struct slc_offset_place &to)
{
    const struct slc_encoded_tile *t = &tile->tile;
    const struct slc_sub_block *sub_blocks =
        reinterpret_cast<const struct slc_sub_block *>(tile->block + t->sub_blocks_at);
    const uint64_t *indices = reinterpret_cast<const uint64_t *>(tile->block + t->indices_at);
    const uint32_t of_tile = place.first + slc_least(i, place.size - 1);
    const uint32_t s = slc_sub_block_of(sub_blocks, t->sub_block_count, of_tile);
    const uint64_t index = __ldg(indices + of_tile), upper = __ldg(&sub_blocks[s].upper);
    uint64_t used = 0;
    bool inside = true;

    SLC_ROLL
    for (unsigned n = 0; n < layout->order; n++) {
        const uint64_t field = slc_index_field(layout, n, index);

        used |= field << layout->field_shift[n] % 64;
        inside &= slc_offset_store(to, t, n, i, field + slc_coordinate_above(layout, n, upper));
    }
    if ((of_tile == 0 && !slc_index_is_of_key(layout, index, t->first_lo)) ||
        (of_tile == t->nnz - 1 && !slc_index_is_of_key(layout, index, t->last_lo))) {
        return SLC_GPU_FAULT_KEYS;
    }
    return inside && used == index ? SLC_GPU_SOUND : SLC_GPU_FAULT_OFFSET;
}

/* Stores the offsets of a group; each warp lane stores one nonzero at a time. Returns a fault if a
 * coordinate is outside the tile, or if the tile's first or last nonzero does not match the tile's
 * first or last key. Like storage/codec/decode_blco.c, the function does not check that the keys
 * between the first and the last key ascend. */
__device__ static inline unsigned slc_fields_group(const struct slc_encoded_layout *layout,
                                                   const struct slc_gpu_tile *tile,
                                                   const struct slc_group_place &place,
                                                   const struct slc_offset_place &to)
{
    unsigned fault = SLC_GPU_SOUND;

    SLC_ROLL
    for (uint32_t i = place.lane; i < SLC_GROUP_NNZ; i += SLC_WARP) {
        slc_gpu_note(&fault, false, slc_fields_nonzero(layout, tile, place, i, to));
    }
    return fault;
}

#endif
