/* Parses rows of a text tensor to arrays of coordinates and values.
 *
 * Two functions parse the same grammar. parse_row() parses valid rows and only detects that a row
 * is invalid; diagnose() reads an invalid line again and reports its first fault. The loop over
 * nonzeros therefore needs no messages, columns or field counts.
 *
 * Cost: about 2 ns per number, plus a pass over the coordinates in the cache that updates their
 * ranges. */
#include "convert/ingest/text/text_scan.h"

#include "base/column_range.h"
#include "convert/number/number.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Returns the start of the next line if the rest of this line is blank, otherwise NULL. */
static inline const char *end_line(const char *p, const char *end)
{
    p = slc_skip_blanks(p, end);
    if (p < end && *p == '\r') {
        p++;
        if (p == end) {
            return p;
        }
        return *p == '\n' ? p + 1 : NULL;
    }
    if (p == end) {
        return p;
    }
    return *p == '\n' ? p + 1 : NULL;
}

/* Parses a value. Most values are small integers, so values of up to seven digits have a fast
 * path. */
static inline const char *parse_value(const char *p, const char *end, double *value)
{
    if (end - p >= 8) {
        uint64_t integer;
        unsigned digits = slc_digits8(p, &integer);

        if (digits > 0 && digits < 8 && (unsigned char)p[digits] <= ' ') {
            *value = (double)integer;
            return p + digits;
        }
    }
    p = slc_parse_f64(p, end, value);
    return p && fabs(*value) <= DBL_MAX ? p : NULL;
}

/* Parses a row that starts with a digit at `p` and stores it as row number `row`. Returns the start
 * of the next line, or NULL if the row is invalid. */
static inline const char *parse_row(const struct slc_text_header *header,
                                    const char *p,
                                    const char *end,
                                    struct slc_text_rows *rows,
                                    uint32_t row)
{
    for (unsigned m = 0; m < header->order; m++) {
        const char *after = slc_parse_index(p, end, &rows->coords[m][row]);

        if (!after) {
            return NULL;
        }
        p = slc_skip_blanks(after, end);
        if (p == after && (m + 1 < header->order || header->has_values)) {
            return NULL;
        }
    }
    if (!header->has_values) {
        rows->values[row] = 1.0;
        return end_line(p, end);
    }
    p = parse_value(p, end, &rows->values[row]);
    return p ? end_line(p, end) : NULL;
}

/* Returns the start of the next line if the line at `p`, whose leading blanks were skipped, is
 * empty or a comment; otherwise NULL. */
static const char *
skip_line_without_row(const struct slc_text_header *header, const char *p, const char *end)
{
    if (slc_text_is_comment(header->comment, p, end)) {
        return slc_text_line_at(p, end).next;
    }
    return end_line(p, end);
}

/* Records why `field` is not an index; returns SLC_OK if it is an index. */
static enum slc_status
diagnose_index(const struct slc_text_field *field, unsigned mode, struct slc_error *err)
{
    char quoted[SLC_QUOTE_BYTES];
    const char *p = field->begin;
    uint64_t value;

    while (p < field->end && *p >= '0' && *p <= '9') {
        p++;
    }
    if (p == field->end) {
        if (slc_parse_index(field->begin, field->end, &value)) {
            return SLC_OK;
        }
        return slc_fail(err, SLC_ERR_INPUT,
                        "index %s of mode %u is too large: the maximum is %" PRIu64,
                        slc_text_quote(quoted, field), mode + 1, SLC_MAX_MODE_LENGTH);
    }
    slc_text_quote(quoted, field);
    if (*field->begin == '-' && field->end - field->begin > 1 && field->begin[1] >= '0' &&
        field->begin[1] <= '9') {
        return slc_fail(err, SLC_ERR_INPUT, "negative index %s of mode %u: indices start at 0 or 1",
                        quoted, mode + 1);
    }
    if (*p == '.' || (p > field->begin && (*p == 'e' || *p == 'E'))) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "expected a whole number as index of mode %u, found %s (is the number of "
                        "modes correct?)",
                        mode + 1, quoted);
    }
    return slc_fail(err, SLC_ERR_INPUT, "expected an index of mode %u, found %s", mode + 1, quoted);
}

/* Records why `field` is not a value; returns SLC_OK if it is a value. */
static enum slc_status diagnose_value(const struct slc_text_field *field, struct slc_error *err)
{
    char quoted[SLC_QUOTE_BYTES];
    struct slc_text_field word = *field;
    double value;
    const char *after = slc_parse_f64(field->begin, field->end, &value);

