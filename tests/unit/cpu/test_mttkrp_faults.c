/* MTTKRP jobs that fail: stopped, damaged, rejected, out of memory; and the memory that a job may
 * use. */
#include "base/error/fault.h"
#include "cpu/mttkrp/mttkrp.h"
#include "mttkrp_fixture.h"
#include "slc_test.h"

#include <pthread.h>
#include <sched.h>

struct waiter {
    struct slc_backend *backend;
    const struct fake_tensor *tensor;
    enum slc_status status;
};

static void *wait_for_turn(void *argument)
{
    struct waiter *waiter = argument;
    struct slc_error err = SLC_ERROR_INIT;
    struct fake_tile tile;

    fake_tile_create(&tile, waiter->tensor, SLC_F64);
    fake_tile_open(&tile, 1);
    waiter->status = waiter->backend->ops->mttkrp_tile(waiter->backend, 1, &tile.view, &err);
    fake_tile_destroy(&tile);
    return NULL;
}

/* Waits until a tile waits for the previous one. */
static void wait_for_waiter(struct slc_backend *backend)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;
    bool waits = false;

    while (!waits) {
        (void)sched_yield();
        (void)pthread_mutex_lock(&cpu->order_mutex);
        waits = cpu->waiters > 0;
        (void)pthread_mutex_unlock(&cpu->order_mutex);
    }
}

static void test_abort(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend = NULL;
    struct slc_mttkrp_job job;
    struct problem problem;
    struct waiter waiter;
    pthread_t thread;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 100;
    problem_job(&problem, 2, &job);
    job.deterministic = true;
    SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, &job, &err), &err);
    waiter = (struct waiter){backend, &problem.tensor, SLC_OK};
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_turn, &waiter), 0);
    wait_for_waiter(backend); /* tile 0 never arrives */
    backend->ops->mttkrp_abort(backend);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(waiter.status, SLC_ERR_INTERRUPTED);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_end(backend, &err), SLC_ERR_INTERRUPTED, &err, "stopped");

    slc_error_clear(&err); /* the backend can be used again */
    SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* A damaged tile ends the pass with its own message, for every strategy, without a hang. */
static void test_damaged_tile(void)
{
    static const uint64_t dims[] = {5000, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend = NULL;
    struct slc_mttkrp_job job;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 3000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 300;
    problem.tensor.chunk_nnz = 128;
    for (int conflict = SLC_CONFLICT_PRIVATE; conflict <= SLC_CONFLICT_COLUMNS; conflict++) {
        problem_job(&problem, 3, &job);
        job.conflict = (enum slc_conflict)conflict;
        problem.tensor.fail_tile = 4;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(run_pass(backend, &problem, &job, &err), SLC_ERR_DAMAGED, &err, "damaged");
        problem.tensor.fail_tile = UINT64_MAX;
        slc_error_clear(&err);
        SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
    }
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

static void test_refusals(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend = NULL;
    struct slc_mttkrp_job job;
    struct problem problem;
    struct fake_tile tile;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 100, 0, 8, SLC_F64, true);

#define REFUSED(change, part)                                                                      \
    problem_job(&problem, 2, &job);                                                                \
    change;                                                                                        \
    slc_error_clear(&err);                                                                         \
    SLC_ASSERT_FAILS(backend->ops->mttkrp_begin(backend, &job, &err), SLC_ERR_USAGE, &err, part)

    REFUSED(job.order = 0, "mode");
    REFUSED(job.order = 17, "mode");
    REFUSED(job.mode = 3, "mode 4");
    REFUSED(job.rank = 0, "rank");
    REFUSED(job.rank = SLC_MAX_RANK + 1, "rank");
    REFUSED(job.rank = 9, "mode 1");
    REFUSED(job.workers = 0, "threads");
    REFUSED(job.workers = SLC_MAX_THREADS + 1, "threads");
    REFUSED(job.output = NULL, "output");
    REFUSED(job.factors[2] = NULL, "mode 3");
    REFUSED(job.conflict = SLC_CONFLICT_DIRECT, "direct");
    REFUSED((job.conflict = SLC_CONFLICT_COLUMNS, job.deterministic = true), "columns");
    REFUSED((job.conflict = SLC_CONFLICT_COLUMNS, job.rival = SLC_CONFLICT_LOCKED), "timed");
#undef REFUSED

    problem_job(&problem, 2, &job);
    SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, &job, &err), &err);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    fake_tile_open(&tile, 0);
    tile.view.corner[2] = 30 - tile.view.extent[2];
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_tile(backend, 0, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "mode 3");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_tile(backend, 2, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "worker 2");
    fake_tile_destroy(&tile);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* The k-th allocation fails, for every k. */
static void test_faults(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct problem problem;
    struct slc_mttkrp_job job;
    bool hit = true;

    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 100;
    problem_job(&problem, 2, &job);
    job.conflict = SLC_CONFLICT_LOCKED;
    for (uint64_t k = 1; hit && k < 20; k++) {
        struct slc_backend *backend;

        hit = run_pass_without_memory(k, &problem, &job, &backend);
        if (backend != NULL) {
            backend->ops->destroy(backend);
        }
    }
    CU_ASSERT_FALSE(hit);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
    problem_destroy(&problem);
}

/* Begin allocates at most scratch_bytes, and nothing the second time. */
static void test_scratch(void)
{
    static const uint64_t dims[] = {40000, 20, 30};
    static const enum slc_conflict conflicts[][2] = {{SLC_CONFLICT_PRIVATE, SLC_CONFLICT_AUTO},
                                                     {SLC_CONFLICT_LOCKED, SLC_CONFLICT_AUTO},
                                                     {SLC_CONFLICT_LOCKED, SLC_CONFLICT_PRIVATE},
                                                     {SLC_CONFLICT_ORDERED, SLC_CONFLICT_AUTO}};
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;

    problem_create(&problem, 3, dims, 100000, 0, 8, SLC_F32, true);
    for (size_t c = 0; c < SLC_COUNT(conflicts); c++) {
        struct slc_backend *backend = NULL;
        struct slc_mttkrp_job job;
        uint64_t bytes;

        SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
        problem_job(&problem, 2, &job);
        job.conflict = conflicts[c][0];
        job.rival = conflicts[c][1];
        bytes = backend->ops->mttkrp_scratch_bytes(&job, dims[0]);
        CU_ASSERT(bytes > 0 && bytes <= (UINT64_C(16) << 20));
        job.output = NULL; /* without an output, as in a plan that does not know its type */
        CU_ASSERT(backend->ops->mttkrp_scratch_bytes(&job, dims[0]) >= bytes);
        problem_job(&problem, 2, &job);
        job.conflict = conflicts[c][0];
        job.rival = conflicts[c][1];
        SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
        SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, &job, &err), &err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        SLC_ASSERT_OK(backend->ops->mttkrp_end(backend, &err), &err);
        backend->ops->destroy(backend);
    }
    problem_destroy(&problem);
}

static const struct slc_test tests[] = {
    {"abort wakes a waiting worker", test_abort},
    {"a damaged tile ends the pass", test_damaged_tile},
    {"jobs and tiles that do not fit are refused", test_refusals},
    {"every allocation may fail", test_faults},
    {"scratch is as planned and kept", test_scratch},
};

SLC_SUITE(mttkrp_faults)
{
    return slc_test_main("mttkrp faults", tests, SLC_COUNT(tests), argc, argv);
}
