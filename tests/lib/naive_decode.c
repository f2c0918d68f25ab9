/* Decodes described blocks bit by bit. */
#include "naive_decode.h"

#include "base/compress.h"
#include "base/key.h"
#include "base/memory/bytes.h"

#include <lz4.h>
#include <math.h>
#include <string.h>

/* The bytes to decode, and their description. */
struct source {
    const struct slc_encoded_layout *layout;
    const struct slc_encoded_tile *tile;
    const uint8_t *block;
    const uint8_t *planes; /* buffer to which planes_at and values_at refer */
    uint32_t start, nnz;   /* start and length of the run */
};

bool slc_naive_expand(const struct slc_encoded_block *block,
                      const struct slc_encoded_tile *tile,
                      uint8_t *expanded)
{
    const struct slc_encoded_lz4 *lz4 = &tile->lz4;

    return lz4->bytes == 0 ||
           LZ4_decompress_safe((const char *)block->data + lz4->at,
                               (char *)expanded + lz4->expanded_at, (int)lz4->bytes,
                               (int)lz4->expanded_bytes) == (int)lz4->expanded_bytes;
}

static slc_u128 get_bits(const uint8_t *bytes, uint64_t bit, unsigned width)
{
    slc_u128 value = 0;

    for (unsigned b = 0; b < width; b++) {
        const uint64_t at = bit + b;

        value |= (slc_u128)(bytes[at / 8] >> at % 8 & 1) << b;
    }
    return value;
}

static uint32_t bytes_of_bits(uint64_t bits)
{
    return (uint32_t)((bits + 7) / 8);
}

/* The numbers of the run: all its groups, starting after the groups before them. */
static bool
get_patched(const struct source *source, const struct slc_encoded_patched *at, slc_u128 *numbers)
{
    const uint8_t *widths = source->block + at->widths_at, *extras = source->block + at->extras_at;
    const uint8_t *counts = source->block + at->counts_at, *data = source->block + at->data_at;

    for (uint32_t first = 0; first < source->start + source->nnz; first += SLC_GROUP_NNZ) {
        const uint32_t group = first / SLC_GROUP_NNZ, rest = source->tile->nnz - first;
        const uint32_t size = rest < SLC_GROUP_NNZ ? rest : SLC_GROUP_NNZ;
        const uint8_t *positions = data + bytes_of_bits((uint64_t)size * widths[group]);
        const uint8_t *high = positions + counts[group];

        for (uint32_t i = 0; i < size && first >= source->start; i++) {
            numbers[first - source->start + i] =
                get_bits(data, (uint64_t)i * widths[group], widths[group]);
        }
        for (uint32_t e = 0; e < counts[group] && first >= source->start; e++) {
            if (positions[e] >= size || (e > 0 && positions[e] <= positions[e - 1])) {
                return false;
            }
            numbers[first - source->start + positions[e]] |=
                get_bits(high, (uint64_t)e * extras[group], extras[group]) << widths[group];
        }
        data = high + bytes_of_bits((uint64_t)counts[group] * extras[group]);
    }
    return true;
}

/* Coordinate of mode n of a key, from as many words of the key as vary in the tile. */
static uint64_t coordinate(const struct source *source, unsigned n, slc_u128 key)
{
    const struct slc_encoded_layout *layout = source->layout;
    const struct slc_compress *lo = &layout->lo[n];
    uint64_t high = source->tile->first_hi;

    if (source->tile->key_words == 1) {
        return source->tile->above[n] + slc_compress_apply(&layout->word[n], (uint32_t)key);
    }
    if (source->tile->key_words == 4) {
        high = (uint64_t)(key >> 64);
    }
    high = slc_compress_apply(&layout->hi[n], high);
    return slc_compress_apply(lo, (uint64_t)key) | (lo->bits < 64 ? high << lo->bits : 0);
}

static bool store_coordinate(const struct source *source,
                             unsigned n,
                             uint32_t i,
                             uint64_t value,
                             struct slc_naive_run *decoded)
{
    decoded->coords[n][i] = value;
    return value - source->tile->corner[n] <= source->tile->extent[n];
}

