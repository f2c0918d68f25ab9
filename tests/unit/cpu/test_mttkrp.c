/*
 * MTTKRP kernels and strategies against the oracle.
 *
 * Identities: with small integers every sum is exact, so every strategy, number of workers, element
 * type and instruction set must give the oracle's bits. With reals the error is bounded relative to
 * the same sum of magnitudes. ORDERED gives the same bits for any number of workers, any chunk size
 * and any instruction set.
 */
#include "base/clock.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/team.h"
#include "cpu/cpu.h"
#include "cpu/reference.h"
#include "fake_tiles.h"
#include "slc_test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MARGIN_ROWS = 2 };

static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

/* An output between rows of canaries. */
struct guarded {
    struct slc_matrix whole;
    struct slc_matrix output;
};

struct problem {
    struct fake_tensor tensor;
    unsigned mode;
    uint32_t rank;
    enum slc_value_type type;
    struct slc_matrix factors[SLC_MAX_ORDER];
    struct guarded out;
    double *want;
    double *magnitude;
};

static void
guarded_create(struct guarded *guarded, enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    struct slc_error err = SLC_ERROR_INIT;
    const uint64_t value_bytes = slc_value_bytes(type);

    SLC_ASSERT_OK(slc_matrix_create(&guarded->whole, type, rows + 2UL * MARGIN_ROWS, cols, &err),
                  &err);
    memset(guarded->whole.buffer.data, 0x7b, guarded->whole.buffer.bytes);
    guarded->output = guarded->whole;
    guarded->output.rows = rows;
    guarded->output.buffer.data = (unsigned char *)guarded->whole.buffer.data +
                                  MARGIN_ROWS * guarded->whole.pitch * value_bytes;
}

static bool canaries_live(const struct guarded *guarded)
{
    const unsigned char *bytes = guarded->whole.buffer.data;
    const uint64_t stride = (uint64_t)guarded->whole.pitch * slc_value_bytes(guarded->whole.type);
    const uint64_t after = (guarded->output.rows + MARGIN_ROWS) * stride;

    for (uint64_t i = 0; i < MARGIN_ROWS * stride; i++) {
        if (bytes[i] != 0x7b || bytes[after + i] != 0x7b) {
            return false;
        }
    }
    return true;
}

