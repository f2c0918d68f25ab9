/*
 * Teams of threads that run one function together. The threads are OpenMP's, or those of a pool
 * (team_pool.c), which is faster for the short jobs of a pass over a tensor. slc_team_run uses the
 * pool
 * - between slc_placement_enter and slc_placement_leave, in which passes run,
 * - for a team within a team, and in a forked child,
 * - if the library was built without OpenMP, as for ThreadSanitizer, which does not support
 *   OpenMP's barriers.
 * SLUICE_TEAM=openmp or SLUICE_TEAM=pool in the environment overrides the first rule.
 *
 * If the calling thread has a placement (base/topology/placement.h), the workers of a team are
 * bound according to it, unless the team is larger than the placement. When the team has ended, the
 * calling thread is no longer bound.
 */
#ifndef SLC_BASE_TEAM_H
#define SLC_BASE_TEAM_H

#include "base/error/error.h"

#include <stdint.h>

/* Environment variable with the kind of teams: "openmp" or "pool". */
#define SLC_TEAM_VARIABLE "SLUICE_TEAM"

typedef void slc_team_fn(void *context, unsigned worker, unsigned workers);

/*
 * Runs fn(context, w, workers) for w = 0 to workers - 1 concurrently, and returns when all have
 * returned. Worker 0 is the calling thread. All workers run at the same time, so they may wait for
 * each other. Errors: SLC_ERR_SYSTEM if a thread cannot be created, SLC_ERR_USAGE for an unknown
 * value of SLUICE_TEAM; in both cases fn has not run.
 */
enum slc_status
slc_team_run(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err) SLC_NODISCARD;

/*
 * Runs fn(context, begin, end, worker) over [0, count) in pieces of at most `grain`, which are
 * assigned dynamically. Pieces depend only on `grain`, not on the number of workers. In a team on
 * several NUMA nodes, each node has a fixed share of adjacent pieces, which the workers of the node
 * process before they help other nodes. Therefore write memory for the first time with the same
 * kind of call that later uses the memory. Errors: as slc_team_run.
 */
typedef void slc_range_fn(void *context, uint64_t begin, uint64_t end, unsigned worker);
enum slc_status slc_team_for(unsigned workers,
                             uint64_t count,
                             uint64_t grain,
                             slc_range_fn *fn,
                             void *context,
                             struct slc_error *err) SLC_NODISCARD;

/*
 * Stores the ends of the shares of the nodes, for a range as in slc_team_for, in order, in
 * ends[SLC_MAX_NODES] (base/topology/topology.h); the last end is `count`. Returns the number of
 * shares. The placement of the calling thread determines them.
 */
unsigned slc_team_shares(unsigned workers, uint64_t count, uint64_t grain, uint64_t *ends);

/* Returns the number of processors in the affinity mask of the process, at least 1. */
unsigned slc_team_default_workers(void);

#endif