/* Coordinates from the gaps of the run, whose first key is at least `base` above the tile's
 * first key. */
static bool sum_gaps(const struct source *source,
                     slc_u128 base,
                     const slc_u128 *gaps,
                     struct slc_naive_run *decoded)
{
    const slc_u128 first = slc_key_join(source->tile->first_lo, source->tile->first_hi);
    const slc_u128 span = slc_key_join(source->tile->last_lo, source->tile->last_hi) - first;
    slc_u128 above = base; /* next key if its gap is 0 */

    for (uint32_t i = 0; i < source->nnz; i++) {
        /* Fails if `above` exceeds the last key or reaches 2^128. */
        if (above > span || (source->start + i > 0 && above == 0) || gaps[i] > span - above) {
            return false;
        }
        above += gaps[i];
        for (unsigned n = 0; n < source->layout->order; n++) {
            if (!store_coordinate(source, n, i, coordinate(source, n, first + above), decoded)) {
                return false;
            }
        }
        above++;
    }
    return source->start + source->nnz < source->tile->nnz || above - 1 == span;
}

static bool decode_packed(const struct source *source, struct slc_naive_run *decoded)
{
    const struct slc_encoded_tile *tile = source->tile;
    const uint32_t run = source->start / SLC_RUN_NNZ;
    slc_u128 gaps[SLC_RUN_NNZ];

    return get_patched(source, &tile->gaps, gaps) &&
           sum_gaps(source,
                    get_bits(source->block + tile->bases_at, (uint64_t)run * tile->base_width,
                             tile->base_width),
                    gaps, decoded);
}

/* Element i of `bytes` planes with one byte per nonzero. */
static slc_u128 get_planes(const struct source *source, uint64_t at, unsigned bytes, uint32_t i)
{
    slc_u128 value = 0;

    for (unsigned b = 0; b < bytes; b++) {
        value |= (slc_u128)source->planes[at + (uint64_t)b * source->tile->nnz + i] << 8 * b;
    }
    return value;
}

static bool decode_planes(const struct source *source, struct slc_naive_run *decoded)
{
    const struct slc_encoded_tile *tile = source->tile;
    slc_u128 gaps[SLC_RUN_NNZ], base = 0;

    for (uint32_t i = 0; i < source->start; i++) {
        base += get_planes(source, tile->planes_at, tile->gap_bytes, i) + 1;
    }
    for (uint32_t i = 0; i < source->nnz; i++) {
        gaps[i] = get_planes(source, tile->planes_at, tile->gap_bytes, source->start + i);
    }
    return sum_gaps(source, base, gaps, decoded);
}

/* Upper key bits of nonzero i of the tile: those of the last sub-block that begins at or before
 * it. */
static uint64_t upper_bits(const struct source *source, uint32_t i)
{
    const uint8_t *sub_block = source->block + source->tile->sub_blocks_at;
    uint64_t upper = 0;

    for (uint32_t s = 0; s < source->tile->sub_block_count; s++) {
        if (slc_load_u32(sub_block + 8) <= i) {
            upper = slc_load_u64(sub_block);
        }
        sub_block += 16;
    }
    return upper;
}

static bool decode_fields(const struct source *source, struct slc_naive_run *decoded)
{
    const struct slc_encoded_layout *layout = source->layout;

    for (uint32_t i = 0; i < source->nnz; i++) {
        const uint64_t at = source->tile->indices_at + UINT64_C(8) * (source->start + i);
        const uint64_t upper = upper_bits(source, source->start + i);
        uint64_t used = 0;

        for (unsigned n = 0; n < layout->order; n++) {
            const unsigned bits = layout->lo[n].bits, shift = layout->field_shift[n];
            const uint64_t high = slc_compress_apply(&layout->hi[n], upper);
            const uint64_t low = (uint64_t)get_bits(source->block + at, shift, bits);

            used |= bits > 0 ? low << shift : 0;
            if (!store_coordinate(source, n, i, low | (bits < 64 ? high << bits : 0), decoded)) {
                return false;
            }
        }
        if (used != slc_load_u64(source->block + at)) {
            return false; /* fault: bits outside all fields are set */
        }
    }
    return true;
}

