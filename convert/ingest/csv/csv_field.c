#include "convert/ingest/csv/csv_field.h"

#include "convert/number/number.h"

#include <math.h>

/* Removes blanks at both ends. Returns false if nothing is left. */
static bool without_blanks(const char **text, const char **end)
{
    while (*text < *end && **text == ' ') {
        (*text)++;
    }
    while (*end > *text && (*end)[-1] == ' ') {
        (*end)--;
    }
    return *text < *end;
}

bool slc_csv_value_long(const char *text, size_t bytes, double *value)
{
    const char *end = text + bytes;

    return without_blanks(&text, &end) && slc_parse_f64(text, end, value) == end &&
           isfinite(*value);
}

bool slc_csv_decimal_floor_long(const char *text, size_t bytes, int power, slc_i128 *units)
{
    const char *end = text + bytes;

    return without_blanks(&text, &end) &&
           slc_decimal_floor_long(text, (size_t)(end - text), power, units);
}

bool slc_csv_integer_long(const char *text, size_t bytes, uint64_t *index)
{
    const char *end = text + bytes;

    return without_blanks(&text, &end) && slc_parse_index(text, end, index) == end &&
           *index < SLC_MAX_MODE_LENGTH;
}

bool slc_csv_time_long(const char *text, size_t bytes, struct slc_time *time)
{
    const char *end = text + bytes;

    return without_blanks(&text, &end) && slc_time_parse(text, (size_t)(end - text), time);
}
