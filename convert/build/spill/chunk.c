/* Packs and opens chunks in a few cycles per coordinate. Elements are written and read as whole
 * words, even if they are shorter. Writing an element also overwrites the beginning of the next
 * one, which is written later; reading masks off the bytes of the next one.
 *
 * A chunk may come from a file of another run, and a valid hash does not prove who wrote it.
 * Therefore all parts are checked against the chunk's size before they are read. */
#include "convert/build/spill/chunk.h"

#include "base/hash.h"
#include "base/memory/bytes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    AT_COUNT = 24,
    AT_RUNS = 28,
    AT_RUN_BYTES = 32,
    AT_FRAME = 36,
    AT_FORM = 40,
    AT_VALUE_BYTES = 41,
    AT_LO_BYTES = 42,
    AT_HI_BYTES = 43,
    AT_LOW = 48,
    AT_FIRST = 56,
    AT_BODY = 72,
    RUN_BYTES_MAX = 10 + 5 + 5 /* three varints: 64, 32 and 32 bits */
};

enum value_form { FORM_CONSTANT, FORM_INTEGER, FORM_F32, FORM_F64 };

uint64_t slc_chunk_bytes_max(uint64_t row_bytes, uint32_t runs)
{
    uint64_t bytes =
        (uint64_t)AT_BODY + (uint64_t)runs * RUN_BYTES_MAX + row_bytes + SLC_CHUNK_SLACK_BYTES;

    assert(bytes < UINT32_MAX);
    return bytes;
}

static uint8_t *write_varint(uint8_t *out, uint64_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}

static uint64_t read_varint(const uint8_t **cursor)
{
    const uint8_t *in = *cursor;
    uint64_t value = 0;
    unsigned shift = 0;

    while (*in & 0x80) {
        value |= (uint64_t)(*in++ & 0x7f) << shift;
        shift += 7;
    }
    value |= (uint64_t)*in++ << shift;
    *cursor = in;
    return value;
}

static unsigned bytes_for(uint64_t value)
{
    return value == 0 ? 0 : (71U - (unsigned)__builtin_clzll(value)) / 8;
}

/* Returns the value whose bits are in a row. */
static inline double value_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts an integral value to an integer: adds a number so large that the sum has no fraction
 * bits, so that the low bits of the sum hold the integer. Sets bits of *other if the value is not
 * integral, is -0, or has a magnitude of 2^51 or more. */
static inline int64_t integer_of(uint64_t bits, uint64_t *other)
{
    static const double large = 0x1.8p52;
    const int64_t most = INT64_C(1) << 51;
    double shifted = value_of(bits) + large;
    double back = shifted - large;
    int64_t integer = (int64_t)(slc_bits_f64(shifted) - slc_bits_f64(large));

    *other |= (slc_bits_f64(back) ^ bits) | (uint64_t)(integer <= -most || integer >= most);
    return integer;
}

/* Returns true, and sets the range of the values, if all values are integers. */
static bool find_integers(
    const uint64_t *values, size_t stride, uint32_t count, int64_t *smallest, int64_t *largest)
{
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;
    uint64_t other = 0;

    for (uint32_t i = 0; i < count && other == 0; i++) {
        int64_t integer = integer_of(values[i * stride], &other);

        low = integer < low ? integer : low;
        high = integer > high ? integer : high;
    }
    *smallest = low;
    *largest = high;
    return other == 0;
}

/* Returns true if every value, which must be finite, is exactly representable as a float. */
static bool are_single(const uint64_t *values, size_t stride, uint32_t count)
{
    bool single = true;

    for (uint32_t i = 0; i < count && single; i++) {
        double value = value_of(values[i * stride]);

        single = fabs(value) <= 3.4028234663852886e38 && (double)(float)value == value;
    }
    return single;
}

static bool are_equal(const uint64_t *values, size_t stride, uint32_t count)
{
    bool equal = true;

    for (uint32_t i = 0; i < count && equal; i++) {
        equal = values[i * stride] == values[0];
    }
    return equal;
}

