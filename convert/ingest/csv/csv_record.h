/* Records of [RFC4180]: fields between delimiters, in quotes if they contain a delimiter or line
 * end. */
#ifndef SLC_CONVERT_CSV_RECORD_H
#define SLC_CONVERT_CSV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_CSV_COLUMNS_MAX = 4096, SLC_CSV_RECORD_BYTES_MAX = 1 << 20 };

struct slc_csv_field {
    const char *text; /* without the quotes */
    size_t bytes;
    uint32_t line, column; /* start of the field: lines of the record from 0, bytes from 1 */
    bool doubled;          /* contains doubled quotes: slc_csv_unquote */
};

enum slc_csv_scan {
    SLC_CSV_RECORD,
    SLC_CSV_PARTIAL,     /* no record end in the text so far */
    SLC_CSV_UNCLOSED,    /* the input ends, but the quotes of the last field are not closed */
    SLC_CSV_AFTER_QUOTE, /* the last field continues after its quotes */
    SLC_CSV_WIDE         /* more than SLC_CSV_COLUMNS_MAX fields */
};

/*
 * Reads the record that begins at text[*position]. `last`: the input ends after `bytes`. In a field
 * that does not begin with a quote, quotes are ordinary characters. *lines: the number of line ends
 * in the record. Advances *position past the record if it is whole; otherwise leaves it unchanged.
 */
enum slc_csv_scan slc_csv_scan(const char *text,
                               size_t bytes,
                               bool last,
                               char delimiter,
                               size_t *position,
                               struct slc_csv_field *fields,
                               unsigned *count,
                               uint32_t *lines);

/* Copies at most `capacity` bytes of a field and replaces doubled quotes with single ones.
 * Returns the number of bytes. */
size_t slc_csv_unquote(const struct slc_csv_field *field, char *to, size_t capacity);

#endif
