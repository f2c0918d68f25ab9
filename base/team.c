/*
 * Ranges shared out over a team, and how large a team is by default. The team itself is
 * team_pool.c, or team_openmp.c where built with -Dopenmp=enabled.
 */
#include "base/team.h"

#include "base/checked.h"
#include "base/limits.h"

#include <sched.h>
#include <stdatomic.h>

struct range {
    slc_range_fn *fn;
    void *context;
    uint64_t count;
    uint64_t grain;
    _Atomic uint64_t next;
};

static void range_worker(void *context, unsigned worker, unsigned workers)
{
    struct range *range = context;

    (void)workers;
    for (;;) {
        uint64_t begin = atomic_fetch_add(&range->next, range->grain);

        if (begin >= range->count) {
            return;
        }
        range->fn(range->context, begin, slc_min_u64(begin + range->grain, range->count), worker);
    }
}

enum slc_status slc_team_for(unsigned workers,
                             uint64_t count,
                             uint64_t grain,
                             slc_range_fn *fn,
                             void *context,
                             struct slc_error *err)
{
    struct range range = {fn, context, count, grain > 0 ? grain : 1, 0};
    uint64_t pieces = slc_div_up_u64(count, range.grain);

    if (count == 0) {
        return SLC_OK;
    }
    if (workers > pieces) {
        workers = (unsigned)pieces;
    }
    return slc_team_run(workers, range_worker, &range, err);
}

unsigned slc_team_default_workers(void)
{
    cpu_set_t allowed;
    int count = 1;

    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        count = CPU_COUNT(&allowed);
    }
    if (count < 1) {
        count = 1;
    }
    return count > SLC_MAX_THREADS ? SLC_MAX_THREADS : (unsigned)count;
}
