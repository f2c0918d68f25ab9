/* Converts indices and values of binary records to arrays of u64 and f64.
 *
 * Each loop converts one field, and its width and byte order are compile-time constants. The loop
 * records only whether any number is out of range. If so, a second loop searches for the first such
 * number.
 *
 * Cost: 0.5 to 2 ns per number, about the time to copy it. */
#include "base/column_range.h"
#include "base/memory/bytes.h"
#include "convert/ingest/binary/binary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SLC_ALWAYS_INLINE static inline __attribute__((always_inline))

/* Number of values that are decoded at a time, in an array on the stack. */
enum { DECODE_ROWS = 512 };

uint32_t slc_binary_row_bytes(const struct slc_binary *binary)
{
    uint32_t bytes = 0;

    for (unsigned b = 0; b < binary->band_count; b++) {
        bytes += binary->bands[b].record_bytes;
    }
    return bytes;
}

SLC_ALWAYS_INLINE uint64_t load(const uint8_t *at, unsigned bytes, bool big_endian)
{
    switch (bytes) {
    case 1:
        return *at;
    case 2:
        return big_endian ? __builtin_bswap16(slc_load_u16(at)) : slc_load_u16(at);
    case 4:
        return big_endian ? __builtin_bswap32(slc_load_u32(at)) : slc_load_u32(at);
    default:
        return big_endian ? __builtin_bswap64(slc_load_u64(at)) : slc_load_u64(at);
    }
}

SLC_ALWAYS_INLINE void gather_of(const uint8_t *at,
                                 size_t stride,
                                 uint32_t count,
                                 unsigned bytes,
                                 bool big_endian,
                                 uint64_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = load(at + i * stride, bytes, big_endian);
    }
}

/* Copies the bits of a field from `count` records to `out`. */
static void gather_field(
    const struct slc_field *field, const uint8_t *at, size_t stride, uint32_t count, uint64_t *out)
{
    bool big = field->big_endian;

    switch (field->bytes) {
    case 1:
        gather_of(at, stride, count, 1, false, out);
        break;
    case 2:
        big ? gather_of(at, stride, count, 2, true, out)
            : gather_of(at, stride, count, 2, false, out);
        break;
    case 4:
        big ? gather_of(at, stride, count, 4, true, out)
            : gather_of(at, stride, count, 4, false, out);
        break;
    default:
        big ? gather_of(at, stride, count, 8, true, out)
            : gather_of(at, stride, count, 8, false, out);
        break;
    }
}

/* Sign-extends integers of `bytes` bytes to 64 bits. */
static void extend_sign(unsigned bytes, uint32_t count, uint64_t *bits)
{
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);

    for (uint32_t i = 0; i < count; i++) {
        bits[i] = (bits[i] ^ sign) - sign;
    }
}

/* Returns the position of the first of `count` numbers whose top bit is set, or `count`. */
static uint32_t first_negative(const uint64_t *bits, uint32_t count)
{
    uint64_t any = 0;
    uint32_t i = 0;

    for (uint32_t k = 0; k < count; k++) {
        any |= bits[k];
    }
    if (any >> 63 == 0) {
        return count;
    }
    while (bits[i] >> 63 == 0) {
        i++;
    }
    return i;
}

/* Converts an IEEE 754 binary16 number to a double, which is always exact. */
static double half_to_double(uint64_t bits)
{
    unsigned exponent = bits >> 10 & 0x1f;
    double fraction = (double)(bits & 0x3ff);
    double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(fraction + 1024, (int)exponent - 25);

    return bits >> 15 ? -size : size;
}

/* Returns true if a double represents the integer exactly, that is, if the integer has at most 53
 * significant bits. */
static bool holds(uint64_t magnitude)
{
    return magnitude < UINT64_C(1) << 53 || magnitude >> __builtin_ctzll(magnitude) < UINT64_C(1)
                                                                                          << 53;
}

/* Converts the bits of integers to doubles. Returns the position of the first integer that a double
 * cannot represent, or `count`. */
