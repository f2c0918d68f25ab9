#include "convert/ingest/arrow/arrow_cell.h"

#include "base/key.h"
#include "base/memory/bytes.h"
#include "convert/ingest/csv/csv_time.h"
#include "convert/number/format.h"
#include "convert/number/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DAY = 86400,
    FULL = -1, /* returned by functions that write an element, instead of its bytes */
    FAULT = -2
};

/* Times beyond this many seconds from 1970 are faults, so that years have up to 9 digits. */
static const int64_t seconds_max = INT64_C(1) << 54;

enum slc_arrow_form slc_arrow_form_of(const struct slc_arrow_column *column, bool times)
{
    switch (column->type.kind) {
    case SLC_ARROW_BOOL:
    case SLC_ARROW_SIGNED:
    case SLC_ARROW_UNSIGNED:
    case SLC_ARROW_FLOAT:
    case SLC_ARROW_DECIMAL:
        return times ? SLC_ARROW_TEXT : SLC_ARROW_VALUE;
    case SLC_ARROW_DATE:
    case SLC_ARROW_TIMESTAMP:
        return times ? SLC_ARROW_CLOCK : SLC_ARROW_TEXT;
    default:
        return SLC_ARROW_TEXT;
    }
}

static uint64_t load_unsigned(const uint8_t *at, unsigned width)
{
    uint16_t two;

    switch (width) {
    case 1:
        return *at;
    case 2:
        memcpy(&two, at, sizeof two);
        return two;
    case 4:
        return slc_load_u32(at);
    default:
        return slc_load_u64(at);
    }
}

static int64_t load_signed(const uint8_t *at, unsigned width)
{
    const unsigned shift = 64 - 8 * width;

    return (int64_t)(load_unsigned(at, width) << shift) >> shift;
}

static double half_value(uint64_t half)
{
    const int exponent = (int)(half >> 10 & 31);
    const double fraction = (double)(half & 1023);
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction == 0 ? (double)INFINITY : (double)NAN)
                                    : ldexp(fraction + 1024, exponent - 25);

    return half >> 15 != 0 ? -value : value;
}

static double load_float(const uint8_t *at, unsigned width)
{
    double value;
    float single;

    if (width == 2) {
        return half_value(load_unsigned(at, 2));
    }
    if (width == 4) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    memcpy(&value, at, sizeof value);
    return value;
}

/* Writes numbers with a fixed number of digits. */
static char *put_digits(char *to, unsigned digits, uint64_t value)
{
    for (unsigned i = digits; i-- > 0; value /= 10) {
        to[i] = (char)('0' + value % 10);
    }
    return to + digits;
}

static char *put_date(char *to, int64_t days)
{
    const struct slc_date date = slc_date_of(days);

    if (date.year < 0 || date.year > 9999) {
        return to + snprintf(to, 32, "%05" PRId64 "-%02u-%02u", date.year, date.month, date.day);
    }
    to = put_digits(to, 4, (uint64_t)date.year);
    *to++ = '-';
    to = put_digits(to, 2, date.month);
    *to++ = '-';
    return put_digits(to, 2, date.day);
}

/* Writes a time of the day; `fraction` has `digits` digits; zeros at its end are omitted. */
static char *put_clock(char *to, uint64_t second, uint64_t fraction, unsigned digits)
{
    to = put_digits(to, 2, second / 3600);
    *to++ = ':';
    to = put_digits(to, 2, second / 60 % 60);
    *to++ = ':';
    to = put_digits(to, 2, second % 60);
    if (fraction == 0) {
        return to;
    }
    for (; fraction % 10 == 0; fraction /= 10) {
        digits--;
    }
    *to++ = '.';
    return put_digits(to, digits, fraction);
}

static char *put_offset(char *to, int32_t offset)
{
    const unsigned seconds = (unsigned)(offset < 0 ? -offset : offset);

    *to++ = offset < 0 ? '-' : '+';
    to = put_digits(to, 2, seconds / 3600);
    *to++ = ':';
    return put_digits(to, 2, seconds / 60 % 60);
}

/* A time of an element. */
struct moment {
    int64_t days;
    uint64_t second, fraction;
};

