/* Handles SIGINT, SIGTERM and SIGUSR1 in a separate thread, which may lock and allocate, unlike a
 * signal handler. The first SIGINT or SIGTERM sets the stop flag, or, if the operation cannot stop
 * midway, calls `abandon` and ends the process. A second signal ends the process at once. A signal
 * within half a second of the first counts as the same request, because timeout(1) and terminals
 * signal both a process and its group. SIGUSR1 prints the state. Signals that were ignored when the
 * program started remain ignored (nohup, background jobs of a script). */
#ifndef SLC_TOOLS_SIGNALS_H
#define SLC_TOOLS_SIGNALS_H

#include "base/error/error.h"
#include <stdbool.h>

/* Starts the signal thread. `abandon`: NULL for operations that poll the stop flag. Call before any
 * other thread starts. Later calls only set `abandon`. */
enum slc_status
signals_start(void (*abandon)(void *context), void *context, struct slc_error *err) SLC_NODISCARD;

/* What a signal calls, before it ends the process. */
struct signals_abandon {
    void (*function)(void *context); /* NULL: nothing */
    void *context;
};

/* Sets `abandon` for the next operation, if it cannot stop midway; NULL for operations that poll
 * the stop flag. An operation during which `abandon` may change must also poll the stop flag.
 * Returns what was set before. */
struct signals_abandon signals_abandon_by(void (*abandon)(void *context), void *context);

/* Returns the stop flag: 0, or the number of the signal. */
const volatile int *signals_stop(void);
/* Returns whether the stop flag is set. */
bool signals_stop_requested(void);

/* Returns the exit code of a run that was stopped by a signal: 130 or 143. */
int signals_exit_code(void);

#endif
