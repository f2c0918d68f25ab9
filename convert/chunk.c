/* See convert/chunk.h. Packing and unpacking are a few cycles per coordinate: whole-word stores and
 * loads that overlap the neighbour, which is written next or masked off. */
#include "convert/chunk.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    AT_LINK = 8,
    AT_BYTES = 20,
    AT_COUNT = 24,
    AT_RUNS = 28,
    AT_RUN_BYTES = 32,
    AT_FORM = 36,
    AT_VALUE_BYTES = 37,
    AT_COORD_BYTES = 40,
    AT_LOW = 56,
    AT_BASES = 64,
    RUN_BYTES_MAX = 10 + 5 + 5 /* three varints: 64, 32 and 32 bits */
};

enum value_form { FORM_CONSTANT, FORM_INTEGER, FORM_F32, FORM_F64 };

uint64_t slc_chunk_bytes_max(unsigned order, uint32_t entries, uint32_t runs)
{
    uint64_t bytes = (uint64_t)AT_BASES + 8 * order + (uint64_t)runs * RUN_BYTES_MAX +
                     (uint64_t)entries * 8 * (order + 1) + SLC_CHUNK_SLACK_BYTES;

    assert(bytes < UINT32_MAX);
    return bytes;
}

static uint8_t *put_varint(uint8_t *out, uint64_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}

static uint64_t get_varint(const uint8_t **cursor)
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

/* The narrowest of the exact forms; integers within 2^53 keep every bit through a double. */
static enum value_form
choose_form(const uint64_t *values, size_t stride, uint32_t count, double *low, unsigned *bytes)
{
    double smallest = INFINITY;
    double largest = -INFINITY;
    bool constant = true;
    bool integer = true;
    bool single = true;
    uint32_t i;

    for (i = 0; i < count; i++) {
        double value = slc_load_f64(&values[i * stride]);

        constant = constant && values[i * stride] == values[0];
        single = single && fabs(value) <= 3.4028234663852886e38 && (double)(float)value == value;
        integer = integer && fabs(value) <= 0x1p53 && (double)(int64_t)value == value &&
                  values[i * stride] != UINT64_C(1) << 63;
        if (!single && !integer && !constant) {
            break;
        }
        smallest = value < smallest ? value : smallest;
        largest = value > largest ? value : largest;
    }
    *low = smallest;
    *bytes = 8;
    if (constant) {
        *low = slc_load_f64(values);
        *bytes = 0;
        return FORM_CONSTANT;
    }
    if (integer) {
        *bytes = bytes_for((uint64_t)((int64_t)largest - (int64_t)smallest));
        if (*bytes < 4 || !single) {
            return FORM_INTEGER;
        }
    }
    if (single) {
        *bytes = 4;
        return FORM_F32;
    }
    return FORM_F64;
}

static uint8_t *
pack_values(uint8_t *chunk, uint8_t *out, const uint64_t *values, size_t stride, uint32_t count)
{
    double low;
    unsigned bytes;
    enum value_form form = choose_form(values, stride, count, &low, &bytes);
    uint32_t i;

    chunk[AT_FORM] = (uint8_t)form;
    chunk[AT_VALUE_BYTES] = (uint8_t)bytes;
    slc_store_f64(chunk + AT_LOW, low);
    for (i = 0; i < count; i++) {
        double value = slc_load_f64(&values[i * stride]);

        switch (form) {
        case FORM_CONSTANT:
            break;
        case FORM_INTEGER:
            slc_store_u64(out, (uint64_t)((int64_t)value - (int64_t)low));
            break;
        case FORM_F32:
            slc_store_f32(out, (float)value);
            break;
        case FORM_F64:
            slc_store_f64(out, value);
            break;
        }
        out += bytes;
    }
    return out;
}

static uint8_t *pack_runs(uint8_t *out, const struct slc_run *runs, uint32_t run_count)
{
    uint64_t sequence = 0;
    uint32_t i;

    for (i = 0; i < run_count; i++) {
        out = put_varint(out, runs[i].sequence - sequence);
        out = put_varint(out, runs[i].first);
        out = put_varint(out, runs[i].count);
        sequence = runs[i].sequence;
    }
    return out;
}

/* Smallest and largest coordinate per mode: one pass over the rows, which exceed level 1. */
static void
row_ranges(unsigned order, const uint64_t *rows, uint32_t count, uint64_t *low, uint64_t *high)
{
    uint32_t i;
    unsigned mode;

    memcpy(low, rows, order * sizeof *low);
    memcpy(high, rows, order * sizeof *high);
    for (i = 1; i < count; i++) {
        rows += order + 1;
        for (mode = 0; mode < order; mode++) {
            low[mode] = rows[mode] < low[mode] ? rows[mode] : low[mode];
            high[mode] = rows[mode] > high[mode] ? rows[mode] : high[mode];
        }
    }
}

