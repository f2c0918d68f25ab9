/* Decodes the values of a tile in any value form (docs/FORMAT.md, section 7.1) to f64 or f32.
 *
 * In every value form, stored values are checked to be finite and, unless the file may have zeros,
 * not zero. Values are rounded to f32 only after this check. Cost: one or two cycles per
 * nonzero. */
#include "storage/codec/decode_internal.h"

#include <string.h>

/* Largest magnitude in value form `integer`: every integer up to 2^53 is a double. */
#define INTEGER_MAX (INT64_C(1) << 53)
/* Differences of two integers of value form `integer` are at most 2^54, which needs 55 bits. */
enum { INTEGER_BITS = 55 };

/* True if `value` is finite, and not 0 unless the file may have zeros. (Infinity or NaN minus
 * itself is NaN, which is unequal to 0.) */
static inline bool is_sound_f64(const struct slc_decoder *decoder, double value)
{
    return (decoder->has_zeros || value != 0) && value - value == 0;
}

/* Returns 0 for a valid value; `zero_fault` is the result for the value 0. The result is as wide as
 * the value, so that loops vectorize. */
static inline uint32_t fault_f32(float value, uint32_t zero_fault)
{
    return (value == 0 ? zero_fault : 0) | (value - value == 0 ? 0 : UINT32_MAX);
}

static bool
check_section(const uint8_t *section, uint64_t used, uint64_t bytes, struct slc_damage *damage)
{
    uint64_t padded = (used + 7) & ~UINT64_C(7);

    if (padded != bytes) {
        return slc_damage_set(damage, section, "the size of the values", bytes, "", padded);
    }
    if (!slc_bits_zero_from(section, used * 8, bytes)) {
        return slc_damage_set(damage, section + used, "padding after the values", 1, "", 0);
    }
    return true;
}

static bool
check_constant(const struct slc_decoder *decoder, const uint8_t *section, struct slc_damage *damage)
{
    if (!is_sound_f64(decoder, slc_load_f64(section))) {
        return slc_damage_set(damage, section, "the bit pattern of a value", slc_load_u64(section),
                              "that of a finite number other than ", 0);
    }
    return true;
}

static bool open_integers(struct slc_decoder *decoder,
                          const uint8_t *section,
                          uint64_t bytes,
                          struct slc_damage *damage)
{
    struct slc_value_plan *value = &decoder->value;
    uint64_t used = 0;

    value->low = (int64_t)slc_load_u64(section);
    if (value->low < -INTEGER_MAX || value->low > INTEGER_MAX) {
        return slc_damage_set(damage, section, "the smallest integer value", (uint64_t)value->low,
                              "of a magnitude at most ", INTEGER_MAX);
    }
    return slc_patched_open(&value->integers, section + 8, bytes - 8, decoder->entry.nnz,
                            INTEGER_BITS, &used, damage) &&
           check_section(section, 8 + used, bytes, damage);
}

static bool open_dictionary(struct slc_decoder *decoder,
                            const uint8_t *section,
                            uint64_t bytes,
                            struct slc_damage *damage)
{
    struct slc_value_plan *value = &decoder->value;
    uint32_t count = slc_load_u32(section);
    unsigned width = slc_bits_for_length(count);
    uint64_t before = 0, indices_at = 8 + UINT64_C(8) * count;

    if (count < 2 || count > SLC_TILE_NNZ) {
        return slc_damage_set(damage, section, "the size of a dictionary", count, "2 to ",
                              SLC_TILE_NNZ);
    }
    if ((slc_load_u32(section + 4)) != width) {
        return slc_damage_set(damage, section + 4, "the width of dictionary indices",
                              slc_load_u32(section + 4), "", width);
    }
    if (!check_section(section, indices_at + slc_packed_bytes(decoder->entry.nnz, width), bytes,
                       damage)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = slc_load_u64(section + 8 + 8 * (size_t)i);

        if (!is_sound_f64(decoder, slc_load_f64(section + 8 + 8 * (size_t)i)) ||
            (i > 0 && bits <= before)) {
            return slc_damage_set(damage, section + 8 + 8 * (size_t)i,
                                  "the bit pattern of a dictionary value", bits,
                                  "that of a finite number and above ", before);
        }
        before = bits;
    }
    value->dictionary = section + 8;
    value->dictionary_count = count;
    value->width = width;
    value->bytes = section + indices_at;
    if (!slc_bits_zero_from(value->bytes, (uint64_t)decoder->entry.nnz * width,
                            bytes - indices_at)) {
        return slc_damage_set(damage, value->bytes, "unused bits after dictionary indices", 1, "",
                              0);
    }
    return true;
}

