/* Records of RFC 4180: fields between delimiters, in quotes where they hold one, or a line end. */
#ifndef SLC_CONVERT_SHEET_RECORD_H
#define SLC_CONVERT_SHEET_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_SHEET_COLUMNS_MAX = 4096, SLC_SHEET_RECORD_BYTES_MAX = 1 << 20 };

struct slc_sheet_field {
    const char *text; /* between the quotes, where there are any */
    size_t bytes;
    uint32_t line, column; /* where it begins: lines of the record from 0, bytes from 1 */
    bool doubled;          /* quotes in it stand for one each: slc_sheet_unquote */
};

enum slc_sheet_scan {
    SLC_SHEET_RECORD,
    SLC_SHEET_PARTIAL,  /* no end of it in sight */
    SLC_SHEET_UNCLOSED, /* the same, and there is no more: of the last field, quotes are not closed
                         */
    SLC_SHEET_AFTER_QUOTE, /* the last field goes on behind its quotes */
    SLC_SHEET_WIDE         /* more than SLC_SHEET_COLUMNS_MAX fields */
};

/*
 * Reads the record that begins at text[*position], `last`: nothing follows `bytes`. A field that
 * does not begin with a quote may have some, which are no more than characters. *lines: the line
 * ends that it takes. Advances *position behind a whole record only.
 */
enum slc_sheet_scan slc_sheet_scan(const char *text,
                                   size_t bytes,
                                   bool last,
                                   char delimiter,
                                   size_t *position,
                                   struct slc_sheet_field *fields,
                                   unsigned *count,
                                   uint32_t *lines);

/* Copies a field, at most `room` bytes, quotes that stand doubled once. Returns its bytes. */
size_t slc_sheet_unquote(const struct slc_sheet_field *field, char *to, size_t room);

#endif