/* Splits a time in units of 10^-scale seconds. Returns false if the time is out of range. */
static bool split(struct slc_arrow_cells *cells, int64_t units, struct moment *moment)
{
    const int32_t scale = cells->column->type.scale;
    const int64_t each = (int64_t)slc_powers_of_ten[scale];
    /* Divisions by constants are several times as fast as by a variable. */
    int64_t seconds = scale == 6   ? units / 1000000
                      : scale == 9 ? units / 1000000000
                      : scale == 3 ? units / 1000
                                   : units;

    const int64_t rest = units - seconds * each;
    seconds -= rest < 0;
    moment->fraction = (uint64_t)(rest < 0 ? rest + each : rest);
    if (seconds > seconds_max || seconds < -seconds_max) {
        return false;
    }
    if (cells->column->zone != NULL) {
        slc_arrow_zone_find(cells->column->zone, seconds, &cells->offset);
        seconds += cells->offset.offset;
    }
    moment->days = seconds / DAY - (seconds % DAY < 0);
    moment->second = (uint64_t)(seconds - moment->days * DAY);
    return true;
}

static int64_t out_of_range(const char *what, int64_t number, struct slc_error *err)
{
    (void)slc_fail(err, SLC_ERR_INPUT, "the %s %" PRId64 " is out of range", what, number);
    return FAULT;
}

/* Writes a date or timestamp. */
static int64_t
write_time(struct slc_arrow_cells *cells, int64_t units, char *to, struct slc_error *err)
{
    const struct slc_arrow_type *type = &cells->column->type;
    struct moment moment = {.days = units};
    char *end;

    if ((type->kind == SLC_ARROW_TIMESTAMP || type->width == 8) && !split(cells, units, &moment)) {
        return out_of_range("time", units, err);
    }
    if (type->kind == SLC_ARROW_DATE) {
        moment.second = moment.fraction = 0;
    }
    if (cells->form == SLC_ARROW_CLOCK && moment.days >= -719162 && moment.days <= 2932896) {
        const struct slc_time time = {(int32_t)moment.days, (int32_t)moment.second};

        memcpy(to, &time, sizeof time);
        return sizeof time;
    }
    end = put_date(to, moment.days);
    if (type->kind == SLC_ARROW_TIMESTAMP) {
        *end++ = ' ';
        end = put_clock(end, moment.second, moment.fraction, (unsigned)type->scale);
        end = type->has_zone ? put_offset(end, cells->offset.offset) : end;
    }
    return end - to;
}

static int64_t
write_time_of_day(const struct slc_arrow_type *type, int64_t units, char *to, struct slc_error *err)
{
    const int64_t each = (int64_t)slc_powers_of_ten[type->scale];

    if (units < 0 || units / each >= DAY) {
        return out_of_range("time of the day", units, err);
    }
    return put_clock(to, (uint64_t)(units / each), (uint64_t)(units % each),
                     (unsigned)type->scale) -
           to;
}

/* Writes the digits of an integer of up to 256 bits. Returns their number. */
static unsigned put_limbs(char *to, uint64_t limbs[4])
{
    uint64_t parts[5];
    unsigned count = 0, length;

    do {
        uint64_t rest = 0;

        for (int i = 3; i >= 0; i--) {
            const slc_u128 both = (slc_u128)rest << 64 | limbs[i];

            limbs[i] = (uint64_t)(both / slc_powers_of_ten[19]);
            rest = (uint64_t)(both % slc_powers_of_ten[19]);
        }
        parts[count++] = rest;
    } while ((limbs[0] | limbs[1] | limbs[2] | limbs[3]) != 0);
    length = slc_format_u64(to, parts[--count]);
    while (count > 0) {
        (void)put_digits(to + length, 19, parts[--count]);
        length += 19;
    }
    return length;
}