static bool open_planes(struct slc_decoder *decoder,
                        unsigned value_bytes,
                        const uint8_t *section,
                        uint64_t bytes,
                        struct slc_damage *damage)
{
    uint64_t stored = slc_load_u32(section);

    if (slc_load_u32(section + 4) != 0) {
        return slc_damage_set(damage, section + 4, "a reserved field", slc_load_u32(section + 4),
                              "", 0);
    }
    decoder->value.bytes = decoder->planes;
    return check_section(section, 8 + stored, bytes, damage) &&
           slc_planes_note(decoder, section + 8, stored, (uint64_t)value_bytes * decoder->entry.nnz,
                           damage);
}

bool slc_values_open(struct slc_decoder *decoder,
                     unsigned form,
                     const uint8_t *section,
                     uint64_t bytes,
                     struct slc_damage *damage)
{
    struct slc_value_plan *value = &decoder->value;
    uint64_t nnz = decoder->entry.nnz;

    if (form > SLC_FORM_F64_LZ4) {
        return slc_damage_set(damage, decoder->data + 1, "the value form", form, "at most ",
                              SLC_FORM_F64_LZ4);
    }
    if (bytes < 8) {
        return slc_damage_set(damage, section, "the size of the values", bytes, "at least ", 8);
    }
    value->form = (enum slc_value_form)form;
    value->bytes = section;
    switch (value->form) {
    case SLC_FORM_CONSTANT:
        return check_section(section, 8, bytes, damage) && check_constant(decoder, section, damage);
    case SLC_FORM_INTEGER:
        return open_integers(decoder, section, bytes, damage);
    case SLC_FORM_DICTIONARY:
        return open_dictionary(decoder, section, bytes, damage);
    case SLC_FORM_F32:
        return check_section(section, 4 * nnz, bytes, damage);
    case SLC_FORM_F64:
        return check_section(section, 8 * nnz, bytes, damage);
    case SLC_FORM_F32_LZ4:
        return open_planes(decoder, 4, section, bytes, damage);
    case SLC_FORM_F64_LZ4:
        break;
    }
    return open_planes(decoder, 8, section, bytes, damage);
}

void slc_values_fill(struct slc_decoder *decoder)
{
    const double value = slc_load_f64(decoder->value.bytes);

    if (decoder->value_type == SLC_F32) {
        for (uint32_t i = 0; i < SLC_CHUNK_NNZ; i++) {
            ((float *)decoder->values)[i] = (float)value;
        }
    } else {
        for (uint32_t i = 0; i < SLC_CHUNK_NNZ; i++) {
            ((double *)decoder->values)[i] = value;
        }
    }
}

/* Returns the memory in which f64 values are decoded: decoder->values, or scratch if the values are
 * then rounded to f32. */
static double *exact_values(struct slc_decoder *decoder)
{
    return decoder->value_type == SLC_F64 ? decoder->values : decoder->exact;
}

static void round_values(struct slc_decoder *decoder, uint32_t count)
{
    const double *exact = decoder->exact;
    float *out = decoder->values;

    if (decoder->value_type == SLC_F64) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (float)exact[i];
    }
}

static bool raw_f64(struct slc_decoder *decoder, const uint8_t *bytes, uint32_t count)
{
    bool sound = decoder->ops->plain(bytes, count, decoder->has_zeros, exact_values(decoder));

    round_values(decoder, count);
    return sound;
}

static bool raw_f32(struct slc_decoder *decoder, const uint8_t *bytes, uint32_t count)
{
    const uint32_t zero_fault = decoder->has_zeros ? 0 : UINT32_MAX;
    uint32_t faults = 0;

    if (decoder->value_type == SLC_F64) {
        double *out = decoder->values;

        for (uint32_t i = 0; i < count; i++) {
            float value = slc_load_f32(bytes + 4 * (size_t)i);

            faults |= fault_f32(value, zero_fault);
            out[i] = (double)value;
        }
    } else {
        float *out = decoder->values;

        for (uint32_t i = 0; i < count; i++) {
            float value = slc_load_f32(bytes + 4 * (size_t)i);

            faults |= fault_f32(value, zero_fault);
            out[i] = value;
        }
    }
    return faults == 0;
}

static bool
planes_chunk(struct slc_decoder *decoder, unsigned value_bytes, uint32_t start, uint32_t count)
{
    const uint8_t *planes[8];

    for (unsigned b = 0; b < value_bytes; b++) {
        planes[b] = decoder->value.bytes + (size_t)b * decoder->entry.nnz + start;
    }
    if (value_bytes == 8) {
        slc_unshuffle8(planes, count, decoder->raw);
        return raw_f64(decoder, decoder->raw, count);
    }
    slc_unshuffle4(planes, count, decoder->raw);
    return raw_f32(decoder, decoder->raw, count);
}

