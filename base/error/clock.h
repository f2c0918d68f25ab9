/* Monotonic time. */
#ifndef SLC_BASE_CLOCK_H
#define SLC_BASE_CLOCK_H

#include <stdint.h>

/*
 * Nanoseconds of CLOCK_MONOTONIC: unaffected by changes of the wall clock. Never goes back, even
 * where that clock does. May be called by signal handlers.
 */
uint64_t slc_clock_ns(void);

static inline double slc_seconds_since(uint64_t start_ns)
{
    const uint64_t now_ns = slc_clock_ns();

    return now_ns > start_ns ? (double)(now_ns - start_ns) * 1e-9 : 0;
}

/* Of the processor, that this thread has taken; for short trials, in which others come between. */
uint64_t slc_clock_thread_ns(void);

#endif
