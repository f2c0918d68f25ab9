/* Standard error, shared by all threads: errors, warnings and one live progress line. The live line
 * is erased before anything else is written; the next update draws it again. */
#ifndef SLC_TOOLS_CONSOLE_H
#define SLC_TOOLS_CONSOLE_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

enum console_level { CONSOLE_QUIET, CONSOLE_NORMAL, CONSOLE_VERBOSE };

/* Sets the verbosity and receives the log messages of the library. Errors are always printed. */
void console_start(enum console_level level);

/* Prints "sluice: MESSAGE", unless the level is quiet. */
void console_note(const char *format, ...) SLC_PRINTF(1, 2);

/* Prints "sluice: FILE:LINE:COLUMN: MESSAGE", at every level, and advice for errors such as a full
 * disk or missing permission. Returns the exit code of the status. */
int console_error(const struct slc_error *err);

/* Returns the status name of the last error; "" if there was none. */
const char *console_last_status(void);

/* Prints a whole line unchanged, for progress without a terminal. */
void console_line(const char *text);

/* Replaces the live line; "" erases it. Only for terminals. */
void console_live(const char *text);

/* Erases the live line, so that standard output can be written to the same terminal. */
void console_clear_live(void);

/* Returns whether standard error is a terminal that can rewrite a line: TERM is set and not
 * "dumb". */
bool console_can_rewrite(void);

/* Prints the options with which convert reads a text back if the text does not show its index base,
 * which is 0, or its mode sizes `dims`. `other` is the end of the note: another way, or "". */
void console_note_lost(
    bool base_lost, bool dims_lost, unsigned order, const uint64_t *dims, const char *other);

#endif