static void problem_create(struct problem *problem,
                           unsigned order,
                           const uint64_t *dims,
                           uint64_t nnz,
                           unsigned mode,
                           uint32_t rank,
                           enum slc_value_type type,
                           bool integers)
{
    const uint64_t seed = slc_test_seed();
    const struct slc_matrix *factors[SLC_MAX_ORDER] = {0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo_view view;

    memset(problem, 0, sizeof *problem);
    fake_tensor_random(&problem->tensor, order, dims, nnz, integers, order * 1000 + rank);
    problem->mode = mode;
    problem->rank = rank;
    problem->type = type;
    for (unsigned m = 0; m < order; m++) {
        struct slc_matrix *factor = &problem->factors[m];

        factors[m] = factor;
        if (m == mode) {
            continue;
        }
        SLC_ASSERT_OK(slc_matrix_create(factor, type, dims[m], rank, &err), &err);
        for (uint64_t i = 0; i < dims[m]; i++) {
            for (uint32_t r = 0; r < rank; r++) {
                const double uniform = slc_random_f64(seed, 77 + m, i * rank + r);
                slc_matrix_set(factor, i, r,
                               integers ? (double)((int)(uniform * 5.0) - 2) : 2.0 * uniform - 1.0);
            }
        }
    }
    guarded_create(&problem->out, type, dims[mode], rank);
    problem->want = calloc(dims[mode] * rank + 1, sizeof(double));
    problem->magnitude = calloc(dims[mode] * rank + 1, sizeof(double));
    CU_ASSERT_PTR_NOT_NULL_FATAL(problem->want);
    CU_ASSERT_PTR_NOT_NULL_FATAL(problem->magnitude);
    fake_tensor_view(&problem->tensor, &view);
    slc_reference_mttkrp(&view, factors, mode, dims[mode], rank, problem->want);
    slc_reference_mttkrp_magnitude(&view, factors, mode, dims[mode], rank, problem->magnitude);
}

static void problem_destroy(struct problem *problem)
{
    for (unsigned m = 0; m < problem->tensor.order; m++) {
        slc_matrix_destroy(&problem->factors[m]);
    }
    slc_matrix_destroy(&problem->out.whole);
    fake_tensor_free(&problem->tensor);
    free(problem->want);
    free(problem->magnitude);
}

static void problem_job(struct problem *problem, unsigned workers, struct slc_mttkrp_job *job)
{
    memset(job, 0, sizeof *job);
    job->order = problem->tensor.order;
    job->mode = problem->mode;
    job->rank = problem->rank;
    job->nnz = problem->tensor.nnz;
    job->workers = workers;
    job->output = &problem->out.output;
    for (unsigned m = 0; m < job->order; m++) {
        job->factors[m] = &problem->factors[m];
    }
}

/* A pass as the engine makes it: workers take tiles in ascending order. */
struct pass {
    struct slc_backend *backend;
    const struct fake_tensor *tensor;
    enum slc_value_type type;
    atomic_uint_fast64_t next;
    atomic_bool failed;
    struct slc_error fault;
    pthread_mutex_t lock;
};

static void pass_worker(void *context, unsigned worker, unsigned workers)
{
    struct pass *pass = context;
    struct fake_tile tile;

    (void)workers;
    fake_tile_create(&tile, pass->tensor, pass->type);
    while (!atomic_load(&pass->failed)) {
        struct slc_error err = SLC_ERROR_INIT;
        const uint64_t ordinal = atomic_fetch_add(&pass->next, 1);

        if (ordinal >= fake_tensor_tiles(pass->tensor)) {
            break;
        }
        fake_tile_open(&tile, ordinal);
        if (pass->backend->ops->mttkrp_tile(pass->backend, worker, &tile.view, &err) != SLC_OK) {
            pthread_mutex_lock(&pass->lock);
            if (pass->fault.status == SLC_OK) {
                pass->fault = err;
            }
            pthread_mutex_unlock(&pass->lock);
            atomic_store(&pass->failed, true);
            pass->backend->ops->mttkrp_abort(pass->backend);
        }
    }
    fake_tile_destroy(&tile);
}

static enum slc_status run_pass(struct slc_backend *backend,
                                struct problem *problem,
                                const struct slc_mttkrp_job *job,
                                struct slc_error *err)
{
    struct pass pass = {.backend = backend,
                        .tensor = &problem->tensor,
                        .type = problem->type,
                        .fault = SLC_ERROR_INIT,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    enum slc_status status = backend->ops->mttkrp_begin(backend, job, err);
    enum slc_status ended;

    if (status != SLC_OK) {
        return status;
    }
    status = slc_team_run(job->workers, pass_worker, &pass, err);
    if (status == SLC_OK && atomic_load(&pass.failed)) {
        *err = pass.fault;
        status = err->status;
    }
    ended = backend->ops->mttkrp_end(backend, status == SLC_OK ? err : NULL);
    return status == SLC_OK ? ended : status;
}

/* Compares with the oracle; `tolerance` 0 asks for equality. Returns the number of bad elements. */
static uint64_t count_wrong(const struct problem *problem, double tolerance)
{
    const struct slc_matrix *output = &problem->out.output;
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < output->rows; i++) {
        for (uint32_t r = 0; r < output->pitch; r++) {
            struct slc_matrix wide = *output;
            double got, want = 0.0, scale = 0.0;

            wide.cols = output->pitch;
            got = slc_matrix_get(&wide, i, r);
            if (r < problem->rank) {
                want = problem->want[i * problem->rank + r];
                scale = problem->magnitude[i * problem->rank + r];
            }
            wrong += !(fabs(got - want) <= tolerance * scale);
        }
    }
    return wrong;
}

static void check_problem(struct slc_backend *backend, struct problem *problem, double tolerance)
{
    static const unsigned workers[] = {1, 2, 3, 5};
    static const enum slc_conflict conflicts[] = {SLC_CONFLICT_AUTO, SLC_CONFLICT_DIRECT,
                                                  SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED,
                                                  SLC_CONFLICT_ORDERED};

    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        for (size_t w = 0; w < SLC_COUNT(workers); w++) {
            for (size_t c = 0; c < SLC_COUNT(conflicts); c++) {
                struct slc_error err = SLC_ERROR_INIT;
                struct slc_mttkrp_job job;
                uint64_t wrong;

                if (conflicts[c] == SLC_CONFLICT_DIRECT && workers[w] > 1) {
                    continue;
                }
                problem_job(problem, workers[w], &job);
                job.conflict = conflicts[c];
                memset(problem->out.output.buffer.data, 0x55,
                       problem->out.output.rows * problem->out.output.pitch *
                           slc_value_bytes(problem->type));
                SLC_ASSERT_OK(run_pass(backend, problem, &job, &err), &err);
                wrong = count_wrong(problem, tolerance);
                if (wrong > 0) {
                    printf("# %s, order %u, mode %u, rank %u, %s, %u workers, %s: %llu wrong\n",
                           sets[s], problem->tensor.order, problem->mode, problem->rank,
                           problem->type == SLC_F32 ? "f32" : "f64", workers[w],
                           slc_conflict_name(conflicts[c]), (unsigned long long)wrong);
                }
                CU_ASSERT_EQUAL(wrong, 0);
                CU_ASSERT(canaries_live(&problem->out));
            }
        }
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
}

/* Modes from 1 to a few hundred, some of length 1, some far beyond the number of nonzeros. */
static void random_dims(unsigned order, uint64_t draw, uint64_t *dims)
{
    static const uint64_t lengths[] = {1, 2, 9, 40, 300, 2500};

    for (unsigned m = 0; m < order; m++) {
        dims[m] = lengths[slc_random_below(slc_test_seed(), 5, draw * 16 + m, 6)];
    }
}

static void sweep(bool integers)
{
    static const uint32_t ranks[] = {1, 3, 7, 8, 16, 24, 32, 33, 48, 64, 100, 128};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t draw = 0;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned order = 1; order <= 8; order++) {
        for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
            const enum slc_value_type type =
                slc_random_below(slc_test_seed(), 6, draw, 2) == 0 ? SLC_F32 : SLC_F64;
            const unsigned mode = (unsigned)slc_random_below(slc_test_seed(), 7, draw, order);
            uint64_t dims[SLC_MAX_ORDER];
            struct problem problem;

            random_dims(order, draw++, dims);
            problem_create(&problem, order, dims, 700, mode, ranks[r], type, integers);
            problem.tensor.tile_nnz = 150;
            problem.tensor.chunk_nnz = 64;
            for (unsigned m = 0; draw % 2 == 0 && m < order; m++) {
                /* Rows that no nonzero names, so that the kernels expect to miss the cache. */
                problem.factors[m].rows += m == mode ? 0 : UINT64_C(1) << 32;
            }
            check_problem(backend, &problem, integers ? 0.0 : type == SLC_F32 ? 1e-5 : 1e-12);
            problem_destroy(&problem);
        }
    }
    backend->ops->destroy(backend);
}

