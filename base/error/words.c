/* See base/error/words.h. */
#include "base/error/words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 1024 };

static const struct slc_word *replaced;
static size_t replaced_count;

void slc_words_set(const struct slc_word *words, size_t count)
{
    replaced = words;
    replaced_count = words != NULL ? count : 0;
}

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Bytes of a command line in brackets or quotes that begins behind `at`; 0: there is none. */
static size_t command_bytes(const char *at)
{
    if ((*at != '(' && *at != '\'') || strncmp(at + 1, "sluice ", 7) != 0) {
        return 0;
    }
    return 1 + strcspn(at + 1, *at == '(' ? ")" : "'");
}

/* Whether a word may begin at `at`: not within another. */
static bool begins(const char *text, const char *at)
{
    return at == text || (at[-1] != '-' && !is_letter(at[-1]));
}

/* The word that stands at `at`, or NULL. */
static const struct slc_word *find(const char *text, const char *at)
{
    for (size_t i = 0; begins(text, at) && i < replaced_count; i++) {
        const size_t bytes = strlen(replaced[i].said);

        if (strncmp(at, replaced[i].said, bytes) == 0 && !is_letter(at[bytes]) &&
            at[bytes] != '-') {
            return &replaced[i];
        }
    }
    return NULL;
}

/* Where the option at `at` begins behind its dashes, or `at` where there is none. */
static const char *option_at(const char *text, const char *at)
{
    return begins(text, at) && at[0] == '-' && at[1] == '-' && is_letter(at[2]) ? at + 2 : at;
}

struct rewriting {
    char *text;
    size_t used, room;
};

static void put(struct rewriting *to, const char *from, size_t bytes)
{
    if (bytes > to->room - to->used) {
        bytes = to->room - to->used;
    }
    memcpy(to->text + to->used, from, bytes);
    to->used += bytes;
}

/* An option without dashes; returns what is behind it. */
static const char *put_option(struct rewriting *to, const char *at)
{
    for (; is_letter(*at) || (*at == '-' && is_letter(at[1])); at++) {
        put(to, *at == '-' ? "_" : at, 1);
    }
    return at;
}

/* Whether there was room for all of it. */
static bool rewrite(char *text, size_t bytes, const char *said)
{
    struct rewriting to = {.text = text, .room = bytes - 1};
    const char *at = said;

    while (*at != '\0' && to.used < to.room) {
        const size_t command = command_bytes(at);
        const struct slc_word *word = command > 0 ? NULL : find(said, at);
        const char *option = option_at(said, at);

        if (word != NULL) {
            put(&to, word->instead, strlen(word->instead));
            at += strlen(word->said);
        } else if (command == 0 && option != at) {
            at = put_option(&to, option);
        } else {
            put(&to, at, command > 0 ? command : 1);
            at += command > 0 ? command : 1;
        }
    }
    text[to.used] = '\0';
    return to.used < to.room;
}

const char *slc_words_said(char *text, size_t bytes, const char *said)
{
    if (said == NULL || replaced == NULL) {
        (void)snprintf(text, bytes, "%s", said != NULL ? said : "");
    } else {
        (void)rewrite(text, bytes, said);
    }
    return text;
}

void slc_words_format(char *text, size_t bytes, const char *format, va_list args)
{
    char other[MESSAGE_BYTES];

    /* A format that is cut might end within a conversion. */
    if (replaced != NULL && rewrite(other, sizeof other, format)) {
        format = other;
    }
    (void)vsnprintf(text, bytes, format, args);
}
