/*
 * Teams by OpenMP, for programs that have OpenMP threads already and want no others
 * (-Dopenmp=enabled).
 *
 * OpenMP's threads spin for a while after each region, in competition with the thread that reads,
 * so team_pool.c is the default: see there.
 */
#include "base/error/fault.h"
#include "base/memory/limits.h"
#include "base/thread/team.h"
#include "base/topology/affinity.h"
#include "base/topology/placement.h"

#include <omp.h>
#include <stdbool.h>

/* The threads are the program's as well: none stays bound. */
static void run_worker(const struct slc_placement *placement,
                       unsigned worker,
                       unsigned workers,
                       slc_team_fn *fn,
                       void *context)
{
    if (placement != NULL) {
        slc_thread_bind(placement->processor[worker]);
    }
    fn(context, worker, workers);
    if (placement != NULL) {
        slc_thread_unbind();
    }
}

enum slc_status
slc_team_run(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err)
{
    const struct slc_placement *placement = slc_placement_of_team(workers);
    bool complete = true;

    if (workers <= 1) {
        run_worker(placement, 0, 1, fn, context);
        return SLC_OK;
    }
    if (workers > SLC_MAX_THREADS || slc_fault_hit(SLC_FAULT_THREAD)) {
        return slc_fail_field(err, SLC_ERR_SYSTEM, SLC_FIELD_THREADS,
                              "cannot start %u threads: use fewer", workers);
    }
    omp_set_dynamic(0);
    /* Fewer threads than asked may come (thread limits): the size is checked before anybody starts.
     */
#pragma omp parallel num_threads((int)workers) shared(complete, placement)
    {
        if (omp_get_num_threads() != (int)workers) {
#pragma omp single
            complete = false;
        } else {
            run_worker(placement, (unsigned)omp_get_thread_num(), workers, fn, context);
        }
    }
    if (!complete) {
        return slc_fail_field(
            err, SLC_ERR_SYSTEM, SLC_FIELD_THREADS,
            "OpenMP gave fewer than the %u threads asked for: raise OMP_THREAD_LIMIT or use fewer",
            workers);
    }
    return SLC_OK;
}