static uint32_t integers(bool is_signed, uint32_t count, const uint64_t *bits, double *values)
{
    for (uint32_t i = 0; i < count; i++) {
        bool negative = is_signed && bits[i] >> 63;
        uint64_t magnitude = negative ? 0 - bits[i] : bits[i];

        if (!holds(magnitude)) {
            return i;
        }
        values[i] = negative ? -(double)magnitude : (double)magnitude;
    }
    return count;
}

/* Converts the bits of floats to doubles. Returns the position of the first number that is not
 * finite, or `count`. */
static uint32_t floats(unsigned bytes, uint32_t count, const uint64_t *bits, double *values)
{
    bool finite = true;
    uint32_t i = 0;

    for (uint32_t k = 0; k < count; k++) {
        if (bytes == 8) {
            memcpy(&values[k], &bits[k], sizeof values[k]);
        } else if (bytes == 4) {
            uint32_t low = (uint32_t)bits[k];
            float value;

            memcpy(&value, &low, sizeof value);
            values[k] = (double)value;
        } else {
            values[k] = half_to_double(bits[k]);
        }
        finite = finite && isfinite(values[k]);
    }
    while (!finite && isfinite(values[i])) {
        i++;
    }
    return finite ? count : i;
}

/* Records the fault of a value that is not finite or not representable. `bits` are the bits of the
 * value, extended to 64 bits. */
static enum slc_status value_fault(const struct slc_field *field,
                                   const char *what,
                                   uint64_t bits,
                                   const double *value,
                                   uint64_t ordinal,
                                   struct slc_error *err)
{
    if (field->kind == SLC_FIELD_FLOAT) {
        return slc_fail(err, SLC_ERR_INPUT, "%s %" PRIu64 ": value %s is not finite", what, ordinal,
                        isnan(*value) ? "NaN"
                        : *value < 0  ? "-infinity"
                                      : "infinity");
    }
    if (field->kind == SLC_FIELD_SIGNED) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "%s %" PRIu64 ": value %" PRId64
                        " has more than the 53 significant bits of a double",
                        what, ordinal, (int64_t)bits);
    }
    return slc_fail(err, SLC_ERR_INPUT,
                    "%s %" PRIu64 ": value %" PRIu64
                    " has more than the 53 significant bits of a double",
                    what, ordinal, bits);
}

/* Decodes at most DECODE_ROWS values. Returns the position of the first value that is not finite or
 * not representable as a double, or `count`. */
static uint32_t decode_values(const struct slc_field *value,
                              const uint8_t *at,
                              size_t stride,
                              uint32_t count,
                              uint64_t *bits,
                              double *values)
{
    gather_field(value, at, stride, count, bits);
    if (value->kind == SLC_FIELD_SIGNED) {
        extend_sign(value->bytes, count, bits);
    }
    return value->kind == SLC_FIELD_FLOAT
               ? floats(value->bytes, count, bits, values)
               : integers(value->kind == SLC_FIELD_SIGNED, count, bits, values);
}

/* Returns the address of a field of nonzero `first` of the piece. */
static const uint8_t *field_at(const struct slc_binary *binary,
                               const struct slc_field *field,
                               const uint8_t *piece,
                               uint64_t piece_count,
                               uint64_t first)
{
    for (unsigned b = 0; b < field->band; b++) {
        piece += piece_count * binary->bands[b].record_bytes;
    }
    return piece + first * binary->bands[field->band].record_bytes + field->offset;
}

enum slc_status slc_binary_decode(const struct slc_binary *binary,
                                  const uint8_t *piece,
                                  uint64_t piece_count,
                                  uint64_t first,
                                  uint32_t count,
                                  uint64_t ordinal,
                                  struct slc_text_rows *rows,
                                  struct slc_error *err)
{
    const struct slc_field *value = &binary->fields[binary->order];
    double *values = rows->values + rows->count;
    uint64_t bits[DECODE_ROWS];
    enum slc_status status = SLC_OK;
    uint32_t good = count, most;

