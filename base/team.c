/*
 * Teams of threads.
 *
 * OpenMP keeps its threads between regions, so a team costs a few microseconds; plain threads cost
 * about 20 microseconds each. Either way the team is complete before the function runs, because
 * workers may wait for one another: OpenMP may hand out fewer threads than asked (thread limits),
 * so the size is checked inside the region first.
 */
#include "base/team.h"

#include "base/checked.h"
#include "base/fault.h"
#include "base/limits.h"
#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#ifdef SLC_HAVE_OPENMP
#include <omp.h>
#endif

#ifdef SLC_HAVE_OPENMP

enum slc_status
slc_team_run(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err)
{
    bool complete = true;

    if (workers <= 1) {
        fn(context, 0, 1);
        return SLC_OK;
    }
    if (workers > SLC_MAX_THREADS || slc_fault_hit(SLC_FAULT_THREAD)) {
        return slc_fail(err, SLC_ERR_SYSTEM, "cannot start %u threads: use fewer (-t)", workers);
    }
    omp_set_dynamic(0);
#pragma omp parallel num_threads((int)workers) shared(complete)
    {
        if (omp_get_num_threads() != (int)workers) {
#pragma omp single
            complete = false;
        } else {
            fn(context, (unsigned)omp_get_thread_num(), workers);
        }
    }
    if (!complete) {
        return slc_fail(err, SLC_ERR_SYSTEM,
                        "OpenMP gave fewer than the %u threads asked for: use fewer (-t) or raise "
                        "OMP_THREAD_LIMIT",
                        workers);
    }
    return SLC_OK;
}

#else

struct team {
    slc_team_fn *fn;
    void *context;
    unsigned workers;
    pthread_mutex_t lock;
    pthread_cond_t decided;
    int go; /* 0: not decided, 1: run, -1: a thread could not be created, leave */
};

struct member {
    struct team *team;
    unsigned worker;
    pthread_t thread;
};

static void *member_main(void *argument)
{
    struct member *member = argument;
    struct team *team = member->team;
    int go;

    pthread_mutex_lock(&team->lock);
    while (team->go == 0) {
        pthread_cond_wait(&team->decided, &team->lock);
    }
    go = team->go;
    pthread_mutex_unlock(&team->lock);
    if (go > 0) {
        team->fn(team->context, member->worker, team->workers);
    }
    return NULL;
}

enum slc_status
slc_team_run(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err)
{
    struct team team = {fn, context, workers, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                        0};
    struct member *members;
    unsigned created = 1;

    if (workers <= 1) {
        fn(context, 0, 1);
        return SLC_OK;
    }
    if (workers > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_SYSTEM, "cannot start %u threads: use fewer (-t)", workers);
    }
    members = slc_calloc(workers, sizeof *members);
    if (!members) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a team of %u threads", workers);
    }
    for (; created < workers; created++) {
        members[created].team = &team;
        members[created].worker = created;
        if (slc_fault_hit(SLC_FAULT_THREAD) ||
            pthread_create(&members[created].thread, NULL, member_main, &members[created]) != 0) {
            break;
        }
    }
    pthread_mutex_lock(&team.lock);
    team.go = created == workers ? 1 : -1;
    pthread_cond_broadcast(&team.decided);
    pthread_mutex_unlock(&team.lock);
    if (created == workers) {
        fn(context, 0, workers);
    }
    for (unsigned i = 1; i < created; i++) {
        (void)pthread_join(members[i].thread, NULL);
    }
    slc_free(members);
    pthread_cond_destroy(&team.decided);
    pthread_mutex_destroy(&team.lock);
    if (created != workers) {
        return slc_fail(err, SLC_ERR_SYSTEM, "the system refused thread %u of %u: use fewer (-t)",
                        created + 1, workers);
    }
    return SLC_OK;
}

#endif

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
