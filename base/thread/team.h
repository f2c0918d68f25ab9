/* Teams of threads that run one function together. The threads belong to OpenMP or to a pool
 * (team_pool.c). The pool is faster for the short jobs of a pass over a tensor. slc_team_run uses
 * the pool
 * - between slc_placement_enter and slc_placement_leave, that is, during passes,
 * - for a team within a team, and in a forked child,
 * - if the library was built without OpenMP, as for ThreadSanitizer, which does not support
 *   OpenMP's barriers.
 * SLUICE_TEAM=openmp or SLUICE_TEAM=pool in the environment overrides the first of these rules.
 *
 * If the calling thread has a placement (base/topology/placement.h), the workers of a team are
 * bound according to it, unless the team is larger than the placement. When the team has ended, the
 * calling thread is no longer bound. */
#ifndef SLC_BASE_TEAM_H
#define SLC_BASE_TEAM_H

#include "base/error/error.h"

#include <stdint.h>

/* Environment variable that selects the threads of teams, "openmp" or "pool". */
#define SLC_TEAM_VARIABLE "SLUICE_TEAM"

typedef void slc_team_fn(void *context, unsigned worker, unsigned workers);

/* Runs fn(context, w, workers) for w = 0 to workers - 1 concurrently, and returns when all these
 * calls have returned. Worker 0 is the calling thread. All workers run at the same time, so they
 * may wait for each other. Errors: SLC_ERR_SYSTEM if a thread cannot be created, SLC_ERR_USAGE for
 * an invalid value of SLUICE_TEAM, SLC_ERR_MEMORY; after an error fn has not run. */
enum slc_status
slc_team_run(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err) SLC_NODISCARD;

/* Divides [0, count) into ranges of at most `grain` and runs fn(context, begin, end, worker) for
 * each range. Workers take ranges dynamically, but the ranges depend only on `grain`, not on the
 * number of workers. In a team on several NUMA nodes, each node has a fixed share of adjacent
 * ranges, which the workers of the node process before they help other nodes. If a loop with the
 * same `count` and `grain` writes memory first, later loops therefore find the memory on their own
 * node. Errors: those of slc_team_run. */
typedef void slc_range_fn(void *context, uint64_t begin, uint64_t end, unsigned worker);
enum slc_status slc_team_for(unsigned workers,
                             uint64_t count,
                             uint64_t grain,
                             slc_range_fn *fn,
                             void *context,
                             struct slc_error *err) SLC_NODISCARD;

/* Computes the shares that slc_team_for assigns to NUMA nodes. Stores the end of each share, in
 * ascending order, in ends[SLC_MAX_NODES] (base/topology/topology.h); the last end is `count`.
 * Returns the number of shares, which depends on the placement of the calling thread. */
unsigned slc_team_shares(unsigned workers, uint64_t count, uint64_t grain, uint64_t *ends);

/* Returns the number of processors in the affinity mask of the process, at least 1. */
unsigned slc_team_default_workers(void);

#endif