/* Chooses the narrowest form that represents all values exactly. */
static enum value_form
choose_form(const uint64_t *values, size_t stride, uint32_t count, double *low, unsigned *bytes)
{
    int64_t smallest, largest;

    *low = value_of(values[0]);
    *bytes = 0;
    if (are_equal(values, stride, count)) {
        return FORM_CONSTANT;
    }
    bool integers = find_integers(values, stride, count, &smallest, &largest);
    if (integers) {
        *low = (double)smallest;
        *bytes = bytes_for((uint64_t)largest - (uint64_t)smallest);
        if (*bytes <= 4) {
            return FORM_INTEGER;
        }
    }
    if (are_single(values, stride, count)) {
        *bytes = 4;
        return FORM_F32;
    }
    *bytes = integers ? *bytes : 8;
    return integers ? FORM_INTEGER : FORM_F64;
}

static uint8_t *
pack_values(uint8_t *chunk, uint8_t *out, const uint64_t *values, size_t stride, uint32_t count)
{
    double low;
    unsigned bytes;
    enum value_form form = choose_form(values, stride, count, &low, &bytes);
    uint64_t other = 0;
    uint32_t i;

    chunk[AT_FORM] = (uint8_t)form;
    chunk[AT_VALUE_BYTES] = (uint8_t)bytes;
    slc_store_f64(chunk + AT_LOW, low);
    switch (form) {
    case FORM_CONSTANT:
        break;
    case FORM_INTEGER:
        for (i = 0; i < count; i++, out += bytes) {
            slc_store_u64(out, (uint64_t)(integer_of(values[i * stride], &other) - (int64_t)low));
        }
        break;
    case FORM_F32:
        for (i = 0; i < count; i++, out += bytes) {
            slc_store_f32(out, (float)value_of(values[i * stride]));
        }
        break;
    case FORM_F64:
        for (i = 0; i < count; i++, out += bytes) {
            slc_store_f64(out, value_of(values[i * stride]));
        }
        break;
    }
    return out;
}

static uint8_t *pack_runs(uint8_t *out, const struct slc_run *runs, uint32_t run_count)
{
    uint64_t sequence = 0;

    for (uint32_t i = 0; i < run_count; i++) {
        out = write_varint(out, runs[i].sequence - sequence);
        out = write_varint(out, runs[i].first);
        out = write_varint(out, runs[i].count);
        sequence = runs[i].sequence;
    }
    return out;
}

/* Packs one column of rows of `words` words. `any`: OR of the elements, which determines the number
 * of bytes per element. */
static uint8_t *pack_column(uint8_t *out,
                            const uint64_t *column,
                            uint32_t words,
                            uint32_t count,
                            uint64_t any,
                            uint8_t *bytes)
{
    unsigned width = bytes_for(any);

    *bytes = (uint8_t)width;
    for (uint32_t i = 0; i < count && width > 0; i++) {
        slc_store_u64(out, column[(size_t)i * words]);
        out += width;
    }
    return out;
}

static uint8_t *pack_keys(uint8_t *chunk, uint8_t *out, const struct slc_chunk_rows *rows)
{
    uint32_t words = slc_chunk_row_words(&rows->range);

    if (rows->range.narrow) {
        slc_store_u64(chunk + AT_FIRST, rows->range.first_lo);
        slc_store_u64(chunk + AT_FIRST + 8, rows->range.first_hi);
        return pack_column(out, rows->rows, words, rows->count, rows->any, &chunk[AT_LO_BYTES]);
    }
    /* Keys in a range that is not narrow use all bytes of both words. */
    out = pack_column(out, rows->rows, words, rows->count, UINT64_MAX, &chunk[AT_LO_BYTES]);
    return pack_column(out, rows->rows + 1, words, rows->count, UINT64_MAX, &chunk[AT_HI_BYTES]);
}

