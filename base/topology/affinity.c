/* Binds threads by system calls. A bound thread keeps its former affinity mask in thread-local
 * storage; threads that it starts (base/thread/thread.h) get the former mask. */
#include "base/topology/affinity.h"

#include "base/error/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static _Thread_local struct {
    bool bound;
    unsigned processor;
    cpu_set_t own; /* mask before the thread was bound */
} self;

bool slc_thread_allowed(cpu_set_t *allowed)
{
    if (self.bound) {
        *allowed = self.own;
        return true;
    }
    CPU_ZERO(allowed);
    return sched_getaffinity(0, sizeof *allowed, allowed) == 0;
}

static void log_refusal(unsigned processor)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    const int reason = errno;

    if (!atomic_flag_test_and_set(&logged)) {
        slc_log(SLC_LOG_DETAIL, "cannot pin a thread to processor %u, so threads stay unpinned: %s",
                processor, strerror(reason));
    }
}

void slc_thread_bind(unsigned processor)
{
    cpu_set_t one;

    if (self.bound && self.processor == processor) {
        return;
    }
    if (!self.bound && !slc_thread_allowed(&self.own)) {
        log_refusal(processor);
        return;
    }
    CPU_ZERO(&one);
    /* if processor >= CPU_SETSIZE, the set stays empty and sched_setaffinity fails */
    CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) {
        log_refusal(processor);
        return;
    }
    self.bound = true;
    self.processor = processor;
}

void slc_thread_unbind(void)
{
    /* Restoring the mask fails if the processors of the mask no longer exist; the system has then
     * already chosen other processors. */
    if (self.bound) {
        (void)sched_setaffinity(0, sizeof self.own, &self.own);
        self.bound = false;
    }
}

void slc_thread_move(unsigned processor)
{
    cpu_set_t own, one;

    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (sched_getaffinity(0, sizeof own, &own) == 0 &&
        sched_setaffinity(0, sizeof one, &one) == 0) {
        (void)sched_setaffinity(0, sizeof own, &own);
    }
}

bool slc_thread_bound(unsigned *processor)
{
    *processor = self.processor;
    return self.bound;
}
