/* Chooses the value form of a tile (docs/FORMAT.md, section 7.1) and writes the values. The value
 * form is a constant if all values are equal, otherwise the smallest of integers, dictionary, f32
 * and f64. If this form has more than half the size of plain f32 or f64, the encoder tries byte
 * planes, which LZ4 compresses, and uses them if they are smaller and save an eighth of the plain
 * size. Small integers or dictionaries are kept because byte planes decode several times slower.
 *
 * Cost: integers need one pass that measures them. A dictionary needs about three table lookups per
 * nonzero and is abandoned as soon as it can no longer be smaller. */
#include "base/encoded.h"
#include "base/memory/bytes.h"
#include "storage/codec/encode_internal.h"

#include <string.h>

/* Returns an integer value minus the smallest value of the tile. */
static inline uint64_t above_low(const struct slc_encoder *encoder, double value)
{
    return (uint64_t)((int64_t)value - encoder->integer_low);
}

static void find_span(struct slc_encoder *encoder)
{
    encoder->integer_low = (int64_t)encoder->survey.low;
    encoder->integer_span =
        (uint64_t)(int64_t)encoder->survey.high - (uint64_t)encoder->integer_low;
}

/* Stores the difference of every value from the smallest value in encoder->planes, as 64-bit
 * words. */
static uint64_t *integers_above(struct slc_encoder *encoder, const struct slc_tile_source *source)
{
    uint64_t *above = (uint64_t *)(void *)encoder->planes;

    slc_encode_ops()->above(source->values, source->nnz, encoder->integer_low, above);
    return above;
}

static uint64_t measure_integers(struct slc_encoder *encoder, const struct slc_tile_source *source)
{
    find_span(encoder);
    slc_patched_measure(integers_above(encoder, source), NULL, source->nnz, &encoder->integers);
    return 8 + encoder->integers.bytes;
}

/* Writes the integers as differences from the smallest integer. If byte planes have overwritten
 * these differences in encoder->planes (`overwritten`), computes them again. */
static uint8_t *write_integers(struct slc_encoder *encoder,
                               const struct slc_tile_source *source,
                               bool overwritten,
                               uint8_t *out)
{
    const uint64_t *above = overwritten ? integers_above(encoder, source)
                                        : (const uint64_t *)(const void *)encoder->planes;

    slc_store_u64(out, (uint64_t)encoder->integer_low);
    return slc_patched_write(&encoder->integers, above, NULL, out + 8);
}

static uint64_t dictionary_bytes(uint32_t count, uint32_t nnz)
{
    return 8 + UINT64_C(8) * count + slc_packed_bytes(nnz, slc_bits_for_length(count));
}

