/* Monotonic time. */
#ifndef SLC_BASE_CLOCK_H
#define SLC_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC: never goes back, unaffected by changes of the wall clock. */
uint64_t slc_clock_ns(void);

static inline double slc_seconds_since(uint64_t start_ns)
{
    return (double)(slc_clock_ns() - start_ns) * 1e-9;
}

#endif
