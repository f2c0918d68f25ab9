/*
 * Keeps unbound workers of a team on different processors.
 *
 * The system wakes a sleeping thread on its last processor or near the waking thread. On a busy
 * machine (Linux searches for an idle processor only up to some load, and two workers that poll for
 * jobs are a load) two workers of a team may share a processor while another is idle, and stay
 * there as long as the jobs are short, so that the whole run takes twice as long. Therefore each
 * worker records its processor when it starts a job. A worker that finds another worker on its
 * processor moves once to a processor without workers. The worker is not bound afterwards, so the
 * system may still move it away from another program.
 */
#ifndef SLC_BASE_SPREAD_H
#define SLC_BASE_SPREAD_H

#include "base/memory/limits.h"
#include "base/topology/topology.h"

#include <stdatomic.h>

/* Processors on which the workers of a team last started a job: processor + 1, or 0. */
struct slc_spread {
    atomic_uint of_worker[SLC_MAX_THREADS];
};

/*
 * Returns the processor for worker `worker` of `workers`, now on processor `here`: `here`, unless
 * another worker is there and a processor of `allowed` has no worker. Among processors without a
 * worker, processors on a core without workers come first, then processors on the same node. Needs:
 * worker < workers <= SLC_MAX_THREADS.
 */
unsigned slc_spread_choose(const struct slc_spread *spread,
                           unsigned worker,
                           unsigned workers,
                           unsigned here,
                           const struct slc_topology *allowed);

/*
 * Records the processor of the calling thread, worker `worker` of `workers`, at the start of its
 * job. Worker 0, the caller's thread, does not move; other workers move to the processor of
 * slc_spread_choose. Cost: 20 ns, and three system calls for a move.
 */
void slc_spread_place_worker(struct slc_spread *spread, unsigned worker, unsigned workers);

#endif
