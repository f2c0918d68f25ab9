/* Keeps unbound workers of a team on different processors.
 *
 * The system wakes a sleeping thread on its last processor or near the waking thread. Linux
 * searches for an idle processor only if the load is low, and workers that poll for jobs raise the
 * load. On a busy machine two workers of a team may therefore share a processor while another
 * processor is idle. They stay there as long as the jobs are short, so that the whole run lasts
 * twice as long. To prevent this, each worker records its processor when it starts a job. A worker
 * that finds another worker on its processor moves once to a processor without workers. The worker
 * is not bound afterwards, so the system may still move it away from another program. */
#ifndef SLC_BASE_SPREAD_H
#define SLC_BASE_SPREAD_H

#include "base/memory/limits.h"
#include "base/topology/topology.h"

#include <stdatomic.h>

/* Per worker of a team, the number of the processor on which it last started a job, plus 1; 0 if it
 * has not started a job. */
struct slc_spread {
    atomic_uint of_worker[SLC_MAX_THREADS];
};

/* Chooses the processor for worker `worker` of `workers`, which now runs on processor `here`.
 * Returns `here` unless another worker is on `here` and some processor of `allowed` has no worker.
 * Among processors without a worker, it prefers a processor on a core without workers, then a
 * processor on the same node. Needs: worker < workers <= SLC_MAX_THREADS. */
unsigned slc_spread_choose(const struct slc_spread *spread,
                           unsigned worker,
                           unsigned workers,
                           unsigned here,
                           const struct slc_topology *allowed);

/* Records the processor of the calling thread, worker `worker` of `workers`, at the start of its
 * job. Worker 0, the caller's thread, does not move; other workers move to the processor of
 * slc_spread_choose. Cost: 20 ns, and three system calls for a move. */
void slc_spread_place_worker(struct slc_spread *spread, unsigned worker, unsigned workers);

#endif
