/* UTF-8 characters in text of files and users: names of files, indices and columns. */
#ifndef SLC_BASE_UTF8_H
#define SLC_BASE_UTF8_H

#include <stddef.h>

/* U+FFFD, "replacement character": replaces a byte that is not part of a character. */
#define SLC_UTF8_REPLACEMENT "\xef\xbf\xbd"

/*
 * Returns the length, 1 to 4, of the well-formed sequence (Unicode 15, table 3-7) at `at`; 0 if
 * there is no such sequence, or if it does not end within `bytes` bytes. A terminating 0 is a
 * character of its own and part of no other sequence, so for a string every value of `bytes` from 4
 * is valid.
 */
unsigned slc_utf8_length(const char *at, size_t bytes);

#endif
