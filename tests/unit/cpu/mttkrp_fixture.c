/* A pass over the tiles of a problem. */
#include "mttkrp_fixture.h"

#include "base/error/fault.h"
#include "base/thread/team.h"
#include "slc_test.h"

#include <pthread.h>
#include <stdatomic.h>

/* A pass as the engine makes it: workers process tiles in ascending order. */
struct pass {
    struct slc_backend *backend;
    const struct fake_tensor *tensor;
    enum slc_value_type type;
    bool every_worker; /* every worker processes every tile */
    bool by_partition, backwards;
    uint64_t first, end; /* range of tiles or partitions of the pass */
    atomic_uint_fast64_t next;
    atomic_bool failed;
    struct slc_error fault;
    pthread_mutex_t lock;
};

/* Passes a tile to the backend; on failure returns false and keeps the first error. */
static bool pass_tile(struct pass *pass, unsigned worker, struct fake_tile *tile, uint64_t ordinal)
{
    struct slc_error err = SLC_ERROR_INIT;

    fake_tile_open(tile, ordinal);
    if (pass->backend->ops->mttkrp_tile(pass->backend, worker, &tile->view, &err) == SLC_OK) {
        return true;
    }
    pthread_mutex_lock(&pass->lock);
    if (pass->fault.status == SLC_OK) {
        pass->fault = err;
    }
    pthread_mutex_unlock(&pass->lock);
    atomic_store(&pass->failed, true);
    pass->backend->ops->mttkrp_abort(pass->backend);
    return false;
}

static void pass_tiles(struct pass *pass, unsigned worker, struct fake_tile *tile)
{
    uint64_t own = pass->first;

    while (!atomic_load(&pass->failed)) {
        const uint64_t ordinal = pass->every_worker ? own++ : atomic_fetch_add(&pass->next, 1);

        if (ordinal >= pass->end) {
            return;
        }
        (void)pass_tile(pass, worker, tile, ordinal);
    }
}

/* Processes whole partitions. */
static void pass_partitions(struct pass *pass, unsigned worker, struct fake_tile *tile)
{
    const struct fake_tensor *tensor = pass->tensor;
    uint64_t taken;

    while ((taken = atomic_fetch_add(&pass->next, 1)) < pass->end) {
        const uint64_t partition = pass->backwards ? tensor->partitions - 1 - taken : taken;

        for (uint64_t t = 0; t < tensor->tiles && !atomic_load(&pass->failed); t++) {
            if (tensor->cuts[t].partition == partition) {
                (void)pass_tile(pass, worker, tile, t);
            }
        }
    }
}

static void pass_worker(void *context, unsigned worker, unsigned workers)
{
    struct pass *pass = context;
    struct fake_tile tile;

    (void)workers;
    fake_tile_create(&tile, pass->tensor, pass->type);
    if (pass->by_partition) {
        pass_partitions(pass, worker, &tile);
    } else {
        pass_tiles(pass, worker, &tile);
    }
    fake_tile_destroy(&tile);
}

enum slc_status run_part(struct slc_backend *backend,
                         struct problem *problem,
                         const struct slc_mttkrp_job *job,
                         uint64_t first,
                         uint64_t end,
                         struct slc_error *err)
{
    struct pass pass = {.backend = backend,
                        .tensor = &problem->tensor,
                        .type = problem->type,
                        .every_worker = job->conflict == SLC_CONFLICT_COLUMNS,
                        .by_partition = job->partitions > 0,
                        .backwards = problem->backwards,
                        .first = first,
                        .end = end,
                        .next = first,
                        .fault = SLC_ERROR_INIT,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    enum slc_status status = slc_team_run(job->workers, pass_worker, &pass, err);

    if (status == SLC_OK && atomic_load(&pass.failed)) {
        *err = pass.fault;
        status = err->status;
    }
    return status;
}

enum slc_status run_pass(struct slc_backend *backend,
                         struct problem *problem,
                         const struct slc_mttkrp_job *job,
                         struct slc_error *err)
{
    const uint64_t count =
        job->partitions > 0 ? problem->tensor.partitions : fake_tensor_tiles(&problem->tensor);
    enum slc_status status = backend->ops->mttkrp_begin(backend, job, err);
    enum slc_status ended;

    if (status != SLC_OK) {
        return status;
    }
    status = run_part(backend, problem, job, 0, count, err);
    ended = backend->ops->mttkrp_end(backend, status == SLC_OK ? err : NULL);
    return status == SLC_OK ? ended : status;
}

bool run_pass_without_memory(uint64_t k,
                             struct problem *problem,
                             const struct slc_mttkrp_job *job,
                             struct slc_backend **backend)
{
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status;
    bool hit;

    *backend = NULL;
    slc_fault_arm(SLC_FAULT_ALLOCATION, k);
    status = slc_cpu_backend_create(backend, &err);
    if (status == SLC_OK) {
        status = run_pass(*backend, problem, job, &err);
    } else {
        CU_ASSERT_PTR_NULL(*backend);
    }
    hit = slc_fault_seen(SLC_FAULT_ALLOCATION) >= k;
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT_EQUAL(status, hit ? SLC_ERR_MEMORY : SLC_OK);
    return hit;
}
