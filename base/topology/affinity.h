/* Processors that a thread may run on: binding it to one, and back. */
#ifndef SLC_BASE_AFFINITY_H
#define SLC_BASE_AFFINITY_H

#include <sched.h>
#include <stdbool.h>

/*
 * Processors the calling thread may run on by its own affinity mask, a binding apart. Where the
 * system does not say, or has more than CPU_SETSIZE, false and none.
 */
bool slc_thread_allowed(cpu_set_t *allowed);

/*
 * Binds the calling thread to one processor until slc_thread_unbind or the next slc_thread_bind.
 * Costs a system call only where that is another one than before. A processor that is not there or
 * not allowed leaves the thread as it was: slower at worst, so it is no error. The first time in a
 * process it is logged (SLC_LOG_DETAIL).
 */
void slc_thread_bind(unsigned processor);

/* Gives the calling thread back the mask that it had before it was bound. */
void slc_thread_unbind(void);

/*
 * Moves the calling thread, which is not bound, to a processor that it may run on and leaves it
 * free to be moved on. A refusal leaves it where it is. Costs three system calls.
 */
void slc_thread_move(unsigned processor);

/* Whether the calling thread is bound, and where to. */
bool slc_thread_bound(unsigned *processor);

#endif