/* Writes a decimal with all digits of its scale. */
static int64_t write_decimal(const struct slc_arrow_type *type, const uint8_t *at, char *to)
{
    const int64_t low = load_signed(at, type->width < 8 ? 4 : 8);
    const uint64_t sign = (at[type->width - 1] & 0x80) != 0 ? UINT64_MAX : 0;
    uint64_t limbs[4] = {(uint64_t)low, sign, sign, sign};
    uint64_t carry = sign & 1;
    char digits[SLC_ARROW_CELL_BYTES], *out = to;

    for (unsigned i = 1; 8 * i < type->width; i++) {
        limbs[i] = slc_load_u64(at + 8 * (size_t)i);
    }
    for (unsigned i = 0; i < 4 && sign != 0; i++) {
        limbs[i] = ~limbs[i] + carry;
        carry = carry && limbs[i] == 0;
    }
    const int length = (int)put_limbs(digits, limbs);
    const int whole = length - type->scale;
    if (sign != 0) {
        *out++ = '-';
    }
    if (type->scale <= 0) {
        memcpy(out, digits, (size_t)length);
        memset(out + length, '0', (size_t)-type->scale);
        return out + length - type->scale - to;
    }
    if (whole <= 0) {
        memset(out, '0', (size_t)(2 - whole));
        out[1] = '.';
        memcpy(out + 2 - whole, digits, (size_t)length);
        return out + 2 - whole + length - to;
    }
    memcpy(out, digits, (size_t)whole);
    out[whole] = '.';
    memcpy(out + whole + 1, digits + whole, (size_t)type->scale);
    return out + length + 1 - to;
}

/* Writes a number as double. Numbers of less precision are read from their shortest decimal, as
 * from a CSV. */
static int64_t write_value(const struct slc_arrow_type *type, const uint8_t *at, bool bit, char *to)
{
    double value;
    int64_t bytes;

    switch (type->kind) {
    case SLC_ARROW_BOOL:
        value = bit ? 1 : 0;
        break;
    case SLC_ARROW_SIGNED:
        value = (double)load_signed(at, type->width);
        break;
    case SLC_ARROW_UNSIGNED:
        value = (double)load_unsigned(at, type->width);
        break;
    case SLC_ARROW_FLOAT:
        value = load_float(at, type->width);
        if (!isfinite(value)) {
            return slc_format_float(to, value, 53);
        }
        if (type->width == 8 || (fabs(value) < 2048 && value == floor(value))) {
            break;
        }
        bytes = slc_format_float(to, value, type->width == 4 ? 24 : 11);
        (void)slc_parse_f64(to, to + bytes, &value);
        break;
    default:
        bytes = write_decimal(type, at, to);
        (void)slc_parse_f64(to, to + bytes, &value);
    }
    memcpy(to, &value, sizeof value);
    return sizeof value;
}

/* Finds the bytes of a string. Returns false and records the fault if its offsets are invalid. */
static bool find_string(const struct slc_arrow_type *type,
                        const struct slc_arrow_vector *vector,
                        int64_t at,
                        const char **text,
                        int64_t *bytes,
                        struct slc_error *err)
{
    const uint8_t *element = vector->data + at * (int64_t)type->width;
    int64_t begin, end, heap = 0, heap_end = vector->heap_count;

    if (type->kind == SLC_ARROW_FIXED) {
        *text = (const char *)element;
        *bytes = type->width;
        return true;
    }
    if (type->kind == SLC_ARROW_STRING) {
        begin = load_signed(element, type->width);
        end = load_signed(element + type->width, type->width);
        *text = vector->heap;
    } else {
        *bytes = load_signed(element, 4);
        if (*bytes >= 0 && *bytes <= 12) {
            *text = (const char *)element + 4;
            return true;
        }
        heap = load_signed(element + 8, 4);
        begin = load_signed(element + 12, 4);
        end = *bytes < 0 ? -1 : begin + *bytes;
        if (heap < 0 || heap >= vector->heap_count || vector->heaps[heap] == NULL) {
            (void)slc_fail(err, SLC_ERR_INPUT,
                           "the string is in buffer %" PRId64 " of %" PRId64 " buffers", heap,
                           vector->heap_count);
            return false;
        }
        heap_end = vector->heap_bytes[heap];
        *text = vector->heaps[heap];
    }
    if (begin < 0 || begin > end || end > heap_end) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "the string is from byte %" PRId64 " to %" PRId64 " of %" PRId64, begin, end,
                       heap_end);
        return false;
    }
    *bytes = end - begin;
    *text = *bytes > 0 ? *text + begin : "";
    return true;
}

static int64_t write_string(const struct slc_arrow_type *type,
                            const struct slc_arrow_vector *vector,
                            int64_t at,
                            char *to,
                            size_t space,
                            struct slc_error *err)
{
    const char *text = NULL;
    int64_t bytes = 0;

