/* Monotonic time. */
#ifndef SLC_BASE_CLOCK_H
#define SLC_BASE_CLOCK_H

#include <stdint.h>

/* Returns nanoseconds of CLOCK_MONOTONIC, which changes of the wall clock do not affect. The result
 * never decreases, even if CLOCK_MONOTONIC does. Signal handlers may call it. */
uint64_t slc_clock_ns(void);

static inline double slc_seconds_since(uint64_t start_ns)
{
    const uint64_t now_ns = slc_clock_ns();

    return now_ns > start_ns ? (double)(now_ns - start_ns) * 1e-9 : 0;
}

/* Returns the processor time of this thread in nanoseconds. Short timing trials use it, because the
 * scheduler may interrupt them to run other threads. */
uint64_t slc_clock_thread_ns(void);

#endif
