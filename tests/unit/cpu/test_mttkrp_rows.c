/* MTTKRP from a layout sorted by its mode: partitions whose rows have one owner
 * (SLC_CONFLICT_ROWS).
 *
 * Identities: with small integers every sum is exact, so the result has the oracle's bits. With
 * reals the bits are the same for any number of workers, any order of partitions, and every
 * instruction set: sums within a row are in layout order, and a row split over partitions is summed
 * in partition order. */
#include "base/random.h"
#include "mttkrp_fixture.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};
static const unsigned worker_counts[] = {1, 2, 5};

/* Makes a pass into an output that held garbage before. */
static void run(struct slc_backend *backend, struct problem *problem, unsigned workers)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_mttkrp_job job;

    problem_job(problem, workers, &job);
    memset(problem->out.output.buffer.data, 0x55,
           problem->out.output.rows * problem->out.output.pitch * slc_value_bytes(problem->type));
    SLC_ASSERT_OK(run_pass(backend, problem, &job, &err), &err);
    CU_ASSERT(canaries_live(&problem->out));
}

/* Every instruction set, number of workers and order of partitions yields the oracle's sums and
 * equal bits. */
static void check_problem(struct slc_backend *backend, struct problem *problem, double tolerance)
{
    const struct slc_matrix *output = &problem->out.output;
    const uint64_t bytes = output->rows * output->pitch * slc_value_bytes(problem->type);
    unsigned char *first = NULL;

    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        for (size_t w = 0; w < SLC_COUNT(worker_counts); w++) {
            for (int backwards = 0; backwards <= 1; backwards++) {
                problem->backwards = backwards != 0;
                run(backend, problem, worker_counts[w]);
                CU_ASSERT_EQUAL(count_wrong(problem, tolerance), 0);
                if (first == NULL) {
                    first = malloc(bytes);
                    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
                    memcpy(first, output->buffer.data, bytes);
                }
                CU_ASSERT_EQUAL(memcmp(first, output->buffer.data, bytes), 0);
            }
        }
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
    free(first);
}