/* Returns the slot that holds `bits`, or the free slot for `bits`. */
static uint32_t find_slot(const struct slc_encoder *encoder, uint64_t bits)
{
    /* Fibonacci hashing: multiply by 2^64 / (golden ratio), and use the top 17 bits of the
     * product. */
    uint32_t slot = (uint32_t)((bits ^ bits >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 47);

    while (encoder->slots[slot] != 0 && encoder->distinct[encoder->slots[slot] - 1] != bits) {
        slot = (slot + 1) & (SLC_DISTINCT_SLOTS - 1);
    }
    return slot;
}

/* True if all values are integers in a range so small that every integer in the range has its own
 * slot. */
static bool few_integers(const struct slc_encoder *encoder)
{
    return encoder->survey.all_integer && encoder->integer_span < SLC_DISTINCT_SLOTS / 16;
}

/* Like collect_distinct, but faster. Call it after integers_above, and only if few_integers is
 * true. */
static uint32_t collect_integers(struct slc_encoder *encoder,
                                 const struct slc_tile_source *source,
                                 uint64_t bytes_max)
{
    const uint64_t *words = (const uint64_t *)(const void *)encoder->planes;
    uint32_t count = 0;

    memset(encoder->slots, 0, (encoder->integer_span + 1) * sizeof *encoder->slots);
    for (uint32_t i = 0; i < source->nnz; i++) {
        encoder->slots[words[i]] = 1;
    }
    for (uint64_t above = 0; above <= encoder->integer_span; above++) {
        if (encoder->slots[above] != 0) {
            double value = (double)(encoder->integer_low + (int64_t)above);

            encoder->distinct[count++] = slc_bits_f64(value);
        }
    }
    return dictionary_bytes(count, source->nnz) > bytes_max ? 0 : count;
}

/* Fills encoder->distinct; returns its size, or 0 if a dictionary would exceed `bytes_max`. */
static uint32_t collect_distinct(struct slc_encoder *encoder,
                                 const struct slc_tile_source *source,
                                 uint64_t bytes_max)
{
    uint32_t count = 0;

    memset(encoder->slots, 0, SLC_DISTINCT_SLOTS * sizeof *encoder->slots);
    for (uint32_t i = 0; i < source->nnz; i++) {
        uint64_t bits = slc_bits_f64(source->values[i]);
        uint32_t slot = find_slot(encoder, bits);

        if (encoder->slots[slot] == 0) {
            encoder->distinct[count++] = bits;
            encoder->slots[slot] = count;
            if (dictionary_bytes(count, source->nnz) > bytes_max) {
                return 0;
            }
        }
    }
    return count;
}

/* Sorts encoder->distinct by LSD radix sort. Skips bytes in which all values agree. */
static void sort_distinct(struct slc_encoder *encoder, uint32_t count)
{
    uint64_t *from = encoder->distinct, *to = (uint64_t *)(void *)encoder->planes;

    for (unsigned shift = 0; shift < 64; shift += 8) {
        uint32_t starts[257] = {0};
        uint64_t *sorted = to;

        for (uint32_t i = 0; i < count; i++) {
            starts[(from[i] >> shift & 0xff) + 1]++;
        }
        if (starts[(from[0] >> shift & 0xff) + 1] == count) {
            continue;
        }
        for (unsigned d = 1; d < 257; d++) {
            starts[d] += starts[d - 1];
        }
        for (uint32_t i = 0; i < count; i++) {
            to[starts[from[i] >> shift & 0xff]++] = from[i];
        }
        to = from;
        from = sorted;
    }
    if (from != encoder->distinct) {
        memcpy(encoder->distinct, from, count * sizeof *from);
    }
}

/* Fills encoder->planes with each value's index among the sorted distinct values (64-bit words). */
static const uint64_t *
find_indices(struct slc_encoder *encoder, const struct slc_tile_source *source, uint32_t count)
{
    uint64_t *words = (uint64_t *)(void *)encoder->planes;

    if (few_integers(encoder)) {
        for (uint32_t i = 0; i < count; i++) {
            double value;

            memcpy(&value, &encoder->distinct[i], sizeof value);
            encoder->slots[above_low(encoder, value)] = i;
        }
        integers_above(encoder, source);
        for (uint32_t i = 0; i < source->nnz; i++) {
            words[i] = encoder->slots[words[i]];
        }
        return words;
    }
    memset(encoder->slots, 0, SLC_DISTINCT_SLOTS * sizeof *encoder->slots);
    for (uint32_t i = 0; i < count; i++) {
        encoder->slots[find_slot(encoder, encoder->distinct[i])] = i + 1;
    }
    for (uint32_t i = 0; i < source->nnz; i++) {
        words[i] = encoder->slots[find_slot(encoder, slc_bits_f64(source->values[i]))] - 1;
    }
    return words;
}

static uint8_t *write_dictionary(struct slc_encoder *encoder,
                                 const struct slc_tile_source *source,
                                 uint32_t count,
                                 uint8_t *out)
{
    unsigned width = slc_bits_for_length(count);

    sort_distinct(encoder, count);
    slc_store_u32(out, count);
    slc_store_u32(out + 4, width);
    for (uint32_t i = 0; i < count; i++) {
        slc_store_u64(out + 8 + 8 * (size_t)i, encoder->distinct[i]);
    }
    out += 8 + 8 * (size_t)count;
    return slc_bits_pack(find_indices(encoder, source, count), NULL, source->nnz, width, out);
}

/* Writes byte planes. Returns the end of the planes, or NULL if the planes save too little or
 * exceed `bytes_max`. */
static uint8_t *try_planes(struct slc_encoder *encoder,
                           const struct slc_tile_source *source,
                           unsigned value_bytes,
                           uint64_t bytes_max,
                           uint8_t *out)
{
    uint64_t plain = (uint64_t)value_bytes * source->nnz;
    uint64_t capacity = plain - (plain + 7) / 8;

    capacity = capacity < bytes_max ? capacity : bytes_max;
    if (capacity <= 8) {
        return NULL;
    }
    slc_planes_of_values(source->values, source->nnz, value_bytes, encoder->planes);
    uint32_t stored = slc_lz4_compress(encoder, encoder->planes, plain, out + 8, capacity - 8);
    if (stored == 0) {
        return NULL;
    }
    slc_store_u32(out, stored);
    slc_store_u32(out + 4, 0);
    return out + 8 + stored;
}

static uint8_t *write_plain(const struct slc_tile_source *source, bool f32, uint8_t *out)
{
    for (uint32_t i = 0; i < source->nnz; i++) {
        if (f32) {
            slc_store_f32(out, (float)source->values[i]);
            out += 4;
        } else {
            slc_store_f64(out, source->values[i]);
            out += 8;
        }
    }
    return out;
}

uint8_t *slc_values_encode(struct slc_encoder *encoder,
                           const struct slc_tile_source *source,
                           uint8_t *section,
                           uint8_t *form)
{
    bool f32 = encoder->survey.all_f32;
    unsigned plain_bytes = f32 ? 4 : 8;
    uint64_t plain = (uint64_t)plain_bytes * source->nnz;
    uint64_t cost = plain;
    uint32_t distinct = 0;
    uint8_t *end = NULL;

    if (encoder->survey.low == encoder->survey.high) {
        *form = SLC_FORM_CONSTANT;
        slc_store_f64(section, source->values[0]);
        return section + 8;
    }
    *form = f32 ? SLC_FORM_F32 : SLC_FORM_F64;
    if (encoder->survey.all_integer) {
        uint64_t bytes = measure_integers(encoder, source);

        if (bytes <= cost) { /* on a tie, the value form with the lower number wins */
            *form = SLC_FORM_INTEGER;
            cost = bytes;
        }
    }
    if (dictionary_bytes(2, source->nnz) <= cost) {
        uint64_t most = *form == SLC_FORM_INTEGER ? cost - 1 : cost;

        distinct = few_integers(encoder) ? collect_integers(encoder, source, most)
                                         : collect_distinct(encoder, source, most);
    }
    if (distinct != 0) {
        *form = SLC_FORM_DICTIONARY;
        cost = dictionary_bytes(distinct, source->nnz);
    }
    if (cost > plain / 2) {
        end = try_planes(encoder, source, plain_bytes, cost - 1, section);
    }
    if (end != NULL) {
        *form = f32 ? SLC_FORM_F32_LZ4 : SLC_FORM_F64_LZ4;
    } else if (*form == SLC_FORM_INTEGER) {
        end = write_integers(encoder, source, cost > plain / 2, section);
    } else if (*form == SLC_FORM_DICTIONARY) {
        end = write_dictionary(encoder, source, distinct, section);
    } else {
        end = write_plain(source, f32, section);
    }
    return slc_pad8(section, end);
}
