/* Fields of CSV output ([RFC4180]). */
#ifndef SLC_BASE_CSV_TEXT_H
#define SLC_BASE_CSV_TEXT_H

#include <stddef.h>

/* Returns the space that the functions below need at most for `bytes` bytes. A text that gets an
 * apostrophe has a character that is not doubled, so the apostrophe needs no further space. */
static inline size_t slc_csv_quoted_bytes(size_t bytes)
{
    return 2 * bytes + 2;
}

/* Write `bytes` bytes of text, which a zero follows, in double quotes, with inner quotes doubled
 * and without a final zero. Return the length. slc_csv_quote puts an apostrophe before a text that
 * a spreadsheet could run as a formula, and before such a text with apostrophes in front;
 * slc_csv_quote_raw leaves the text as it is. */
size_t slc_csv_quote(char *out, const char *text, size_t bytes);
size_t slc_csv_quote_raw(char *out, const char *text, size_t bytes);

#endif
