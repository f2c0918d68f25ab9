/* Parses the text of fields, without enclosing quotes. Needs: eight readable bytes of any content
 * follow the text. Blanks around numbers and times are ignored. */
#ifndef SLC_CONVERT_CSV_FIELD_H
#define SLC_CONVERT_CSV_FIELD_H

#include "convert/ingest/csv/csv_time.h"
#include "convert/number/decimal.h"
#include "convert/number/number.h"

/* Slow versions of the functions below; they accept every valid text. */
bool slc_csv_value_long(const char *text, size_t bytes, double *value);
bool slc_csv_decimal_floor_long(const char *text, size_t bytes, int power, slc_i128 *units);
bool slc_csv_integer_long(const char *text, size_t bytes, uint64_t *index);
bool slc_csv_time_long(const char *text, size_t bytes, struct slc_time *time);

/* Parses a finite number. Returns false for any other text. */
static inline bool slc_csv_value(const char *text, size_t bytes, double *value)
{
    return slc_parse_short_f64(text, bytes, value) || slc_csv_value_long(text, bytes, value);
}

/* Like slc_decimal_floor. */
static inline bool slc_csv_decimal_floor(const char *text, size_t bytes, int power, slc_i128 *units)
{
    return slc_decimal_floor(text, bytes, power, units) ||
           slc_csv_decimal_floor_long(text, bytes, power, units);
}

/* Parses an integer from 0 to SLC_MAX_MODE_LENGTH - 1. Returns false for any other text. */
static inline bool slc_csv_integer(const char *text, size_t bytes, uint64_t *index)
{
    return (bytes - 1 < 8 && slc_digits8(text, index) == bytes) ||
           slc_csv_integer_long(text, bytes, index);
}

/* Parses a point in time (csv_time.h). Returns false for any other text. */
static inline bool slc_csv_time(const char *text, size_t bytes, struct slc_time *time)
{
    return slc_time_parse(text, bytes, time) || slc_csv_time_long(text, bytes, time);
}

#endif
