/* Fields of CSV output ([RFC4180]). */
#ifndef SLC_BASE_CSV_TEXT_H
#define SLC_BASE_CSV_TEXT_H

#include <stddef.h>

/* Returns the maximum length of the results of the functions below for `bytes` bytes. An apostrophe
 * needs no additional space: a text that gets one starts with a character that is not doubled. */
static inline size_t slc_csv_quoted_bytes(size_t bytes)
{
    return 2 * bytes + 2;
}

/* Write a zero-terminated text of `bytes` bytes in double quotes, with inner quotes doubled, and
 * return the length. `out` is not terminated. slc_csv_quote puts an apostrophe before a text that a
 * spreadsheet could run as a formula, even if the text already has apostrophes in front.
 * slc_csv_quote_raw adds no apostrophe. */
size_t slc_csv_quote(char *out, const char *text, size_t bytes);
size_t slc_csv_quote_raw(char *out, const char *text, size_t bytes);

#endif
