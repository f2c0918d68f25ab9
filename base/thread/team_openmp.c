/* Runs teams of OpenMP threads.
 *
 * The OpenMP runtime ends the process if it cannot create a thread, and its threads inherit the
 * signal mask of the thread that creates them. Therefore, before a team grows, sluice starts test
 * threads to check that enough threads can be created, and then creates OpenMP's threads in an
 * empty region with all signals blocked. */
#include "base/error/fault.h"
#include "base/thread/team_kinds.h"
#include "base/thread/thread.h"
#include "base/topology/affinity.h"
#include "base/topology/placement.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* True in a forked child, in which OpenMP cannot start threads if the parent had OpenMP threads. */
static atomic_bool forked;
static pthread_once_t fork_handler = PTHREAD_ONCE_INIT;

/* Number of threads that OpenMP keeps for the calling thread, including the calling thread. */
static _Thread_local unsigned kept = 1;

static void note_fork(void)
{
    atomic_store(&forked, true);
}

static void handle_forks(void)
{
    (void)pthread_atfork(NULL, NULL, note_fork);
}

bool slc_team_openmp_usable(void)
{
    return !atomic_load(&forked) && !omp_in_parallel();
}

static void do_nothing(void *context, unsigned worker, unsigned workers)
{
    (void)context;
    (void)worker;
    (void)workers;
}

/* Creates OpenMP's threads for a team that is larger than all earlier teams. */
static enum slc_status create_threads(unsigned workers, struct slc_error *err)
{
    struct slc_thread_state before;
    int got = 0;

    SLC_TRY(slc_team_run_apart(workers - kept + 1, do_nothing, NULL, err));
    slc_thread_prepare(&before);
#pragma omp parallel num_threads((int)workers) shared(got)
    {
#pragma omp single
        got = omp_get_num_threads();
    }
    slc_thread_restore(&before);
    if (got < (int)workers) {
        return slc_fail_field(
            err, SLC_ERR_SYSTEM, SLC_FIELD_THREADS,
            "OpenMP started %d of %u threads: raise OMP_THREAD_LIMIT or use fewer", got, workers);
    }
    return SLC_OK;
}

/* Binds the worker while `fn` runs. No thread may stay bound, because the program uses the same
 * threads. */
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
slc_team_run_openmp(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err)
{
    const struct slc_placement *placement = slc_placement_of_team(workers);
    const int dynamic = omp_get_dynamic();
    enum slc_status status = SLC_OK;

    (void)pthread_once(&fork_handler, handle_forks);
    if (slc_fault_hit(SLC_FAULT_THREAD)) {
        return slc_fail_field(err, SLC_ERR_SYSTEM, SLC_FIELD_THREADS,
                              "cannot start %u threads: use fewer", workers);
    }
    /* Dynamic teams are off until the program's setting is restored below. */
    omp_set_dynamic(0);
    if (workers > kept) {
        status = create_threads(workers, err);
    }
    if (status == SLC_OK) {
        kept = workers;
#pragma omp parallel num_threads((int)workers)
        run_worker(placement, (unsigned)omp_get_thread_num(), workers, fn, context);
    }
    omp_set_dynamic(dynamic);
    return status;
}
