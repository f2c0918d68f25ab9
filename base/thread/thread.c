/* Starts threads. A new thread has all signals except synchronous faults blocked, and the affinity
 * mask that the starting thread had before it was bound to a processor. */
#include "base/thread/thread.h"

#include "base/error/fault.h"
#include "base/topology/affinity.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

void slc_thread_prepare(struct slc_thread_state *before)
{
    sigset_t all;

    sigfillset(&all);
    /* A blocked synchronous fault would end the process without calling its handler. */
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before->signals);
    /* Remove the binding, because otherwise the new thread would compete with this thread for one
     * processor. */
    before->bound = slc_thread_bound(&before->processor);
    slc_thread_unbind();
}

void slc_thread_restore(const struct slc_thread_state *before)
{
    if (before->bound) {
        slc_thread_bind(before->processor);
    }
    pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}

enum slc_status slc_thread_start(pthread_t *thread,
                                 void *(*run)(void *context),
                                 void *context,
                                 const char *what,
                                 struct slc_error *err)
{
    int rc = EAGAIN;

    if (!slc_fault_hit(SLC_FAULT_THREAD)) {
        struct slc_thread_state before;

        slc_thread_prepare(&before);
        rc = pthread_create(thread, NULL, run, context);
        slc_thread_restore(&before);
    }
    if (rc != 0) {
        return slc_fail(err, SLC_ERR_SYSTEM,
                        "cannot start %s: %s; raise the limit on processes (ulimit -u)", what,
                        strerror(rc));
    }
    return SLC_OK;
}
