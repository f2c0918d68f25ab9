/*
 * Starting threads behind the thread fault point, with all signals from outside blocked, and with
 * the affinity mask that the starting thread has when it is not bound to a processor.
 */
#include "base/thread/thread.h"

#include "base/error/fault.h"
#include "base/topology/affinity.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum slc_status slc_thread_start(pthread_t *thread,
                                 void *(*run)(void *context),
                                 void *context,
                                 const char *what,
                                 struct slc_error *err)
{
    sigset_t all;
    sigset_t before;
    unsigned processor;
    const bool bound = slc_thread_bound(&processor);
    int rc = EAGAIN;

    if (!slc_fault_hit(SLC_FAULT_THREAD)) {
        /* The mask is inherited at creation: there is no moment in which a signal could slip in. */
        sigfillset(&all);
        /* A blocked fault of the thread's own would end the process past every handler. */
        sigdelset(&all, SIGBUS);
        sigdelset(&all, SIGSEGV);
        sigdelset(&all, SIGFPE);
        sigdelset(&all, SIGILL);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        /* Inherited like the mask of signals: two threads on one processor would wait in turns. */
        slc_thread_unbind();
        rc = pthread_create(thread, NULL, run, context);
        if (bound) {
            slc_thread_bind(processor);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (rc != 0) {
        return slc_fail(err, SLC_ERR_SYSTEM,
                        "starting %s: %s; raise the limit on processes (ulimit -u)", what,
                        strerror(rc));
    }
    return SLC_OK;
}