    slc_text_quote(quoted, field);
    if (after == field->end) {
        if (fabs(value) <= DBL_MAX) {
            return SLC_OK;
        }
        return slc_fail(err, SLC_ERR_INPUT, "value %s is too large: the largest double is %.4g",
                        quoted, DBL_MAX);
    }
    if (*word.begin == '+' || *word.begin == '-') {
        word.begin++;
    }
    if (slc_text_field_is(&word, "nan") || slc_text_field_is(&word, "inf") ||
        slc_text_field_is(&word, "infinity")) {
        return slc_fail(err, SLC_ERR_INPUT, "value %s is not finite: values must be numbers",
                        quoted);
    }
    if (word.end - word.begin >= 2 && word.begin[0] == '0' &&
        (word.begin[1] == 'x' || word.begin[1] == 'X')) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "hexadecimal value %s: only decimal numbers are supported", quoted);
    }
    return slc_fail(err, SLC_ERR_INPUT, "expected a number as value, found %s", quoted);
}

/* Reads again a line that parse_row rejected, and records its first fault with its column. */
static enum slc_status diagnose(const struct slc_text_header *header,
                                const char *text,
                                const char *end,
                                uint64_t line_number,
                                struct slc_error *err)
{
    struct slc_text_line line = slc_text_line_at(text, end);
    const char *zero = memchr(line.begin, '\0', (size_t)(line.end - line.begin));
    const char *p = line.begin;
    unsigned expected = header->order + (header->has_values ? 1 : 0);
    struct slc_text_field field = {p, p};
    uint64_t found = 0;
    enum slc_status status = SLC_OK;

    if (line.next - line.begin > SLC_LINE_BYTES_MAX) {
        status = slc_fail(err, SLC_ERR_INPUT, "a line of more than %d bytes is too long for a row",
                          (int)SLC_LINE_BYTES_MAX);
        slc_error_locate_text(err, NULL, line_number, (uint64_t)SLC_LINE_BYTES_MAX + 1);
        return status;
    }
    if (zero) {
        status = slc_fail(err, SLC_ERR_INPUT, "zero byte in a line: this is not text");
        slc_error_locate_text(err, NULL, line_number, (uint64_t)(zero - line.begin) + 1);
        return status;
    }
    while (status == SLC_OK && found < expected && slc_text_field_next(&p, line.end, &field)) {
        status = found < header->order ? diagnose_index(&field, (unsigned)found, err)
                                       : diagnose_value(&field, err);
        found++;
    }
    if (status == SLC_OK) {
        if (slc_text_field_next(&p, line.end, &field)) {
            found += 1 + slc_text_field_count(p, line.end);
        }
        status = slc_fail(err, SLC_ERR_INPUT, "found %" PRIu64 " field%s, expected %u (%u %s%s)",
                          found, found == 1 ? "" : "s", expected, header->order,
                          header->order == 1 ? "index" : "indices",
                          header->has_values ? " and a value" : "");
    }
    slc_error_locate_text(err, NULL, line_number, (uint64_t)(field.begin - line.begin) + 1);
    return status;
}

/* Extends the ranges to include rows `first` to rows->count - 1. */
static void update_ranges(struct slc_text_rows *rows, unsigned order, uint32_t first)
{
    for (unsigned m = 0; m < order; m++) {
        slc_column_range(rows->coords[m] + first, rows->count - first, &rows->smallest[m],
                         &rows->largest[m]);
    }
}

enum slc_status slc_text_parse_rows(const struct slc_text_header *header,
                                    const char *text,
                                    size_t bytes,
                                    size_t *position,
                                    struct slc_text_rows *rows,
                                    struct slc_error *err)
{
    const char *p = text + *position;
    const char *end = text + bytes;
    const uint32_t first = rows->count;
    uint32_t count = first;
    enum slc_status status = SLC_OK;

    assert(header->order >= 1 && header->order <= SLC_MAX_ORDER);
    while (p < end && count < rows->capacity) {
        const char *start = slc_skip_blanks(p, end);
        const char *next;
        bool is_row = start < end && *start >= '0' && *start <= '9';

        if (is_row) {
            next = parse_row(header, start, end, rows, count);
        } else {
            next = skip_line_without_row(header, start, end);
        }
        if (!next || next - p > SLC_LINE_BYTES_MAX) {
            status = diagnose(header, p, end, rows->lines + 1, err);
            break;
        }
        count += is_row;
        rows->lines++;
        p = next;
    }
    rows->count = count;
    update_ranges(rows, header->order, first);
    *position = (size_t)(p - text);
    return status;
}

uint64_t
slc_text_field_column(const char *text, size_t bytes, size_t line_start, unsigned field_index)
{
    struct slc_text_line line = slc_text_line_at(text + line_start, text + bytes);
    const char *p = line.begin;
    struct slc_text_field field = {p, p};

    for (unsigned f = 0; f <= field_index; f++) {
        if (!slc_text_field_next(&p, line.end, &field)) {
            break;
        }
    }
    return (uint64_t)(field.begin - line.begin) + 1;
}
