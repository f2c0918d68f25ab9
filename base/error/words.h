/*
 * What messages call things. They are written for the command: "--max-temp", "the same command
 * line". A library has other words for the same, which it gives here before anything else is
 * called.
 */
#ifndef SLC_BASE_WORDS_H
#define SLC_BASE_WORDS_H

#include <stdarg.h>
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

/*
 * Formats a message as vsnprintf does, whose format is said in these words. What it is given as
 * arguments stays, since that are names of files and columns: a text of ours among them is
 * SLC_SAID.
 */
void slc_words_format(char *text, size_t bytes, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Writes `said` in these words into `text`, as far as there is room; returns `text`. */
const char *slc_words_said(char *text, size_t bytes, const char *said);

/* A text of ours as an argument of a message, valid to the end of the block; NULL is "". */
#define SLC_SAID(said) slc_words_said((char[SLC_SAID_BYTES]){0}, SLC_SAID_BYTES, (said))
enum { SLC_SAID_BYTES = 192 };

#endif
