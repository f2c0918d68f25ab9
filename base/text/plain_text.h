/* Texts from elsewhere, which are told to people: what a terminal would obey is taken out. */
#ifndef SLC_BASE_PLAIN_TEXT_H
#define SLC_BASE_PLAIN_TEXT_H

#include <stdbool.h>

/* Whether the text has no control character: below ' ', 7F, and of UTF-8 U+0080 to U+009F. */
bool slc_text_is_plain(const char *text);

/* Puts '?' in the place of each byte of a control character. */
void slc_text_make_plain(char *text);

#endif
