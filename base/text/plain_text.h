/* Replaces control characters in text that comes from files and users. Terminals would interpret
 * them, or show the text in another order than it is stored. */
#ifndef SLC_BASE_PLAIN_TEXT_H
#define SLC_BASE_PLAIN_TEXT_H

#include <stdbool.h>

/* Returns whether the text has no control character. Control characters are bytes below ' ', byte
 * 7F, and in UTF-8 U+0080 to U+009F, the separators U+2028 and U+2029, and the marks, embeddings,
 * overrides and isolates of the direction of text: U+061C, U+200E, U+200F, U+202A to U+202E and
 * U+2066 to U+2069. */
bool slc_text_is_plain(const char *text);

/* Replaces each byte of a control character with '?'. */
void slc_text_make_plain(char *text);

#endif
