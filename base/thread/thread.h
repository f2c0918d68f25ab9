/* Starting threads: teams, the reader of a stream, the workers of pread. */
#ifndef SLC_BASE_THREAD_H
#define SLC_BASE_THREAD_H

#include "base/error/error.h"

#include <pthread.h>

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

#endif
