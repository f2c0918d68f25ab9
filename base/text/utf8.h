/* Characters of UTF-8 in texts from elsewhere: names of files, of indices, of columns. */
#ifndef SLC_BASE_UTF8_H
#define SLC_BASE_UTF8_H

#include <stddef.h>

/* What stands for a byte that is no part of a character: U+FFFD, "replacement character". */
#define SLC_UTF8_REPLACEMENT "\xef\xbf\xbd"

/*
 * Length of the well-formed sequence (Unicode 15, table 3-7) that `at` begins with, 1 to 4; 0 if
 * there is none, or one that does not end within `room` bytes. A terminating 0 is a character of
 * its own and ends every other, so that of a string `room` may be anything from 4 on.
 */
unsigned slc_utf8_length(const char *at, size_t room);

#endif
