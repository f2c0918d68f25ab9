/* Records of RFC 4180: fields between delimiters, in quotes where they hold one, or a line end. */
#ifndef SLC_CONVERT_CSV_RECORD_H
#define SLC_CONVERT_CSV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_CSV_COLUMNS_MAX = 4096, SLC_CSV_RECORD_BYTES_MAX = 1 << 20 };

struct slc_csv_field {
    const char *text; /* between the quotes, where there are any */
    size_t bytes;
    uint32_t line, column; /* where it begins: lines of the record from 0, bytes from 1 */
    bool doubled;          /* quotes in it stand for one each: slc_csv_unquote */
};

enum slc_csv_scan {
    SLC_CSV_RECORD,
    SLC_CSV_PARTIAL,     /* no end of it in sight */
    SLC_CSV_UNCLOSED,    /* the same, and there is no more: of the last field, quotes are not closed
                          */
    SLC_CSV_AFTER_QUOTE, /* the last field goes on behind its quotes */
    SLC_CSV_WIDE         /* more than SLC_CSV_COLUMNS_MAX fields */
};

/*
 * Reads the record that begins at text[*position], `last`: nothing follows `bytes`. A field that
 * does not begin with a quote may have some, which are no more than characters. *lines: the line
 * ends that it takes. Advances *position behind a whole record only.
 */
enum slc_csv_scan slc_csv_scan(const char *text,
                               size_t bytes,
                               bool last,
                               char delimiter,
                               size_t *position,
                               struct slc_csv_field *fields,
                               unsigned *count,
                               uint32_t *lines);

/* Copies a field, at most `room` bytes, quotes that stand doubled once. Returns its bytes. */
size_t slc_csv_unquote(const struct slc_csv_field *field, char *to, size_t room);

#endif