static void test_integers(void)
{
    sweep(true);
}

static void test_reals(void)
{
    sweep(false);
}

/* Corner shapes: no nonzeros, one, 16 modes, one output row, the largest rank. */
static void test_edges(void)
{
    static const struct {
        unsigned order;
        uint64_t dims[SLC_MAX_ORDER];
        uint64_t nnz;
        uint32_t rank;
    } cases[] = {
        {3, {4, 5, 6}, 0, 16},
        {3, {1, 1, 1}, 1, 5},
        {1, {1}, 3, 4},
        {1, {900}, 500, 9},
        {2, {1, 70}, 300, 2},
        {16, {2, 3, 1, 2, 2, 4, 1, 1, 5, 2, 2, 3, 1, 2, 2, 9}, 200, 12},
        {3, {7, 8, 9}, 100, SLC_MAX_RANK},
        {3, {7, 8, 9}, 100, SLC_MAX_RANK - 1},
    };
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (size_t c = 0; c < SLC_COUNT(cases); c++) {
        for (unsigned mode = 0; mode < cases[c].order; mode += 1 + mode / 2) {
            for (int type = SLC_F32; type <= SLC_F64; type++) {
                struct problem problem;

                problem_create(&problem, cases[c].order, cases[c].dims, cases[c].nnz, mode,
                               cases[c].rank, (enum slc_value_type)type, true);
                problem.tensor.tile_nnz = 64;
                check_problem(backend, &problem, 0.0);
                problem_destroy(&problem);
            }
        }
    }
    backend->ops->destroy(backend);
}