    for (uint32_t done = 0; done < good; done += DECODE_ROWS) {
        uint32_t some = good - done < DECODE_ROWS ? good - done : DECODE_ROWS;

        uint32_t sound =
            decode_values(value, field_at(binary, value, piece, piece_count, first + done),
                          binary->bands[value->band].record_bytes, some, bits, values + done);
        if (sound < some) {
            good = done + sound;
            status = value_fault(value, "nonzero", bits[sound], &values[good],
                                 first + good + ordinal, err);
            slc_error_locate_file(err, binary->values_name);
        }
    }
    /* If both an index and the value of a nonzero are faulty, report the index. */
    most = good + (good < count);
    for (unsigned m = 0; m < binary->order; m++) {
        const struct slc_field *index = &binary->fields[m];
        uint64_t *coords = rows->coords[m] + rows->count;

        gather_field(index, field_at(binary, index, piece, piece_count, first),
                     binary->bands[index->band].record_bytes, most, coords);
        for (uint32_t i = 0; index->origin != 0 && i < most; i++) {
            coords[i] -= index->origin;
        }
        for (uint32_t i = 0; index->labels != NULL && i < most; i++) {
            coords[i] = index->labels[coords[i]];
        }
        if (index->kind != SLC_FIELD_SIGNED) {
            continue;
        }
        extend_sign(index->bytes, most, coords);
        uint32_t sound = first_negative(coords, most);
        if (sound < most) {
            good = most = sound;
            slc_error_clear(err);
            status = slc_fail(err, SLC_ERR_INPUT,
                              "nonzero %" PRIu64 ": index %" PRId64 " of mode %u is negative",
                              first + good + ordinal, (int64_t)coords[good], m + 1);
        }
    }
    for (unsigned m = 0; m < binary->order; m++) {
        slc_column_range(rows->coords[m] + rows->count, good, &rows->smallest[m],
                         &rows->largest[m]);
    }
    rows->count += good;
    return status;
}

/* Sets the indices of an element, whose number counts from 0. */
static void
set_indices(const struct slc_binary *binary, uint64_t element, uint64_t indices[SLC_MAX_ORDER])
{
    for (unsigned i = 0; i < binary->order; i++) {
        const unsigned m = binary->fortran_order ? i : binary->order - 1 - i;

        indices[m] = element % binary->dims[m];
        element /= binary->dims[m];
    }
}

/* Advances the indices to the next element. */
static inline void advance_indices(const struct slc_binary *binary, uint64_t *indices)
{
    for (unsigned i = 0; i < binary->order; i++) {
        const unsigned m = binary->fortran_order ? i : binary->order - 1 - i;

        if (++indices[m] < binary->dims[m]) {
            break;
        }
        indices[m] = 0;
    }
}

enum slc_status slc_binary_decode_dense(const struct slc_binary *binary,
                                        const uint8_t *piece,
                                        uint64_t piece_count,
                                        uint64_t *next,
                                        uint64_t ordinal,
                                        struct slc_text_rows *rows,
                                        struct slc_error *err)
{
    const struct slc_field *value = &binary->fields[binary->order];
    const size_t stride = binary->bands[value->band].record_bytes;
    const uint32_t before = rows->count;
    uint64_t indices[SLC_MAX_ORDER] = {0}, bits[DECODE_ROWS];
    double values[DECODE_ROWS];
    enum slc_status status = SLC_OK;

    set_indices(binary, ordinal - 1 + *next, indices);
    while (status == SLC_OK && *next < piece_count && rows->count < rows->capacity) {
        uint32_t some = rows->capacity - rows->count;

        some = some < DECODE_ROWS ? some : DECODE_ROWS;
        some = some < piece_count - *next ? some : (uint32_t)(piece_count - *next);
        const uint32_t sound = decode_values(
            value, field_at(binary, value, piece, piece_count, *next), stride, some, bits, values);
        for (uint32_t i = 0; i < sound; i++) {
            if (binary->keep_zeros || values[i] != 0) {
                for (unsigned m = 0; m < binary->order; m++) {
                    rows->coords[m][rows->count] = indices[m];
                }
                rows->values[rows->count++] = values[i];
            }
            advance_indices(binary, indices);
        }
        *next += sound;
        if (sound < some) {
            status =
                value_fault(value, "element", bits[sound], &values[sound], *next + ordinal, err);
        }
    }
    for (unsigned m = 0; m < binary->order; m++) {
        slc_column_range(rows->coords[m] + before, rows->count - before, &rows->smallest[m],
                         &rows->largest[m]);
    }
    return status;
}
