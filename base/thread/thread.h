/* Starting threads: teams, the reader of a stream, the workers of pread. */
#ifndef SLC_BASE_THREAD_H
#define SLC_BASE_THREAD_H

#include "base/error/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/*
 * Starts `run(context)` in a thread that takes no signals, so that handlers run in the program's
 * own threads. `what` names it in the message. Owns: the caller joins it. Errors: SLC_ERR_SYSTEM
 * (also by the fault point SLC_FAULT_THREAD).
 */
enum slc_status slc_thread_start(pthread_t *thread,
                                 void *(*run)(void *context),
                                 void *context,
                                 const char *what,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Around the creation of threads, which inherit the signal mask and the binding to a processor of
 * the calling thread: blocks all signals but those of the thread's own faults and lifts the
 * binding, until slc_thread_restore.
 */
struct slc_thread_state {
    sigset_t signals;
    bool bound;
    unsigned processor;
};
void slc_thread_prepare(struct slc_thread_state *before);
void slc_thread_restore(const struct slc_thread_state *before);

#endif