/* Tiles of full size whose rows overflow the window several times, and dense ones. */
static void test_large_tiles(void)
{
    static const uint64_t dims[][3] = {{30000, 400, 300}, {3000000, 50, 60}, {700, 4000, 5000}};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (size_t c = 0; c < SLC_COUNT(dims); c++) {
        struct problem problem;

        problem_create(&problem, 3, dims[c], 150000, 0, c == 1 ? 2 : 40, SLC_F64, true);
        for (unsigned workers = 1; workers <= 3; workers += 2) {
            for (int conflict = SLC_CONFLICT_LOCKED; conflict <= SLC_CONFLICT_ORDERED; conflict++) {
                struct slc_mttkrp_job job;

                problem_job(&problem, workers, &job);
                job.conflict = (enum slc_conflict)conflict;
                SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
                CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
                CU_ASSERT(canaries_live(&problem.out));
            }
        }
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

static void check_same_bits(struct slc_backend *backend, struct problem *problem)
{
    static const unsigned workers[] = {1, 2, 3, 8};
    static const uint32_t chunks[] = {1024, 128, 256, 4096};
    const uint64_t bytes =
        problem->out.output.rows * problem->out.output.pitch * slc_value_bytes(problem->type);
    unsigned char *first = malloc(bytes);
    bool have_first = false;

    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        for (size_t w = 0; w < SLC_COUNT(workers); w++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_mttkrp_job job;

            problem_job(problem, workers[w], &job);
            job.deterministic = true;
            problem->tensor.chunk_nnz = chunks[(w + s) % SLC_COUNT(chunks)];
            SLC_ASSERT_OK(run_pass(backend, problem, &job, &err), &err);
            if (!have_first) {
                memcpy(first, problem->out.output.buffer.data, bytes);
                have_first = true;
            }
            CU_ASSERT_EQUAL(memcmp(first, problem->out.output.buffer.data, bytes), 0);
        }
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
    free(first);
}

static void test_ordered_bits(void)
{
    static const uint64_t dims[][4] = {
        {500, 20, 30, 10}, {20000, 20, 30, 10}, {1, 20, 30, 40}, {130, 1, 1, 7}};
    static const uint32_t ranks[] = {5, 16, 72};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (size_t c = 0; c < SLC_COUNT(dims); c++) {
        for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
            for (int type = SLC_F32; type <= SLC_F64; type++) {
                struct problem problem;

                problem_create(&problem, 4, dims[c], 9000, 0, ranks[r], (enum slc_value_type)type,
                               false);
                problem.tensor.tile_nnz = 700;
                check_same_bits(backend, &problem);
                problem_destroy(&problem);
            }
        }
    }
    backend->ops->destroy(backend);
}

/* One worker, f64, added straight to the output: the oracle's own order, so the oracle's bits. */
static void test_direct_bits(void)
{
    static const uint64_t dims[] = {90, 50, 70};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_mttkrp_job job;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 20000, 1, 19, SLC_F64, false);
    problem_job(&problem, 1, &job);
    CU_ASSERT_EQUAL(backend->ops->mttkrp_strategy(&job, 50), SLC_CONFLICT_DIRECT);
    SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* Row numbers beyond 32 bits in a factor; its memory is only touched where nonzeros are. */
static void test_four_billion_rows(void)
{
    const uint64_t rows = UINT64_C(4500000000);
    const uint64_t far = UINT64_C(4499999998);
    uint64_t i[] = {0, 1, 1, 2};
    uint64_t j[] = {0, far, far - UINT64_C(4294967293), far};
    double x[] = {1, 2, 3, 4};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend = NULL;
    struct slc_mttkrp_job job;
    struct problem problem;

    memset(&problem, 0, sizeof problem);
    if (slc_matrix_create(&problem.factors[1], SLC_F32, rows, 1, &err) != SLC_OK) {
        slc_test_skip("18 GB of address space are not to be had");
        return;
    }
    problem.tensor = (struct fake_tensor){.order = 2,
                                          .dims = {3, rows},
                                          .nnz = 4,
                                          .coords = {i, j},
                                          .values = x,
                                          .tile_nnz = 2,
                                          .chunk_nnz = 128,
                                          .fail_tile = UINT64_MAX};
    problem.rank = 1;
    problem.type = SLC_F32;
    for (int n = 0; n < 4; n++) {
        slc_matrix_row_f32(&problem.factors[1], j[n])[0] = (float)(n + 1);
    }
    guarded_create(&problem.out, SLC_F32, 3, 1);
    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    /* Offsets are 32 bits: the tile of nonzeros 0 and 1 would be too wide, so it is cut. */
    problem.tensor.tile_nnz = 1;
    for (int conflict = SLC_CONFLICT_PRIVATE; conflict <= SLC_CONFLICT_ORDERED; conflict++) {
        problem_job(&problem, 2, &job);
        job.conflict = (enum slc_conflict)conflict;
        SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
        CU_ASSERT_EQUAL(slc_matrix_get(&problem.out.output, 0, 0), 1.0);
        CU_ASSERT_EQUAL(slc_matrix_get(&problem.out.output, 1, 0), 2.0 * 4 + 3.0 * 3);
        CU_ASSERT_EQUAL(slc_matrix_get(&problem.out.output, 2, 0), 4.0 * 4);
    }
    backend->ops->destroy(backend);
    slc_matrix_destroy(&problem.factors[1]);
    slc_matrix_destroy(&problem.out.whole);
}

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

static void test_abort(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    const struct timespec while_it_waits = {0, 20000000};
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
    nanosleep(&while_it_waits, NULL); /* tile 0 never comes */
    backend->ops->mttkrp_abort(backend);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(waiter.status, SLC_ERR_INTERRUPTED);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_end(backend, &err), SLC_ERR_INTERRUPTED, &err, "stopped");

    slc_error_clear(&err); /* and the backend is as good as new */
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
    for (int conflict = SLC_CONFLICT_PRIVATE; conflict <= SLC_CONFLICT_ORDERED; conflict++) {
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

/* The k-th allocation fails, for every k; thread creation, too. */
static void test_faults(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct problem problem;
    struct slc_mttkrp_job job;
    bool done = false;

    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 100;
    problem_job(&problem, 2, &job);
    job.conflict = SLC_CONFLICT_LOCKED;
    for (uint64_t k = 1; !done && k < 20; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_backend *backend = NULL;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_cpu_backend_create(&backend, &err);
        if (status == SLC_OK) {
            status = run_pass(backend, &problem, &job, &err);
            backend->ops->destroy(backend);
        } else {
            CU_ASSERT_PTR_NULL(backend);
        }
        done = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : SLC_ERR_MEMORY);
    }
    CU_ASSERT(done);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
    problem_destroy(&problem);
}

/* Begin takes what scratch_bytes said, at most, and nothing at all the second time. */
static void test_scratch(void)
{
    static const uint64_t dims[] = {40000, 20, 30};
    static const enum slc_conflict conflicts[] = {SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED,
                                                  SLC_CONFLICT_ORDERED};
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;

    problem_create(&problem, 3, dims, 100000, 0, 8, SLC_F32, true);
    for (size_t c = 0; c < SLC_COUNT(conflicts); c++) {
        struct slc_backend *backend = NULL;
        struct slc_mttkrp_job job;
        uint64_t bytes;

        SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
        problem_job(&problem, 2, &job);
        job.conflict = conflicts[c];
        bytes = backend->ops->mttkrp_scratch_bytes(&job, dims[0]);
        CU_ASSERT(bytes > 0 && bytes <= (UINT64_C(16) << 20));
        job.output = NULL; /* as a plan asks, before the type is known */
        CU_ASSERT(backend->ops->mttkrp_scratch_bytes(&job, dims[0]) >= bytes);
        problem_job(&problem, 2, &job);
        job.conflict = conflicts[c];
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
    {"integers are exact: all strategies, workers, types, sets", test_integers},
    {"reals stay within the relative error", test_reals},
    {"edges: no nonzeros, one, 16 modes, one row, rank 4096", test_edges},
    {"full tiles, windows that overflow", test_large_tiles},
    {"ordered: same bits for any workers, chunks, sets", test_ordered_bits},
    {"direct: the oracle's bits", test_direct_bits},
    {"row numbers beyond 32 bits", test_four_billion_rows},
    {"abort wakes a waiting worker", test_abort},
    {"a damaged tile ends the pass", test_damaged_tile},
    {"jobs and tiles that do not fit are refused", test_refusals},
    {"every allocation may fail", test_faults},
    {"scratch is as planned and kept", test_scratch},
};

int main(int argc, char **argv)
{
    return slc_test_main("mttkrp", tests, SLC_COUNT(tests), argc, argv);
}
