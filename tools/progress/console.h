/*
 * Standard error, shared by all threads: errors, warnings and one live line of progress, which is
 * wiped before anything else is written to the terminal and drawn again by its next update.
 */
#ifndef SLC_TOOLS_CONSOLE_H
#define SLC_TOOLS_CONSOLE_H

#include "base/error/error.h"

#include <stdbool.h>

enum console_level { CONSOLE_QUIET, CONSOLE_NORMAL, CONSOLE_VERBOSE };

/* Sets how much is said and routes the library's log here. Errors are always printed. */
void console_start(enum console_level level);

/* "sluice: MESSAGE", unless quiet. */
void console_note(const char *format, ...) SLC_PRINTF(1, 2);

/* "sluice: FILE:LINE:COLUMN: MESSAGE", always, and what to do about a full disk or where this user
 * may not write. Returns the exit code of the status. */
int console_error(const struct slc_error *err);

/* The name of the status that the last error had; "" before any. */
const char *console_last_status(void);

/* A whole line as it is, for progress without a terminal. */
void console_line(const char *text);

/* Replaces the live line; "" wipes it. Only for terminals. */
void console_live(const char *text);

/* Wipes the live line, so that standard output may be written to the same terminal. */
void console_settle(void);

/* Whether standard error is a terminal that takes sequences which rewrite a line: not one whose
 * TERM is dumb or missing. */
bool console_can_rewrite(void);

#endif
