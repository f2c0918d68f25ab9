/*
 * What a shell needs to complete command lines of sluice, printed from the option tables of the
 * commands: a script for bash, zsh or fish that knows every command, option and choice, and where
 * a value is the name of a file or folder.
 */
#ifndef SLC_TOOLS_COMPLETION_H
#define SLC_TOOLS_COMPLETION_H

#include "tools/options/options.h"

/* Each prints the script for `commands` (NULL-terminated) to standard output. */
void completion_print_bash(const struct command *const *commands);
void completion_print_zsh(const struct command *const *commands);
void completion_print_fish(const struct command *const *commands);

#endif
