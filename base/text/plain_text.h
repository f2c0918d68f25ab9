/* Replaces control characters, which terminals would interpret, in text that comes from files and
 * users. */
#ifndef SLC_BASE_PLAIN_TEXT_H
#define SLC_BASE_PLAIN_TEXT_H

#include <stdbool.h>

/* Returns whether the text has no control character. Control characters are bytes below ' ', byte
 * 7F, and U+0080 to U+009F in UTF-8. */
bool slc_text_is_plain(const char *text);

/* Replaces each byte of a control character with '?'. */
void slc_text_make_plain(char *text);

#endif
