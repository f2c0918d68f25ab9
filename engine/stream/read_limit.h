/* Limits the rate of reading, to simulate a slower drive. The simulated drive serves reads one
 * after the other: a read completes when all earlier reads have completed and its bytes have been
 * transferred. Idle time of the drive does not make later reads faster. */
#ifndef SLC_ENGINE_READ_LIMIT_H
#define SLC_ENGINE_READ_LIMIT_H

#include "base/memory/checked.h"

#include <stdint.h>

struct slc_read_limit {
    uint64_t bytes_per_second; /* 0: no limit */
    uint64_t free_ns;          /* time at which the simulated drive has completed all reads */
};

/* Records a read of `bytes` bytes that was requested at `now_ns` (slc_clock_ns). Returns the time
 * at which the read completes, or `now_ns` if there is no limit. The time saturates instead of
 * overflowing. */
static inline uint64_t
slc_read_limit_due(struct slc_read_limit *limit, uint64_t now_ns, uint64_t bytes)
{
    double seconds;

    if (limit->bytes_per_second == 0) {
        return now_ns;
    }
    seconds = (double)bytes / (double)limit->bytes_per_second;
    limit->free_ns = slc_max_u64(limit->free_ns, now_ns);
    limit->free_ns += seconds < 1e9 ? (uint64_t)(seconds * 1e9) : UINT64_C(1000000000000000000);
    return limit->free_ns;
}

#endif