uint32_t slc_chunk_pack(uint8_t *chunk,
                        const struct slc_chunk_rows *rows,
                        const struct slc_run *runs,
                        uint32_t run_count)
{
    uint32_t words = slc_chunk_row_words(&rows->range);

    memset(chunk, 0, AT_BODY);
    uint8_t *out = pack_runs(chunk + AT_BODY, runs, run_count);
    slc_store_u32(chunk + AT_RUN_BYTES, (uint32_t)(out - chunk - AT_BODY));
    out = pack_keys(chunk, out, rows);
    out = pack_values(chunk, out, rows->rows + words - 1, words, rows->count);
    memset(out, 0, SLC_CHUNK_SLACK_BYTES);
    out += SLC_CHUNK_SLACK_BYTES;
    slc_store_u32(chunk + SLC_CHUNK_AT_BYTES, (uint32_t)(out - chunk));
    slc_store_u32(chunk + AT_COUNT, rows->count);
    slc_store_u32(chunk + AT_RUNS, run_count);
    slc_store_u32(chunk + AT_FRAME, rows->frame);
    return (uint32_t)(out - chunk);
}

/* Returns true if the values have a valid form and size. */
static bool values_sound(const struct slc_chunk *chunk)
{
    switch (chunk->value_form) {
    case FORM_CONSTANT:
        return chunk->value_bytes == 0 && isfinite(chunk->low);
    case FORM_INTEGER:
        /* Integers are below 2^51, so their differences are below 2^52. */
        return chunk->value_bytes <= 7 && fabs(chunk->low) < 0x1p51;
    case FORM_F32:
        return chunk->value_bytes == 4;
    case FORM_F64:
        return chunk->value_bytes == 8;
    default:
        return false;
    }
}

/* Skips a varint of at most 10 bytes, which must end before `end`. */
static bool skip_varint(const uint8_t **cursor, const uint8_t *end)
{
    const uint8_t *in = *cursor;

    while (in < end && in - *cursor < 9 && (*in & 0x80) != 0) {
        in++;
    }
    if (in == end || (*in & 0x80) != 0) {
        return false;
    }
    *cursor = in + 1;
    return true;
}

/* Returns true if the runs fill their bytes exactly, each has at least one entry, and together they
 * have the chunk's number of entries. */
static bool runs_sound(const struct slc_chunk *chunk)
{
    const uint8_t *cursor = chunk->runs;
    uint64_t left = chunk->count;

    for (uint32_t r = 0; r < chunk->run_count; r++) {
        for (unsigned skipped = 0; skipped < 2; skipped++) {
            if (!skip_varint(&cursor, chunk->lo)) {
                return false;
            }
        }
        const uint8_t *at = cursor;
        if (!skip_varint(&cursor, chunk->lo)) {
            return false;
        }
        uint64_t count = read_varint(&at);
        if (count == 0 || count > left) {
            return false;
        }
        left -= count;
    }
    return left == 0 && cursor == chunk->lo;
}

/* Returns true if the parts of a chunk with a valid hash are consistent and within its bytes. */
static bool parts_sound(const struct slc_chunk *chunk, uint32_t run_bytes, uint32_t byte_count)
{
    const uint64_t entry_bytes = (uint64_t)chunk->lo_bytes + chunk->hi_bytes + chunk->value_bytes;

    return chunk->count > 0 && chunk->lo_bytes <= 8 &&
           (chunk->hi_bytes == 0 || chunk->hi_bytes == 8) && values_sound(chunk) &&
           (uint64_t)AT_BODY + run_bytes + chunk->count * entry_bytes + SLC_CHUNK_SLACK_BYTES ==
               byte_count &&
           runs_sound(chunk);
}

static enum slc_status damaged(uint32_t byte_count, struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_DAMAGED,
                    "a chunk of %u bytes in the spill file is damaged: the temporary disk is "
                    "faulty or another program wrote to the file",
                    byte_count);
}

