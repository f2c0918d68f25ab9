/* Reads the values of a tile in any stored form (docs/FORMAT.md, section 7.1) as f64 or f32. Device
 * code.
 *
 * A stored value must be finite and, unless the file may have zeros, not zero; the check precedes
 * the rounding to f32. Invalid values become zeros. */
#ifndef SLC_GPU_DECODE_VALUES_H
#define SLC_GPU_DECODE_VALUES_H

#include "gpu/decode/decode_patched.h"

#include <math.h>

/* Largest magnitude in the form `integer`: f64 represents every integer up to 2^53. */
#define SLC_INTEGER_MAX (INT64_C(1) << 53)

/* Returns the fault of values: unsound values, or zeros in a tile that must not have them. */
__device__ static inline unsigned
slc_values_fault(const struct slc_gpu_tile *tile, bool sound, bool zeros)
{
    return sound && (!zeros || tile->tile.has_zeros != 0) ? SLC_GPU_SOUND : SLC_GPU_FAULT_VALUE;
}

/* Converts the warp lane's stored values. Returns a fault if a value is invalid, ignoring positions
 * after the group's last nonzero. */
template <typename Stored, typename T>
__device__ static inline unsigned slc_values_check(const struct slc_gpu_tile *tile,
                                                   const struct slc_group_place &place,
                                                   const Stored stored[SLC_LANE_NNZ],
                                                   T values[SLC_LANE_NNZ])
{
    bool sound = true, zeros = false;

    for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
        /* Infinity or NaN minus itself is NaN, which is unequal to every number. */
        const bool finite = stored[j] - stored[j] == 0; // NOLINT(misc-redundant-expression)

        values[j] = finite ? (T)stored[j] : 0;
        sound &= finite || !slc_lane_has(place, j);
        zeros |= stored[j] == 0 && slc_lane_has(place, j);
    }
    return slc_values_fault(tile, sound, zeros);
}

/* Reads values that are stored consecutively. */
template <typename Stored, typename T>
__device__ static inline unsigned slc_values_plain(const struct slc_gpu_tile *tile,
                                                   const struct slc_group_place &place,
                                                   T values[SLC_LANE_NNZ])
{
    const Stored *from =
        reinterpret_cast<const Stored *>(tile->block + tile->tile.values_at) + place.first;
    Stored stored[SLC_LANE_NNZ];

    for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
        stored[j] = __ldg(from + slc_lane_index(place, j));
    }
    return slc_values_check(tile, place, stored, values);
}

/* Reads values from byte planes. `Word` is the unsigned integer type with the width of a value. */
template <typename Word, typename Stored, typename T>
__device__ static inline unsigned slc_values_planes(const struct slc_gpu_tile *tile,
                                                    const struct slc_group_place &place,
                                                    T values[SLC_LANE_NNZ])
{
    const struct slc_encoded_tile *t = &tile->tile;
    const uint8_t *bytes = (t->lz4.bytes > 0 ? tile->expanded : tile->block) + t->values_at;
    Word words[SLC_LANE_NNZ];
    Stored stored[SLC_LANE_NNZ];

    static_assert(sizeof(Word) == sizeof(Stored), "the same bits");
    slc_planes_read(slc_planes_at(bytes, t->nnz, sizeof(Word)), place, words);
    memcpy(stored, words, sizeof stored);
    return slc_values_check(tile, place, stored, values);
}

template <typename T>
__device__ static inline unsigned slc_values_dictionary(const struct slc_gpu_tile *tile,
                                                        const struct slc_group_place &place,
                                                        T values[SLC_LANE_NNZ])
{
    const struct slc_encoded_tile *t = &tile->tile;
    const double *dictionary = reinterpret_cast<const double *>(tile->block + t->dictionary_at);
    const struct slc_bit_string indices = slc_bit_string_at(tile->block + t->values_at);
    double stored[SLC_LANE_NNZ];

    for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
        const uint32_t i = place.first + slc_lane_index(place, j);
        const uint32_t index = slc_bits_read<uint32_t>(indices, i * t->index_width, t->index_width);

        /* an invalid index becomes an invalid value */
        stored[j] = index < t->dictionary_count ? __ldg(dictionary + index) : (double)INFINITY;
    }
    return slc_values_check(tile, place, stored, values);
}

