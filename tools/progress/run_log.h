/*
 * The JSON log of the command that runs (--log-json): opened before it, told of its progress, and
 * ended with its exit code, whichever way it ends.
 */
#ifndef SLC_TOOLS_RUN_LOG_H
#define SLC_TOOLS_RUN_LOG_H

#include "tools/options/options.h"
#include "tools/progress/log_json.h"

#include <stdbool.h>

/*
 * Opens the log that the option log-json names, if the command has that and it was given, empties
 * it and writes the first event; false after a fault, which has been printed: *exit_code then says
 * how it ended. One whose log goes on where a run does (command.resumes) opens it itself.
 */
bool run_log_begin(
    const struct command *command, int argc, char **argv, const void *values, int *exit_code);

/* The same for a log that is open already; NULL: none any more. It stays the caller's. */
void run_log_use(struct log_json *log);

/* Whether there is a log that run_log_begin opened. */
bool run_log_is_open(void);
/* What the last event is to have as its member "estimate"; owns it, log or not. */
void run_log_estimate(json_t *estimate);

/* The last event and the end of a log that run_log_begin opened. */
void run_log_end(int exit_code);

/* A signal is about to end the process. */
void run_log_abort(int exit_code);

#endif
