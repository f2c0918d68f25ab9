/*
 * What the text of a field means, without its quotes. Behind the text eight bytes have to be there;
 * what they are does not matter. Blanks around numbers and times are none of them.
 */
#ifndef SLC_CONVERT_CSV_FIELD_H
#define SLC_CONVERT_CSV_FIELD_H

#include "convert/ingest/csv/csv_time.h"
#include "convert/number/number.h"

/* As those below, for texts of any form. */
bool slc_csv_value_long(const char *text, size_t bytes, double *value);
bool slc_csv_integer_long(const char *text, size_t bytes, uint64_t *index);
bool slc_csv_time_long(const char *text, size_t bytes, struct slc_time *time);

/* A finite number. */
static inline bool slc_csv_value(const char *text, size_t bytes, double *value)
{
    return slc_parse_short_f64(text, bytes, value) || slc_csv_value_long(text, bytes, value);
}

/* An integer from 0 to below SLC_MAX_MODE_LENGTH. */
static inline bool slc_csv_integer(const char *text, size_t bytes, uint64_t *index)
{
    return (bytes - 1 < 8 && slc_digits8(text, index) == bytes) ||
           slc_csv_integer_long(text, bytes, index);
}

/* A point in time. */
static inline bool slc_csv_time(const char *text, size_t bytes, struct slc_time *time)
{
    return slc_time_parse(text, bytes, time) || slc_csv_time_long(text, bytes, time);
}

#endif