/* Reads integer values: the lowest integer `low` plus a stored number. `Integer` must be wide
 * enough for this sum. */
template <typename Word, typename Integer, typename T>
__device__ static inline unsigned slc_values_integers(const struct slc_gpu_tile *tile,
                                                      const struct slc_patched_group &group,
                                                      const struct slc_group_place &place,
                                                      Integer low,
                                                      struct slc_decode_scratch *scratch,
                                                      T values[SLC_LANE_NNZ])
{
    Word above[SLC_LANE_NNZ];
    bool sound = true, zeros = false;

    if (!slc_patched_read<Word>(group, place, scratch, above)) {
        for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
            values[j] = 0;
        }
        return SLC_GPU_FAULT_PATCH;
    }
    for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
        const Integer value = low + (Integer)above[j];
        const bool good = sizeof(Integer) < 8 || value <= SLC_INTEGER_MAX;

        values[j] = good ? (T)value : 0;
        sound &= good || !slc_lane_has(place, j);
        zeros |= value == 0 && slc_lane_has(place, j);
    }
    return slc_values_fault(tile, sound, zeros);
}

/* If the lowest integer and a stored number each have at most this number of bits, their sum is
 * less than 2^31. */
enum { SLC_SMALL_INTEGER_BITS = 30 };

template <typename T>
__device__ static inline unsigned slc_values_integer_group(const struct slc_gpu_tile *tile,
                                                           const struct slc_group_place &place,
                                                           struct slc_patched_cursor *cursor,
                                                           struct slc_decode_scratch *scratch,
                                                           T values[SLC_LANE_NNZ])
{
    const struct slc_patched_group group =
        slc_patched_next(tile->block, tile->tile.integers, place.size, cursor);
    const int64_t low = tile->tile.low;
    const int64_t small = INT64_C(1) << SLC_SMALL_INTEGER_BITS;

    if (group.width + group.extra <= SLC_SMALL_INTEGER_BITS && low >= -small && low < small) {
        return slc_values_integers<uint32_t, int32_t>(tile, group, place, (int32_t)low, scratch,
                                                      values);
    }
    return slc_values_integers<uint64_t, int64_t>(tile, group, place, low, scratch, values);
}

/* Reads the warp lane's values of a group. `cursor` is the position in the tile's integers, if the
 * tile has integers. */
template <typename T>
__device__ static inline unsigned slc_values_read(const struct slc_gpu_tile *tile,
                                                  const struct slc_group_place &place,
                                                  struct slc_patched_cursor *cursor,
                                                  struct slc_decode_scratch *scratch,
                                                  T values[SLC_LANE_NNZ])
{
    switch (tile->tile.form) {
    case SLC_FORM_CONSTANT: {
        const double value =
            __ldg(reinterpret_cast<const double *>(tile->block + tile->tile.values_at));
        const double stored[SLC_LANE_NNZ] = {value, value, value, value};

        return slc_values_check(tile, place, stored, values);
    }
    case SLC_FORM_INTEGER:
        return slc_values_integer_group(tile, place, cursor, scratch, values);
    case SLC_FORM_DICTIONARY:
        return slc_values_dictionary(tile, place, values);
    case SLC_FORM_F32:
        return slc_values_plain<float>(tile, place, values);
    case SLC_FORM_F64:
        return slc_values_plain<double>(tile, place, values);
    case SLC_FORM_F32_LZ4:
        return slc_values_planes<uint32_t, float>(tile, place, values);
    default:
        return slc_values_planes<uint64_t, double>(tile, place, values);
    }
}

__device__ static inline void
slc_values_store(float *to, uint32_t lane, const float values[SLC_LANE_NNZ])
{
    reinterpret_cast<float4 *>(to)[lane] = make_float4(values[0], values[1], values[2], values[3]);
}

__device__ static inline void
slc_values_store(double *to, uint32_t lane, const double values[SLC_LANE_NNZ])
{
    reinterpret_cast<double2 *>(to)[2 * lane] = make_double2(values[0], values[1]);
    reinterpret_cast<double2 *>(to)[2 * lane + 1] = make_double2(values[2], values[3]);
}

#endif
