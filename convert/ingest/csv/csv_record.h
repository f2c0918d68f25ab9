/* Reads records of [RFC4180]. A delimiter separates fields; fields that contain a delimiter or line
 * end are in quotes. */
#ifndef SLC_CONVERT_CSV_RECORD_H
#define SLC_CONVERT_CSV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_CSV_COLUMNS_MAX = 4096, SLC_CSV_RECORD_BYTES_MAX = 1 << 20 };

struct slc_csv_field {
    const char *text; /* text without the enclosing quotes */
    size_t bytes;
    /* start of the field: line of the record from 0, byte of the line from 1 */
    uint32_t line, column;
    bool doubled; /* true if the text contains doubled quotes (slc_csv_unquote) */
};

enum slc_csv_scan {
    SLC_CSV_RECORD,
    SLC_CSV_PARTIAL,     /* the text has no record end yet */
    SLC_CSV_UNCLOSED,    /* the input ends before the closing quote of the last field */
    SLC_CSV_AFTER_QUOTE, /* the last field has text after its closing quote */
    SLC_CSV_WIDE         /* the record has more than SLC_CSV_COLUMNS_MAX fields */
};

/* Reads the record that begins at text[*position]. `last` is true if the input ends after `bytes`
 * bytes. In a field that does not begin with a quote, quotes are ordinary characters. Stores the
 * number of line ends in the record in *lines. Advances *position past the record if the record is
 * whole; otherwise leaves *position unchanged. */
enum slc_csv_scan slc_csv_scan(const char *text,
                               size_t bytes,
                               bool last,
                               char delimiter,
                               size_t *position,
                               struct slc_csv_field *fields,
                               unsigned *count,
                               uint32_t *lines);

/* Copies at most `capacity` bytes of a field and replaces doubled quotes with single quotes.
 * Returns the number of bytes. */
size_t slc_csv_unquote(const struct slc_csv_field *field, char *to, size_t capacity);

#endif
