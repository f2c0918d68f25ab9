/* Monotonic time. */
#include "base/clock.h"

#include <time.h>

uint64_t slc_clock_ns(void)
{
    struct timespec now;

    /* Cannot fail for CLOCK_MONOTONIC and a valid pointer. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