static double double_of_bits(uint64_t bits)
{
    uint8_t bytes[8];

    slc_store_u64(bytes, bits);
    return slc_load_f64(bytes);
}

static double float_of_bits(uint32_t bits)
{
    uint8_t bytes[4];

    slc_store_u32(bytes, bits);
    return (double)slc_load_f32(bytes);
}

/* Value of nonzero i of the tile in any form except integers; zero if it has none. */
static double get_value(const struct source *source, uint32_t i)
{
    const struct slc_encoded_tile *tile = source->tile;
    const uint8_t *values = source->block + tile->values_at;
    uint64_t index;

    switch ((enum slc_value_form)tile->form) {
    case SLC_FORM_CONSTANT:
        return slc_load_f64(values);
    case SLC_FORM_INTEGER:
        break;
    case SLC_FORM_DICTIONARY:
        index = (uint64_t)get_bits(values, (uint64_t)i * tile->index_width, tile->index_width);
        return index < tile->dictionary_count
                   ? slc_load_f64(source->block + tile->dictionary_at + 8 * index)
                   : 0;
    case SLC_FORM_F32:
        return (double)slc_load_f32(values + 4 * (uint64_t)i);
    case SLC_FORM_F64:
        return slc_load_f64(values + 8 * (uint64_t)i);
    case SLC_FORM_F32_LZ4:
        return float_of_bits((uint32_t)get_planes(source, tile->values_at, 4, i));
    case SLC_FORM_F64_LZ4:
        return double_of_bits((uint64_t)get_planes(source, tile->values_at, 8, i));
    }
    return 0;
}

static bool decode_integers(const struct source *source, struct slc_naive_run *decoded)
{
    const int64_t most = INT64_C(1) << 53; /* every integer up to this bound is a double */
    slc_u128 above[SLC_RUN_NNZ];

    if (!get_patched(source, &source->tile->integers, above)) {
        return false;
    }
    for (uint32_t i = 0; i < source->nnz; i++) {
        if (above[i] > (uint64_t)(most - source->tile->low)) {
            return false;
        }
        decoded->values[i] = (double)(source->tile->low + (int64_t)above[i]);
    }
    return true;
}

static bool decode_values(const struct source *source, struct slc_naive_run *decoded)
{
    const bool integers = source->tile->form == SLC_FORM_INTEGER;

    if (integers && !decode_integers(source, decoded)) {
        return false;
    }
    for (uint32_t i = 0; i < source->nnz; i++) {
        if (!integers) {
            decoded->values[i] = get_value(source, source->start + i);
        }
        if (!isfinite(decoded->values[i]) ||
            (decoded->values[i] == 0 && source->tile->has_zeros == 0)) {
            return false;
        }
    }
    return true;
}

bool slc_naive_decode(const struct slc_encoded_layout *layout,
                      const struct slc_encoded_block *block,
                      const struct slc_encoded_tile *tile,
                      const uint8_t *expanded,
                      uint32_t run,
                      struct slc_naive_run *decoded)
{
    struct source source = {layout, tile, block->data, NULL, run * SLC_RUN_NNZ, SLC_RUN_NNZ};
    bool sound = false;

    source.planes = tile->lz4.bytes > 0 ? expanded : source.block;
    if (source.nnz > tile->nnz - source.start) {
        source.nnz = tile->nnz - source.start;
    }
    decoded->nnz = source.nnz;
    switch ((enum slc_encoding)tile->encoding) {
    case SLC_ENCODING_PACKED:
        sound = decode_packed(&source, decoded);
        break;
    case SLC_ENCODING_PLANES:
        sound = decode_planes(&source, decoded);
        break;
    case SLC_ENCODING_FIELDS:
        sound = decode_fields(&source, decoded);
        break;
    }
    return sound && decode_values(&source, decoded);
}
