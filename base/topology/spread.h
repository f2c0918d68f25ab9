/*
 * Workers that are not bound to processors keep out of each other's way.
 *
 * The system wakes a sleeping thread where it last ran, or beside the thread that wakes it. Where
 * it finds a machine busy (Linux looks for an idle processor only up to some load, and two workers
 * that look for jobs are a load) two workers of a team may end up on one processor with another
 * idle, and stay there for as long as their jobs are short: twice the time, for a whole run. So
 * each worker notes where it begins a job, and one that finds another there moves once to a
 * processor where none is. It is not bound: the system may move it on, away from another program.
 */
#ifndef SLC_BASE_SPREAD_H
#define SLC_BASE_SPREAD_H

#include "base/memory/limits.h"
#include "base/topology/topology.h"

#include <stdatomic.h>

/* Where the workers of a team last began a job: processor + 1, 0 for not yet. */
struct slc_spread {
    atomic_uint of_worker[SLC_MAX_THREADS];
};

/*
 * Where worker `worker` of `workers`, now on processor `here`, is to go: `here` unless another's
 * place is there and a processor of `allowed` is nobody's. Of those that are, one on a core without
 * a place before a hyperthread beside one, then one of the node where it is. Needs: worker <
 * workers
 * <= SLC_MAX_THREADS.
 */
unsigned slc_spread_choose(const struct slc_spread *spread,
                           unsigned worker,
                           unsigned workers,
                           unsigned here,
                           const struct slc_topology *allowed);

/*
 * Notes where the calling thread, worker `worker` of `workers`, begins its job. Worker 0, whose
 * thread is the caller's own, stays where it is; the others move where slc_spread_choose says.
 * Costs some 20 ns, and three system calls where it moves.
 */
void slc_spread_take(struct slc_spread *spread, unsigned worker, unsigned workers);

#endif
