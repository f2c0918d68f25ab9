/* A random MTTKRP, its answer, and a pass over its tiles. */
#include "mttkrp_fixture.h"

#include "base/fault.h"
#include "base/random.h"
#include "base/team.h"
#include "cpu/reference.h"
#include "slc_test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN_ROWS = 2 };

void guarded_create(struct guarded *guarded, enum slc_value_type type, uint64_t rows, uint32_t cols)
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

bool canaries_live(const struct guarded *guarded)
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

void problem_create(struct problem *problem,
                    unsigned order,
                    const uint64_t *dims,
                    uint64_t nnz,
                    unsigned mode,
                    uint32_t rank,
                    enum slc_value_type type,
                    bool integers)
{
    problem_create_runs(problem, order, dims, nnz, mode, rank, type, integers, (struct runs){0, 0});
}

void problem_create_runs(struct problem *problem,
                         unsigned order,
                         const uint64_t *dims,
                         uint64_t nnz,
                         unsigned mode,
                         uint32_t rank,
                         enum slc_value_type type,
                         bool integers,
                         struct runs runs)
{
    const uint64_t seed = slc_test_seed();
    const struct slc_matrix *factors[SLC_MAX_ORDER] = {0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo_view view;

    memset(problem, 0, sizeof *problem);
    fake_tensor_random(&problem->tensor, order, dims, nnz, integers, order * 1000 + rank);
    if (runs.mean > 0) {
        fake_tensor_runs(&problem->tensor, runs.mode, runs.mean, order * 1000 + rank);
    }
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

void problem_partition(struct problem *problem, uint64_t nnz)
{
    fake_tensor_partition(&problem->tensor, problem->mode, nnz);
}

void problem_destroy(struct problem *problem)
{
    for (unsigned m = 0; m < problem->tensor.order; m++) {
        slc_matrix_destroy(&problem->factors[m]);
    }
    slc_matrix_destroy(&problem->out.whole);
    fake_tensor_free(&problem->tensor);
    free(problem->want);
    free(problem->magnitude);
}

void problem_job(struct problem *problem, unsigned workers, struct slc_mttkrp_job *job)
{
    memset(job, 0, sizeof *job);
    job->order = problem->tensor.order;
    job->mode = problem->mode;
    job->rank = problem->rank;
    job->nnz = problem->tensor.nnz;
    job->workers = workers;
    job->partitions = problem->tensor.partitions;
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
    bool every_worker; /* takes every tile */
    bool by_partition, backwards;
    atomic_uint_fast64_t next;
    atomic_bool failed;
    struct slc_error fault;
    pthread_mutex_t lock;
};

/* Gives one tile to the backend; false, and the first fault kept, where it fails. */
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
    uint64_t own = 0;

    while (!atomic_load(&pass->failed)) {
        const uint64_t ordinal = pass->every_worker ? own++ : atomic_fetch_add(&pass->next, 1);

        if (ordinal >= fake_tensor_tiles(pass->tensor)) {
            return;
        }
        (void)pass_tile(pass, worker, tile, ordinal);
    }
}

/* Takes whole partitions. */
static void pass_partitions(struct pass *pass, unsigned worker, struct fake_tile *tile)
{
    const struct fake_tensor *tensor = pass->tensor;
    uint64_t taken;

    while ((taken = atomic_fetch_add(&pass->next, 1)) < tensor->partitions) {
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

enum slc_status run_pass(struct slc_backend *backend,
                         struct problem *problem,
                         const struct slc_mttkrp_job *job,
                         struct slc_error *err)
{
    struct pass pass = {.backend = backend,
                        .tensor = &problem->tensor,
                        .type = problem->type,
                        .every_worker = job->conflict == SLC_CONFLICT_COLUMNS,
                        .by_partition = job->partitions > 0,
                        .backwards = problem->backwards,
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

uint64_t count_wrong(const struct problem *problem, double tolerance)
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