/* Adds `low` to the unpacked integers of a group, which may have any number of bits. Returns false
 * if a value is too large, or if it is 0 and `zeros` is false. */
static bool
long_integers(const uint64_t *above, uint32_t count, int64_t low, bool zeros, double *values)
{
    const uint64_t most = (uint64_t)(INTEGER_MAX - low);
    /* above[i] of a zero value (not valid if low is positive); UINT64_MAX if zeros are allowed,
     * which no clamped value equals */
    const uint64_t zero = zeros ? UINT64_MAX : (uint64_t)-low;
    bool sound = true;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t clamped = above[i] < most ? above[i] : most;

        sound &= (above[i] == clamped) & (above[i] != zero);
        values[i] = (double)((int64_t)clamped + low);
    }
    return sound;
}

static bool short_integers(const struct slc_value_plan *value)
{
    return value->integers.all_short && value->integers.bits_max <= 52 &&
           value->low <= INTEGER_MAX / 2;
}

static bool integers_chunk(struct slc_decoder *decoder,
                           uint32_t start,
                           uint32_t count,
                           struct slc_damage *damage)
{
    const struct slc_value_plan *value = &decoder->value;
    double *out = exact_values(decoder); /* integers of this value form are exact in f64 */
    uint32_t done = 0;

    if (short_integers(value) &&
        decoder->ops->integers(&value->integers, start / SLC_GROUP_NNZ, count / SLC_GROUP_NNZ,
                               (double)value->low, decoder->has_zeros, out)) {
        done = count - count % SLC_GROUP_NNZ;
    }
    /* Decode the groups that ops->integers did not decode: an incomplete group, long integers, or
     * invalid groups, which slc_patched_group reports. */
    for (; done < count; done += SLC_GROUP_NNZ) {
        uint32_t group = (start + done) / SLC_GROUP_NNZ;
        uint32_t size = slc_group_size(decoder->entry.nnz, group);

        if (!slc_patched_group(&value->integers, decoder->ops->unpack, group, decoder->packed, NULL,
                               damage)) {
            return false;
        }
        if (!long_integers(decoder->packed, size, value->low, decoder->has_zeros, out + done)) {
            return slc_damage_set(damage, value->integers.widths + group, "an integer value", 0,
                                  "other than zero and of a magnitude at most ", INTEGER_MAX);
        }
    }
    round_values(decoder, count);
    return true;
}

static bool dictionary_chunk(struct slc_decoder *decoder,
                             uint32_t start,
                             uint32_t count,
                             struct slc_damage *damage)
{
    const struct slc_value_plan *value = &decoder->value;
    const uint8_t *packed = value->bytes + (uint64_t)start * value->width / 8;
    uint64_t largest = 0;

    if (decoder->ops->lookup(packed, value->width, count, value->dictionary,
                             value->dictionary_count, exact_values(decoder))) {
        round_values(decoder, count);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t index = slc_bits_get(packed, (uint64_t)i * value->width, value->width);

        largest = index > largest ? index : largest;
    }
    return slc_damage_set(damage, packed, "a dictionary index", largest, "below ",
                          value->dictionary_count);
}

bool slc_values_chunk(struct slc_decoder *decoder,
                      uint32_t start,
                      uint32_t count,
                      struct slc_damage *damage)
{
    const uint8_t *bytes = decoder->value.bytes;
    bool sound = true;

    switch (decoder->value.form) {
    case SLC_FORM_CONSTANT:
        break; /* slc_values_fill has filled the chunk */
    case SLC_FORM_INTEGER:
        return integers_chunk(decoder, start, count, damage);
    case SLC_FORM_DICTIONARY:
        return dictionary_chunk(decoder, start, count, damage);
    case SLC_FORM_F32:
        sound = raw_f32(decoder, bytes + 4 * (size_t)start, count);
        break;
    case SLC_FORM_F64:
        sound = raw_f64(decoder, bytes + 8 * (size_t)start, count);
        break;
    case SLC_FORM_F32_LZ4:
        sound = planes_chunk(decoder, 4, start, count);
        break;
    case SLC_FORM_F64_LZ4:
        sound = planes_chunk(decoder, 8, start, count);
        break;
    }
    if (!sound) {
        return slc_damage_set(damage, decoder->data, "a value", 0, "a finite number other than ",
                              0);
    }
    return true;
}
