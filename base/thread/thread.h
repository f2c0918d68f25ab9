/* Starts threads, such as the workers of teams, the reader of a stream and the threads that call
 * pread. */
#ifndef SLC_BASE_THREAD_H
#define SLC_BASE_THREAD_H

#include "base/error/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Starts `run(context)` in a thread that receives no signals, so that handlers run in the program's
 * own threads. `what` names the thread in messages. Ownership: the caller joins the thread. Errors:
 * SLC_ERR_SYSTEM if the system refuses the thread or fault point SLC_FAULT_THREAD fires. */
enum slc_status slc_thread_start(pthread_t *thread,
                                 void *(*run)(void *context),
                                 void *context,
                                 const char *what,
                                 struct slc_error *err) SLC_NODISCARD;

/* A new thread inherits the signal mask and processor binding of the calling thread. Before threads
 * are created, slc_thread_prepare blocks all signals except synchronous faults and removes the
 * binding; afterwards slc_thread_restore restores both. */
struct slc_thread_state {
    sigset_t signals;
    bool bound;
    unsigned processor;
};
void slc_thread_prepare(struct slc_thread_state *before);
void slc_thread_restore(const struct slc_thread_state *before);

/* Lets a thread that polls memory wait for about 50 ns, at a low cost for the other thread of its
 * core. */
static inline void slc_thread_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

#endif