uint32_t slc_chunk_pack(uint8_t *chunk,
                        unsigned order,
                        const uint64_t *rows,
                        uint32_t count,
                        const struct slc_run *runs,
                        uint32_t run_count,
                        uint64_t *smallest,
                        uint64_t *largest)
{
    size_t stride = order + 1;
    uint64_t lows[SLC_MAX_ORDER];
    uint64_t highs[SLC_MAX_ORDER];
    uint8_t *start = chunk + AT_BASES + 8 * (size_t)order;
    uint8_t *out;
    unsigned mode;
    uint32_t i;

    row_ranges(order, rows, count, lows, highs);
    memset(chunk, 0, AT_BASES);
    out = pack_runs(start, runs, run_count);
    slc_store_u32(chunk + AT_RUN_BYTES, (uint32_t)(out - start));
    for (mode = 0; mode < order; mode++) {
        const uint64_t *column = rows + mode;
        uint64_t low = lows[mode];
        uint64_t high = highs[mode];
        unsigned bytes;

        smallest[mode] = low < smallest[mode] ? low : smallest[mode];
        largest[mode] = high > largest[mode] ? high : largest[mode];
        bytes = bytes_for(high - low);
        chunk[AT_COORD_BYTES + mode] = (uint8_t)bytes;
        slc_store_u64(chunk + AT_BASES + 8 * mode, low);
        for (i = 0; i < count && bytes > 0; i++) {
            slc_store_u64(out, column[i * stride] - low);
            out += bytes;
        }
    }
    out = pack_values(chunk, out, rows + order, stride, count);
    memset(out, 0, SLC_CHUNK_SLACK_BYTES);
    out += SLC_CHUNK_SLACK_BYTES;
    slc_store_u32(chunk + AT_BYTES, (uint32_t)(out - chunk));
    slc_store_u32(chunk + AT_COUNT, count);
    slc_store_u32(chunk + AT_RUNS, run_count);
    return (uint32_t)(out - chunk);
}

void slc_chunk_seal(uint8_t *chunk, struct slc_chunk_link previous)
{
    slc_store_u32(chunk + AT_LINK, previous.segment);
    slc_store_u32(chunk + AT_LINK + 4, previous.offset);
    slc_store_u32(chunk + AT_LINK + 8, previous.bytes);
    slc_store_u64(chunk, slc_hash64(chunk + 8, slc_load_u32(chunk + AT_BYTES) - 8));
}

enum slc_status slc_chunk_open(struct slc_chunk *chunk,
                               unsigned order,
                               const uint8_t *bytes,
                               uint32_t byte_count,
                               struct slc_error *err)
{
    const uint8_t *at;
    unsigned mode;

    if (byte_count < AT_BASES || slc_load_u32(bytes + AT_BYTES) != byte_count ||
        slc_hash64(bytes + 8, byte_count - 8) != slc_load_u64(bytes)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "a chunk of %u bytes in the spill file is not what was written there: the "
                        "temporary disk is faulty or another program wrote to the file",
                        byte_count);
    }
    chunk->order = order;
    chunk->previous.segment = slc_load_u32(bytes + AT_LINK);
    chunk->previous.offset = slc_load_u32(bytes + AT_LINK + 4);
    chunk->previous.bytes = slc_load_u32(bytes + AT_LINK + 8);
    chunk->count = slc_load_u32(bytes + AT_COUNT);
    chunk->run_count = slc_load_u32(bytes + AT_RUNS);
    chunk->value_form = bytes[AT_FORM];
    chunk->value_bytes = bytes[AT_VALUE_BYTES];
    chunk->low = slc_load_f64(bytes + AT_LOW);
    chunk->runs = bytes + AT_BASES + 8 * (size_t)order;
    at = chunk->runs + slc_load_u32(bytes + AT_RUN_BYTES);
    for (mode = 0; mode < order; mode++) {
        chunk->coord_bytes[mode] = bytes[AT_COORD_BYTES + mode];
        chunk->base[mode] = slc_load_u64(bytes + AT_BASES + 8 * mode);
        chunk->columns[mode] = at;
        at += (size_t)chunk->coord_bytes[mode] * chunk->count;
    }
    chunk->values = at;
    return SLC_OK;
}

struct slc_run slc_chunk_next_run(const uint8_t **cursor, uint64_t *sequence)
{
    struct slc_run run;

    *sequence += get_varint(cursor);
    run.sequence = *sequence;
    run.first = (uint32_t)get_varint(cursor);
    run.count = (uint32_t)get_varint(cursor);
    return run;
}

void slc_chunk_coords(const struct slc_chunk *chunk,
                      unsigned mode,
                      uint32_t begin,
                      uint32_t count,
                      uint64_t index_base,
                      uint64_t *coords)
{
    unsigned bytes = chunk->coord_bytes[mode];
    uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
    uint64_t base = chunk->base[mode] - index_base;
    const uint8_t *in = chunk->columns[mode] + (size_t)begin * bytes;
    uint32_t i;

    for (i = 0; i < count; i++) {
        coords[i] = base + (slc_load_u64(in + (size_t)i * bytes) & mask);
    }
}

void slc_chunk_values(const struct slc_chunk *chunk, uint32_t begin, uint32_t count, double *values)
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
        uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
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
