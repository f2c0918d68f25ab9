/* Requests to stop a long operation, by a flag or a deadline. */
#ifndef SLC_BASE_STOP_H
#define SLC_BASE_STOP_H

#include "base/error/clock.h"
#include "base/error/error.h"

#include <stdbool.h>
#include <stddef.h>

struct slc_stop {
    const volatile int
        /* flag that a signal handler or another thread sets to a value other than 0 to stop the
         * operation; may be NULL */
        *flag;
    /* time of slc_clock_ns at which the operation must stop; 0 means no deadline */
    uint64_t deadline_ns;
};

/* Returns whether the operation must stop now. `stop` may be NULL. Threads: any. */
static inline bool slc_stop_wanted(const struct slc_stop *stop)
{
    if (stop == NULL) {
        return false;
    }
    return (stop->flag != NULL && __atomic_load_n(stop->flag, __ATOMIC_RELAXED) != 0) ||
           (stop->deadline_ns != 0 && slc_clock_ns() >= stop->deadline_ns);
}

/* Returns SLC_ERR_INTERRUPTED if the operation must stop now, otherwise SLC_OK. Threads: any. */
static inline enum slc_status slc_stop_check(const struct slc_stop *stop, struct slc_error *err)
{
    return slc_stop_wanted(stop) ? slc_fail(err, SLC_ERR_INTERRUPTED, "stopped before its end")
                                 : SLC_OK;
}

#endif