enum slc_status slc_chunk_open(struct slc_chunk *chunk,
                               const uint8_t *bytes,
                               uint32_t byte_count,
                               struct slc_error *err)
{
    if (byte_count < AT_BODY || slc_load_u32(bytes + SLC_CHUNK_AT_BYTES) != byte_count ||
        slc_hash64(bytes + 8, byte_count - 8) != slc_load_u64(bytes)) {
        return damaged(byte_count, err);
    }
    uint32_t run_bytes = slc_load_u32(bytes + AT_RUN_BYTES);
    if (run_bytes > byte_count - AT_BODY) {
        return damaged(byte_count, err);
    }
    chunk->previous.segment = slc_load_u32(bytes + SLC_CHUNK_AT_LINK);
    chunk->previous.offset = slc_load_u32(bytes + SLC_CHUNK_AT_LINK + 4);
    chunk->previous.bytes = slc_load_u32(bytes + SLC_CHUNK_AT_LINK + 8);
    chunk->count = slc_load_u32(bytes + AT_COUNT);
    chunk->run_count = slc_load_u32(bytes + AT_RUNS);
    chunk->frame = slc_load_u32(bytes + AT_FRAME);
    chunk->value_form = bytes[AT_FORM];
    chunk->value_bytes = bytes[AT_VALUE_BYTES];
    chunk->lo_bytes = bytes[AT_LO_BYTES];
    chunk->hi_bytes = bytes[AT_HI_BYTES];
    chunk->low = slc_load_f64(bytes + AT_LOW);
    chunk->first_lo = slc_load_u64(bytes + AT_FIRST);
    chunk->first_hi = slc_load_u64(bytes + AT_FIRST + 8);
    chunk->runs = bytes + AT_BODY;
    chunk->lo = chunk->runs + run_bytes;
    if (!parts_sound(chunk, run_bytes, byte_count)) {
        return damaged(byte_count, err);
    }
    chunk->hi = chunk->lo + (size_t)chunk->lo_bytes * chunk->count;
    chunk->values = chunk->hi + (size_t)chunk->hi_bytes * chunk->count;
    return SLC_OK;
}

struct slc_run slc_chunk_next_run(const uint8_t **cursor, uint64_t *sequence)
{
    struct slc_run run;

    *sequence += read_varint(cursor);
    run.sequence = *sequence;
    run.first = (uint32_t)read_varint(cursor);
    run.count = (uint32_t)read_varint(cursor);
    return run;
}

static inline uint64_t low_bytes_mask(unsigned bytes)
{
    return bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
}

static void unpack_keys(
    const struct slc_chunk *chunk, uint32_t begin, uint32_t count, uint64_t *lo, uint64_t *hi)
{
    unsigned bytes = chunk->lo_bytes;
    uint64_t mask = low_bytes_mask(bytes);
    const uint8_t *in = chunk->lo + (size_t)begin * bytes;

    for (uint32_t i = 0; i < count; i++) {
        lo[i] = chunk->first_lo + (slc_load_u64(in + (size_t)i * bytes) & mask);
    }
    if (hi == NULL) {
        return;
    }
    in = chunk->hi + (size_t)begin * chunk->hi_bytes;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t carry = lo[i] < chunk->first_lo;

        hi[i] = chunk->hi_bytes == 0 ? chunk->first_hi + carry
                                     : slc_load_u64(in + (size_t)i * sizeof(uint64_t));
    }
}

static void
unpack_values(const struct slc_chunk *chunk, uint32_t begin, uint32_t count, double *values)
{
    unsigned bytes = chunk->value_bytes;
    const uint8_t *in = chunk->values + (size_t)begin * bytes;
    uint32_t i;

    switch ((enum value_form)chunk->value_form) {
    case FORM_CONSTANT:
        for (i = 0; i < count; i++) {
            values[i] = chunk->low;
        }
        break;
    case FORM_INTEGER: {
        uint64_t mask = low_bytes_mask(bytes);
        int64_t low = (int64_t)chunk->low;

        for (i = 0; i < count; i++) {
            values[i] = (double)(low + (int64_t)(slc_load_u64(in + (size_t)i * bytes) & mask));
        }
        break;
    }
    case FORM_F32:
        for (i = 0; i < count; i++) {
            values[i] = slc_load_f32(in + 4 * (size_t)i);
        }
        break;
    case FORM_F64:
        for (i = 0; i < count; i++) {
            values[i] = slc_load_f64(in + 8 * (size_t)i);
        }
        break;
    }
}

void slc_chunk_entries(const struct slc_chunk *chunk,
                       uint32_t begin,
                       uint32_t count,
                       uint64_t *lo,
                       uint64_t *hi,
                       double *values)
{
    unpack_keys(chunk, begin, count, lo, hi);
    if (values != NULL) {
        unpack_values(chunk, begin, count, values);
    }
}
