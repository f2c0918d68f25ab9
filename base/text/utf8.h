/* Checks UTF-8 in text that comes from files and users, such as names of files, indices and
 * columns. */
#ifndef SLC_BASE_UTF8_H
#define SLC_BASE_UTF8_H

#include <stddef.h>

/* U+FFFD, which replaces a byte that is not part of a valid character. */
#define SLC_UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Returns the length, 1 to 4, of the well-formed sequence (Unicode 15, table 3-7) at `at`; 0 if
 * there is no such sequence, or if it does not end within `bytes` bytes. A terminating 0 is a
 * character and cannot be part of a longer sequence. For a terminated string the caller may
 * therefore pass any `bytes` >= 4. */
unsigned slc_utf8_length(const char *at, size_t bytes);

#endif
