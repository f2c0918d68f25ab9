/*
 * What messages call things. They are written for the command: "--max-temp", "the same command
 * line". A library has other words for the same, which it gives here before anything else is
 * called.
 */
#ifndef SLC_BASE_WORDS_H
#define SLC_BASE_WORDS_H

#include <stddef.h>

struct slc_word {
    const char *said;
    const char *instead;
};

/*
 * Of now on messages have these words instead, the first that fits; other options lose their
 * dashes: "--index-base" becomes index_base. What is to be typed, in brackets or quotes after
 * "sluice ", stays. Borrowed. NULL: messages stay as they are, as at first.
 */
void slc_words_set(const struct slc_word *words, size_t count);

/* Rewrites a message in its place, of `bytes` bytes, as far as there is room. */
void slc_words_apply(char *text, size_t bytes);

#endif
