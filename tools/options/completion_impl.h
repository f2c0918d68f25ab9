/* What the scripts of all shells have in common: what there is to complete. */
#ifndef SLC_TOOLS_COMPLETION_IMPL_H
#define SLC_TOOLS_COMPLETION_IMPL_H

#include "tools/options/options.h"

#include <stdbool.h>

enum { OFFER_WORDS_BYTES = 512 };

/* What may stand as the value of an option. */
struct offer {
    char words[OFFER_WORDS_BYTES]; /* separated by blanks */
    bool files, folders;           /* paths: folders alone, or files as well */
};

/*
 * By the kind of the option and by what stands for its value in the help: choices; of a text the
 * lower-case words between bars, DIR for a folder, and FILE, STEM or *.npy for a file. Nothing
 * where the value is a number.
 */
void offer_of(const struct option *option, struct offer *offer);

/* Calls `print` for each of `commands` (NULL-terminated) and of their subcommands. `words` is what
 * follows "sluice", e.g. "bench io". */
void completion_each(const struct command *const *commands,
                     void (*print)(const struct command *command, const char *words));

/* The first sentence of a help text, or all: for a list of options. Prints with each of `special`
 * behind a backslash, and quotes as they are within single quotes of a shell. */
void completion_print_help(const char *help, const char *special, const char *quote);

#endif
