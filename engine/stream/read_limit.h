/*
 * A limit on the rate of reading: how an operation would do with a drive that is no faster. Such a
 * drive serves one read after the other, so a read that is asked for while others are under way is
 * done when they are and its own bytes have passed; a drive that was idle gains nothing by it.
 */
#ifndef SLC_ENGINE_READ_LIMIT_H
#define SLC_ENGINE_READ_LIMIT_H

#include "base/memory/checked.h"

#include <stdint.h>

struct slc_read_limit {
    uint64_t bytes_per_second; /* 0: no limit */
    uint64_t free_ns;          /* when the drive is done with all it was asked for */
};

/*
 * Notes a read of `bytes`, asked for at `now_ns` (slc_clock_ns), and says when it would be done;
 * `now_ns` where there is no limit. A read that would take centuries takes some.
 */
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
