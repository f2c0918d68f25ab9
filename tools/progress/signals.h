/*
 * SIGINT, SIGTERM and SIGUSR1, acted upon by a thread of their own, so that what they cause may
 * lock and allocate. The first of SIGINT and SIGTERM sets the stop flag, or ends the process after
 * `abandon` where an operation cannot stop half-way; a second one ends the process at once. One
 * that follows within half a second is the same wish: timeout(1) and terminals signal a process and
 * its group. SIGUSR1 prints the state. A signal that was ignored when the program started stays
 * ignored (nohup, background jobs of a script).
 */
#ifndef SLC_TOOLS_SIGNALS_H
#define SLC_TOOLS_SIGNALS_H

#include "base/error/error.h"
#include <stdbool.h>

/* `abandon`: NULL for operations that poll the stop flag. Call before any other thread starts. */
enum slc_status
signals_start(void (*abandon)(void *context), void *context, struct slc_error *err) SLC_NODISCARD;

/*
 * What follows cannot stop half-way, and `abandon` ends it; or NULL: it polls the stop flag, and so
 * does all that was begun with another one.
 */
void signals_abandon_by(void (*abandon)(void *context), void *context);

/* The stop flag: 0, or the number of the signal. */
const volatile int *signals_stop(void);
/* Whether it is non-zero. */
bool signals_stop_wanted(void);

/* The exit code of a run that a signal stopped: 130 or 143. */
int signals_exit_code(void);

#endif
