/*
 * A team of threads that run one function together. The threads are OpenMP's, or those of a pool
 * (team_pool.c), which is faster for the short jobs of a pass over a tensor. slc_team_run takes the
 * pool
 *   - between slc_placement_enter and slc_placement_leave, which is where passes run,
 *   - for a team within a team, and in a forked child,
 *   - where the library was built without OpenMP, as for ThreadSanitizer, which cannot see OpenMP's
 *     barriers.
 * SLUICE_TEAM=openmp or SLUICE_TEAM=pool in the environment replaces the first rule.
 *
 * Teams that a thread runs while it has a placement (base/topology/placement.h) are bound by it,
 * unless they are larger. The calling thread runs where it may again when the team has ended.
 */
#ifndef SLC_BASE_TEAM_H
#define SLC_BASE_TEAM_H

#include "base/error/error.h"

#include <stdint.h>

/* Environment variable with the kind of teams: "openmp" or "pool". */
#define SLC_TEAM_VARIABLE "SLUICE_TEAM"

typedef void slc_team_fn(void *context, unsigned worker, unsigned workers);

/*
 * Runs fn(context, w, workers) for w = 0 .. workers-1, at the same time, and returns when all have
 * returned. Worker 0 is the calling thread. Every worker really runs (no fewer than asked), so
 * workers may wait for one another.
 * Errors: SLC_ERR_SYSTEM when a thread cannot be created, SLC_ERR_USAGE for an unknown value of
 * SLUICE_TEAM; then fn has not run at all.
 */
enum slc_status
slc_team_run(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err) SLC_NODISCARD;

/*
 * Runs fn(context, begin, end, worker) over [0, count) cut into pieces of at most `grain`, handed
 * out dynamically. With equal `grain` the pieces are the same for any number of workers. In a team
 * on several NUMA nodes each node has a share of neighbouring pieces, always the same one, which
 * its workers take before they help others: what a piece's memory is to hold should be written by
 * the same kind of call.
 */
typedef void slc_range_fn(void *context, uint64_t begin, uint64_t end, unsigned worker);
enum slc_status slc_team_for(unsigned workers,
                             uint64_t count,
                             uint64_t grain,
                             slc_range_fn *fn,
                             void *context,
                             struct slc_error *err) SLC_NODISCARD;

/*
 * Where the nodes' shares of such a range end: ends[SLC_MAX_NODES] (base/topology/topology.h), in
 * order, the last one `count`. Returns how many there are. The calling thread's placement decides.
 */
unsigned slc_team_shares(unsigned workers, uint64_t count, uint64_t grain, uint64_t *ends);

/* Processors this process may run on (its affinity mask), at least 1. */
unsigned slc_team_default_workers(void);

#endif