    if (!find_string(type, vector, at, &text, &bytes, err)) {
        return FAULT;
    }
    if (bytes > SLC_ARROW_STRING_MAX) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "a string of %" PRId64 " bytes: at most %d are supported", bytes,
                       (int)SLC_ARROW_STRING_MAX);
        return FAULT;
    }
    if ((size_t)bytes > space) {
        return FULL;
    }
    if (bytes >= 4 && bytes <= 16) { /* copy two parts, which may overlap, without a call */
        const size_t part = bytes < 8 ? 4 : 8;

        memcpy(to, text, part == 4 ? 4 : 8);
        memcpy(to + bytes - part, text + bytes - part, part == 4 ? 4 : 8);
    } else {
        memcpy(to, text, (size_t)bytes);
    }
    return bytes;
}

/* Writes an element that is not null to at most `space` bytes. Returns the number of bytes, FULL or
 * FAULT. */
static inline int64_t write_element(
    struct slc_arrow_cells *cells, int64_t element, char *to, size_t space, struct slc_error *err)
{
    const struct slc_arrow_type *type = &cells->column->type;
    const struct slc_arrow_vector *vector = cells->vector;

    if (cells->column->coded) {
        const struct slc_arrow_type *codes = &cells->column->codes;
        const uint8_t *code = vector->data + (vector->offset + element) * (int64_t)codes->width;

        element = codes->kind == SLC_ARROW_SIGNED ? load_signed(code, codes->width)
                                                  : (int64_t)load_unsigned(code, codes->width);
        vector = cells->dictionary;
        if (element < 0 || element >= vector->length) {
            (void)slc_fail(err, SLC_ERR_INPUT,
                           "index %" PRId64 " of a dictionary of %" PRId64 " values", element,
                           vector->length);
            return FAULT;
        }
        if (type->kind == SLC_ARROW_NULL || slc_arrow_is_null(vector, element)) {
            return 0;
        }
    }
    const int64_t at = vector->offset + element;
    const uint8_t *data = vector->data + at * (int64_t)type->width;
    if (type->kind >= SLC_ARROW_STRING) {
        return write_string(type, vector, at, to, space, err);
    }
    if (space < SLC_ARROW_CELL_BYTES) {
        return FULL;
    }
    const bool bit = type->kind == SLC_ARROW_BOOL && slc_arrow_bit(vector->data, at);
    if (cells->form == SLC_ARROW_VALUE) {
        return write_value(type, data, bit, to);
    }
    switch (type->kind) {
    case SLC_ARROW_BOOL:
        memcpy(to, bit ? "true" : "false", 5);
        return bit ? 4 : 5;
    case SLC_ARROW_SIGNED: {
        const int64_t number = load_signed(data, type->width);

        *to = '-';
        return number < 0 ? 1 + slc_format_u64(to + 1, 0 - (uint64_t)number)
                          : slc_format_u64(to, (uint64_t)number);
    }
    case SLC_ARROW_UNSIGNED:
        return slc_format_u64(to, load_unsigned(data, type->width));
    case SLC_ARROW_FLOAT:
        return slc_format_float(to, load_float(data, type->width),
                                type->width == 8   ? 53
                                : type->width == 4 ? 24
                                                   : 11);
    case SLC_ARROW_DECIMAL:
        return write_decimal(type, data, to);
    case SLC_ARROW_TIME:
        return write_time_of_day(type, load_signed(data, type->width), to, err);
    default:
        return write_time(cells, load_signed(data, type->width), to, err);
    }
}

unsigned slc_arrow_write(struct slc_arrow_cells *cells,
                         const struct slc_arrow_batch *batch,
                         int64_t first,
                         unsigned rows,
                         char *text,
                         size_t *at,
                         size_t end,
                         uint32_t *starts,
                         unsigned stride,
                         struct slc_error *err)
{
    const struct slc_arrow_vector *vector = cells->vector;
    const bool none = cells->column->type.kind == SLC_ARROW_NULL && !cells->column->coded;

    for (unsigned r = 0; r < rows; r++, starts += stride) {
        const bool null =
            none || slc_arrow_is_null(vector, first + r) ||
            (batch->valid != NULL && !slc_arrow_bit(batch->valid, batch->array.offset + first + r));
        const int64_t bytes =
            null ? 0 : write_element(cells, first + r, text + *at, end - *at, err);

        if (bytes < 0) {
            return r;
        }
        starts[0] = (uint32_t)*at;
        *at += (size_t)bytes;
        starts[1] = (uint32_t)*at + 1;
    }
    return rows;
}
