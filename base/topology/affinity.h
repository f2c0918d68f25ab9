/* Binds a thread to a processor and releases it. */
#ifndef SLC_BASE_AFFINITY_H
#define SLC_BASE_AFFINITY_H

#include <sched.h>
#include <stdbool.h>

/* Stores the affinity mask of the calling thread; for a bound thread, its mask before
 * slc_thread_bind. Returns false, with an empty mask, if the system call fails or the system has
 * more than CPU_SETSIZE processors. */
bool slc_thread_allowed(cpu_set_t *allowed);

/* Binds the calling thread to one processor until slc_thread_unbind or the next slc_thread_bind.
 * Cost: a system call if the processor changes. If the processor does not exist or is not allowed,
 * the thread stays unchanged; this is not an error, but the thread may run more slowly. The first
 * failure in a process is logged (SLC_LOG_DETAIL). */
void slc_thread_bind(unsigned processor);

/* Restores the mask that the calling thread had before it was bound. */
void slc_thread_unbind(void);

/* Moves the calling thread, without binding it, to `processor`, on which it must be allowed to run.
 * Needs: the thread is not bound. On failure the thread stays on its processor. Cost: three system
 * calls. */
void slc_thread_move(unsigned processor);

/* Returns whether the calling thread is bound; if so, stores its processor in *processor. */
bool slc_thread_bound(unsigned *processor);

#endif