static void sweep(bool integers)
{
    static const uint32_t ranks[] = {1, 7, 16, 33, 100};
    static const uint64_t lengths[] = {1, 3, 40, 2500};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t draw = 0;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned order = 1; order <= 6; order++) {
        for (size_t r = 0; r < SLC_COUNT(ranks); r++, draw++) {
            const enum slc_value_type type = draw % 3 == 0 ? SLC_F32 : SLC_F64;
            const unsigned mode = (unsigned)slc_random_below(slc_test_seed(), 7, draw, order);
            const struct runs runs = {(unsigned)slc_random_below(slc_test_seed(), 8, draw, order),
                                      (unsigned[]){0, 3, 30}[draw % 3]};
            uint64_t dims[SLC_MAX_ORDER];
            struct problem problem;

            for (unsigned m = 0; m < order; m++) {
                dims[m] = lengths[slc_random_below(slc_test_seed(), 9, draw * 16 + m, 4)];
            }
            problem_create_runs(&problem, order, dims, 700, mode, ranks[r], type, integers, runs);
            problem.tensor.tile_nnz = 50;
            problem.tensor.chunk_nnz = 64;
            problem_partition(&problem, 120);
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

/* No nonzeros, one, and all of them in one row split over many partitions. */
static void test_edges(void)
{
    static const struct {
        uint64_t dims[3];
        uint64_t nnz, partitions;
    } cases[] = {{{4, 5, 6}, 0, 0}, {{4, 5, 6}, 1, 1}, {{1, 50, 60}, 640, 64}};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (size_t c = 0; c < SLC_COUNT(cases); c++) {
        struct problem problem;

        problem_create(&problem, 3, cases[c].dims, cases[c].nnz, 0, 16, SLC_F64, false);
        problem.tensor.tile_nnz = 4;
        problem_partition(&problem, 10);
        CU_ASSERT_EQUAL(problem.tensor.partitions, cases[c].partitions);
        check_problem(backend, &problem, 1e-12);
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

/* Rows are complete, in either type, before the end of the job, once all their tiles are added. */
static void test_complete_rows(void)
{
    const uint64_t dims[] = {200, 20, 30};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (enum slc_value_type type = SLC_F32; type <= SLC_F64; type++) {
        struct slc_mttkrp_job job;
        struct problem problem;
        struct fake_tile tile;

        problem_create(&problem, 3, dims, 900, 0, 9, type, true);
        problem.tensor.tile_nnz = 50;
        problem_partition(&problem, 120);
        problem_job(&problem, 2, &job);
        fake_tile_create(&tile, &problem.tensor, type);
        SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, &job, &err), &err);
        for (uint64_t t = 0; t < problem.tensor.tiles; t++) {
            fake_tile_open(&tile, t);
            SLC_ASSERT_OK(backend->ops->mttkrp_tile(backend, t % 2, &tile.view, &err), &err);
        }
        backend->ops->mttkrp_rows(backend, 0, 77);
        backend->ops->mttkrp_rows(backend, 77, dims[0]);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
        CU_ASSERT(canaries_live(&problem.out));
        SLC_ASSERT_OK(backend->ops->mttkrp_end(backend, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
        fake_tile_destroy(&tile);
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

/* Deterministic jobs and jobs that request ROWS use it; without partitions ROWS is unavailable. */
static void test_choice(void)
{
    const uint64_t dims[] = {30, 40, 50};
    const struct slc_backend_ops *ops = slc_cpu_backend_ops();
    struct slc_conflict_choice choice;
    struct problem problem;
    struct slc_mttkrp_job job;

    problem_create(&problem, 3, dims, 300, 1, 8, SLC_F64, true);
    problem_partition(&problem, 60);
    problem_job(&problem, 2, &job);
    ops->mttkrp_choose(&job, dims[1], &choice);
    CU_ASSERT_EQUAL(choice.chosen, SLC_CONFLICT_ROWS);
    CU_ASSERT_EQUAL(choice.rival, SLC_CONFLICT_AUTO);
    job.deterministic = true;
    ops->mttkrp_choose(&job, dims[1], &choice);
    CU_ASSERT_EQUAL(choice.chosen, SLC_CONFLICT_ROWS);
    job.deterministic = false;
    job.conflict = SLC_CONFLICT_LOCKED;
    ops->mttkrp_choose(&job, dims[1], &choice);
    CU_ASSERT_EQUAL(choice.chosen, SLC_CONFLICT_LOCKED);
    problem_destroy(&problem);
}

static void test_refusals(void)
{
    const uint64_t dims[] = {30, 40, 50};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;
    struct slc_mttkrp_job job;
    struct fake_tile tile;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 300, 1, 8, SLC_F64, true);
    problem_partition(&problem, 60);
    problem_job(&problem, 2, &job);
    job.partitions = 0;
    job.conflict = SLC_CONFLICT_ROWS;
    SLC_ASSERT_FAILS(backend->ops->mttkrp_begin(backend, &job, &err), SLC_ERR_USAGE, &err,
                     "sorted by mode 2");

    slc_error_clear(&err);
    problem_job(&problem, 2, &job);
    SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, &job, &err), &err);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    fake_tile_open(&tile, 0);
    tile.view.partition = problem.tensor.partitions;
    SLC_ASSERT_FAILS(backend->ops->mttkrp_tile(backend, 0, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "partition");
    slc_error_clear(&err);
    fake_tile_open(&tile, 0);
    tile.view.continued = true;
    SLC_ASSERT_FAILS(backend->ops->mttkrp_tile(backend, 0, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "more than one row");
    slc_error_clear(&err);
    fake_tile_destroy(&tile);
    SLC_ASSERT_OK(backend->ops->mttkrp_end(backend, &err), &err);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* Adds the tiles of the partitions owned by device `device` of `devices` to its backend. */
static void add_tiles_of(struct slc_backend *backend,
                         const struct problem *problem,
                         unsigned device,
                         unsigned devices)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct fake_tile tile;

    fake_tile_create(&tile, &problem->tensor, problem->type);
    for (uint64_t t = 0; t < fake_tensor_tiles(&problem->tensor); t++) {
        fake_tile_open(&tile, t);
        if (tile.view.partition % devices == device) {
            SLC_ASSERT_OK(backend->ops->mttkrp_tile(backend, 0, &tile.view, &err), &err);
        }
    }
    fake_tile_destroy(&tile);
}

/* Partitions of one row with two owners: its sums, collected in order and passed to the owner of
 * the first partition, yield the bits of a single owner. */
static void check_two_owners(enum slc_value_type type)
{
    const uint64_t dims[] = {3, 50, 60};
    struct slc_backend *backends[2] = {NULL, NULL};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix outputs[2];
    struct slc_mttkrp_job job;
    struct problem problem;
    double sums[16];
    uint64_t row, taken = 0;

    problem_create(&problem, 3, dims, 640, 0, 16, type, false);
    problem.tensor.tile_nnz = 4;
    problem_partition(&problem, 10);
    for (unsigned d = 0; d < 2; d++) {
        SLC_ASSERT_OK(slc_cpu_backend_create(&backends[d], &err), &err);
    }
    run(backends[0], &problem, 1);
    problem_job(&problem, 1, &job);
    for (unsigned d = 0; d < 2; d++) {
        SLC_ASSERT_OK(slc_matrix_create(&outputs[d], type, 3, 16, &err), &err);
        job.output = &outputs[d];
        SLC_ASSERT_OK(backends[d]->ops->mttkrp_begin(backends[d], &job, &err), &err);
        add_tiles_of(backends[d], &problem, d, 2);
    }
    for (uint64_t p = 0; p < problem.tensor.partitions; p++) {
        struct slc_backend *owner = backends[p % 2];

        CU_ASSERT_FALSE(owner->ops->mttkrp_split_take(backends[(p + 1) % 2], p, &row, sums));
        if (owner->ops->mttkrp_split_take(owner, p, &row, sums)) {
            /* Pass the sums of each row to the first device. */
            backends[0]->ops->mttkrp_split_add(backends[0], row, sums);
            CU_ASSERT_FALSE(owner->ops->mttkrp_split_take(owner, p, &row, sums));
            taken++;
        }
    }
    CU_ASSERT(taken > 50);
    CU_ASSERT_FALSE(backends[0]->ops->mttkrp_split_take(backends[0], UINT64_MAX, &row, sums));
    for (unsigned d = 0; d < 2; d++) {
        SLC_ASSERT_OK(backends[d]->ops->mttkrp_end(backends[d], &err), &err);
        CU_ASSERT_FALSE(backends[d]->ops->mttkrp_split_take(backends[d], 1, &row, sums));
    }
    /* Row 0 begins in partition 0, which the first device owns. */
    CU_ASSERT_EQUAL(memcmp(outputs[0].buffer.data, problem.out.output.buffer.data,
                           slc_matrix_row_bytes(&outputs[0])),
                    0);
    for (unsigned d = 0; d < 2; d++) {
        backends[d]->ops->destroy(backends[d]);
        slc_matrix_destroy(&outputs[d]);
    }
    problem_destroy(&problem);
}

static void test_owners(void)
{
    check_two_owners(SLC_F64);
    check_two_owners(SLC_F32);
}

/* The forecast for a plan holds, and impossibly large allocations are rejected before they are
 * tried. */
static void test_scratch(void)
{
    const uint64_t dims[] = {30, 40, 50};
    const struct slc_backend_ops *ops = slc_cpu_backend_ops();
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend = NULL;
    struct problem problem;
    struct slc_mttkrp_job job;

    problem_create(&problem, 3, dims, 300, 1, 16, SLC_F64, true);
    problem_partition(&problem, 60);
    problem_job(&problem, 2, &job);
    job.partitions = 1000;
    CU_ASSERT(ops->mttkrp_scratch_bytes(&job, dims[1]) >= 1000 * (16 + 1) * sizeof(double));
    job.partitions = UINT64_MAX / 8;
    CU_ASSERT_EQUAL(ops->mttkrp_scratch_bytes(&job, dims[1]), UINT64_MAX);
    for (uint64_t k = 1; run_pass_without_memory(k, &problem, &job, &backend); k++) {
        CU_ASSERT_FATAL(k < 100);
        if (backend != NULL) {
            backend->ops->destroy(backend);
        }
        problem_job(&problem, 2, &job);
    }
    SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
    backend->ops->destroy(backend);
    problem_destroy(&problem);
}

static const struct slc_test tests[] = {
    {"integers yield the oracle's bits", test_integers},
    {"reals yield equal bits", test_reals},
    {"no nonzero, one, one row", test_edges},
    {"rows that are complete before the end", test_complete_rows},
    {"a row with two owners", test_owners},
    {"when it is chosen", test_choice},
    {"jobs and tiles that do not fit are refused", test_refusals},
    {"scratch is as planned, and may fail", test_scratch},
};

SLC_SUITE(mttkrp_rows)
{
    return slc_test_main("mttkrp rows", tests, SLC_COUNT(tests), argc, argv);
}
