/* Chooses between OpenMP and the pool, distributes ranges over the workers of a team, and
 * determines the default number of workers. */
#include "base/thread/team_kinds.h"

#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/topology/affinity.h"
#include "base/topology/placement.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* True while the calling thread is a worker of a team; a team that it starts is nested. */
static _Thread_local bool in_team;

struct job {
    slc_team_fn *fn;
    void *context;
};

static void run_worker(void *context, unsigned worker, unsigned workers)
{
    const struct job *job = context;
    const bool nested = in_team;

    in_team = true;
    job->fn(job->context, worker, workers);
    in_team = nested;
}

#ifdef SLC_HAVE_OPENMP
static const bool have_openmp = true;
#else
static const bool have_openmp = false;
#endif

/* Stores whether the next team of the calling thread uses OpenMP. */
static enum slc_status choose_openmp(bool *openmp, struct slc_error *err)
{
    const char *wanted = getenv(SLC_TEAM_VARIABLE);

    *openmp = have_openmp && !slc_placement_entered();
    if (wanted == NULL || wanted[0] == '\0') {
        return SLC_OK;
    }
    *openmp = strcmp(wanted, "openmp") == 0;
    if (*openmp && !have_openmp) {
        return slc_fail(err, SLC_ERR_USAGE,
                        SLC_TEAM_VARIABLE " is 'openmp', but this build has no OpenMP");
    }
    if (!*openmp && strcmp(wanted, "pool") != 0) {
        return slc_fail(err, SLC_ERR_USAGE, SLC_TEAM_VARIABLE " is '%s', not openmp or pool",
                        wanted);
    }
    return SLC_OK;
}

enum slc_status
slc_team_run(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err)
{
    struct job job = {fn, context};
    bool openmp;

    if (workers <= 1) {
        return slc_team_run_pool(workers, fn, context, err);
    }
    if (workers > SLC_MAX_THREADS) {
        return slc_fail_field(err, SLC_ERR_SYSTEM, SLC_FIELD_THREADS,
                              "cannot start %u threads: use at most %d", workers,
                              (int)SLC_MAX_THREADS);
    }
    SLC_TRY(choose_openmp(&openmp, err));
#ifdef SLC_HAVE_OPENMP
    if (openmp && !in_team && slc_team_openmp_usable()) {
        return slc_team_run_openmp(workers, run_worker, &job, err);
    }
#endif
    return slc_team_run_pool(workers, run_worker, &job, err);
}

/* The part of a loop that the workers of one NUMA node process before any other part. */
struct share {
    _Alignas(64) _Atomic uint64_t next;
    uint64_t end;
};

struct range {
    slc_range_fn *fn;
    void *context;
    uint64_t grain;
    const struct slc_placement *placement; /* NULL if there is a single share */
    unsigned share_count;
    struct share shares[SLC_MAX_NODES];
};

/* Returns the number of workers, limited to the number of ranges of a loop. */
static unsigned useful_workers(unsigned workers, uint64_t count, uint64_t grain)
{
    return (unsigned)slc_min_u64(workers, slc_div_up_u64(count, grain));
}

/* The share of a node is proportional to the number of workers on the node. */
unsigned slc_team_shares(unsigned workers, uint64_t count, uint64_t grain, uint64_t *ends)
{
    const unsigned useful = useful_workers(workers, count, grain);
    const struct slc_placement *placement = slc_placement_of_team(useful);
    const uint64_t pieces = slc_div_up_u64(count, grain);
    const unsigned shares = placement != NULL ? placement->node_count : 1;

    for (unsigned n = 0; n + 1 < shares; n++) {
        const uint64_t done = slc_min_u64(placement->first_worker[n + 1], useful);

        /* Computed in two terms, because pieces * done may overflow: there may be more than 2^54
         * pieces. */
        ends[n] = (pieces / useful * done + pieces % useful * done / useful) * grain;
        ends[n] = slc_min_u64(ends[n], count);
    }
    ends[shares - 1] = count;
    return shares;
}

static unsigned node_of_worker(const struct range *range, unsigned worker)
{
    unsigned n = 0;

    while (range->placement != NULL && worker >= range->placement->first_worker[n + 1]) {
        n++;
    }
    return n;
}

static void run_share(struct range *range, struct share *share, unsigned worker)
{
    for (;;) {
        uint64_t begin = atomic_fetch_add(&share->next, range->grain);

        if (begin >= share->end) {
            return;
        }
        range->fn(range->context, begin, slc_min_u64(begin + range->grain, share->end), worker);
    }
}

static void range_worker(void *context, unsigned worker, unsigned workers)
{
    struct range *range = context;
    const unsigned home = node_of_worker(range, worker);

    (void)workers;
    for (unsigned i = 0; i < range->share_count; i++) {
        run_share(range, &range->shares[(home + i) % range->share_count], worker);
    }
}

enum slc_status slc_team_for(unsigned workers,
                             uint64_t count,
                             uint64_t grain,
                             slc_range_fn *fn,
                             void *context,
                             struct slc_error *err)
{
    struct range range; /* not initialized, because shares beyond share_count are not used */
    uint64_t ends[SLC_MAX_NODES];

    if (count == 0) {
        return SLC_OK;
    }
    range.fn = fn;
    range.context = context;
    range.grain = grain > 0 ? grain : 1;
    workers = useful_workers(workers, count, range.grain);
    range.placement = slc_placement_of_team(workers);
    range.share_count = slc_team_shares(workers, count, range.grain, ends);
    for (unsigned n = 0; n < range.share_count; n++) {
        atomic_init(&range.shares[n].next, n > 0 ? ends[n - 1] : 0);
        /* slc_team_shares set the first share_count elements of `ends`.
         * NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
        range.shares[n].end = ends[n];
    }
    return slc_team_run(workers, range_worker, &range, err);
}

unsigned slc_team_default_workers(void)
{
    cpu_set_t allowed;
    int count = 1;

    if (slc_thread_allowed(&allowed)) {
        count = CPU_COUNT(&allowed);
    }
    if (count < 1) {
        count = 1;
    }
    return count > SLC_MAX_THREADS ? SLC_MAX_THREADS : (unsigned)count;
}
