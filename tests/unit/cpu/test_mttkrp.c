/* MTTKRP kernels and strategies against the oracle.
 *
 * Identities: with small integers every sum is exact, so every strategy, number of workers, element
 * type and instruction set must yield the oracle's bits. With reals the error is bounded relative
 * to the same sum of magnitudes. ORDERED yields the same bits for any number of workers, any chunk
 * size and any instruction set. */
#include "base/random.h"
#include "mttkrp_fixture.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

static void check_problem(struct slc_backend *backend, struct problem *problem, double tolerance)
{
    static const unsigned workers[] = {1, 2, 3, 5};
    static const enum slc_conflict conflicts[] = {SLC_CONFLICT_AUTO,    SLC_CONFLICT_DIRECT,
                                                  SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED,
                                                  SLC_CONFLICT_ORDERED, SLC_CONFLICT_COLUMNS};
    static unsigned turn; /* number of the problem */

    turn++;
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
                if (slc_test_threads_only() && (turn + w + c) % 3 != 0) {
                    continue; /* three problems together test every combination */
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

/* Mode sizes from 1 to a few hundred, some of size 1, some far above the number of nonzeros. */
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
        /* Every second rank; even orders use one half and odd orders the other. */
        for (size_t r = slc_test_quick() ? order % 2 : 0; r < SLC_COUNT(ranks);
             r += slc_test_threads_only() ? 6
                  : slc_test_quick()      ? 2
                                          : 1) {
            const enum slc_value_type type =
                slc_random_below(slc_test_seed(), 6, draw, 2) == 0 ? SLC_F32 : SLC_F64;
            const unsigned mode = (unsigned)slc_random_below(slc_test_seed(), 7, draw, order);
            uint64_t dims[SLC_MAX_ORDER];
            struct problem problem;

            /* No runs, or runs of several mean lengths, of the output's mode or another mode. */
            const struct runs runs = {(unsigned)slc_random_below(slc_test_seed(), 8, draw, order),
                                      (unsigned[]){0, 2, 5, 40}[draw % 4]};

            random_dims(order, draw++, dims);
            problem_create_runs(&problem, order, dims, 700, mode, ranks[r], type, integers, runs);
            problem.tensor.tile_nnz = 150;
            problem.tensor.chunk_nnz = 64;
            for (unsigned m = 0; draw % 2 == 0 && m < order; m++) {
                /* Add rows without nonzeros, so that the kernels expect cache misses. */
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

/* Edge cases: no nonzeros, one, 16 modes, one output row, the largest rank. */
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

/* Tests full tiles whose rows exceed the window or span many pieces of a private output, and dense
 * tiles. */
static void test_large_tiles(void)
{
    static const uint64_t dims[][3] = {{30000, 400, 300}, {3000000, 50, 60}, {700, 4000, 5000}};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (size_t c = 0; c < SLC_COUNT(dims); c++) {
        struct problem problem;

        problem_create(&problem, 3, dims[c], 150000, 0,
                       c == 1                    ? 2
                       : slc_test_threads_only() ? 16
                                                 : 40,
                       SLC_F64, true);
        for (unsigned workers = slc_test_threads_only() ? 3 : 1; workers <= 3; workers += 2) {
            for (int conflict = SLC_CONFLICT_PRIVATE; conflict <= SLC_CONFLICT_ORDERED;
                 conflict++) {
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

            if (slc_test_threads_only() && w % 3 != 0) {
                continue; /* only one worker and the largest number of workers */
            }
            problem_job(problem, workers[w], &job);
            job.deterministic = true;
            /* Runs end with their chunk, and the decoder's chunks are always the same. */
            problem->tensor.chunk_nnz =
                problem->tensor.in_runs ? 1024 : chunks[(w + s) % SLC_COUNT(chunks)];
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
    static const uint32_t ranks[] = {1, 5, 16, 72};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (size_t c = 0; c < SLC_COUNT(dims); c++) {
        for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
            for (int type = SLC_F32; type <= SLC_F64; type++) {
                struct problem problem;

                if (slc_test_threads_only() && (c + r + (size_t)type) % 2 != 0) {
                    continue;
                }
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

/* Checks bits over fiber runs of any mode, short and long, split where the decoder splits them. */
static void check_run_bits(struct slc_backend *backend, uint32_t rank)
{
    static const uint64_t dims[] = {130, 900, 7, 40};
    static const unsigned means[] = {2, 6, 50};

    for (unsigned mode = 0; mode < 4; mode++) {
        for (size_t m = 0; m < SLC_COUNT(means); m++) {
            for (int type = SLC_F32; type <= SLC_F64; type++) {
                struct problem problem;

                if (slc_test_threads_only() && (mode + m + (size_t)type) % 2 != 0) {
                    continue;
                }
                problem_create_runs(&problem, 4, dims, 9000, 1, rank, (enum slc_value_type)type,
                                    false, (struct runs){mode, means[m]});
                problem.tensor.tile_nnz = 700;
                check_same_bits(backend, &problem);
                problem_destroy(&problem);
            }
        }
    }
}

static void test_ordered_run_bits(void)
{
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    check_run_bits(backend, 1);
    check_run_bits(backend, 40);
    backend->ops->destroy(backend);
}

/* One worker adds directly to an output of f64, in the same order as the oracle, so the result has
 * the same bits as the oracle's. */
static void test_direct_bits(void)
{
    static const uint64_t dims[] = {90, 50, 70};
    static const uint32_t ranks[] = {1, 19};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        struct slc_conflict_choice choice;
        struct slc_mttkrp_job job;
        struct problem problem;

        problem_create(&problem, 3, dims, 20000, 1, ranks[r], SLC_F64, false);
        problem_job(&problem, 1, &job);
        backend->ops->mttkrp_choose(&job, 50, &choice);
        CU_ASSERT_EQUAL(choice.chosen, SLC_CONFLICT_DIRECT);
        SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

/* A factor has row numbers above 2^32. Only the memory of rows with nonzeros is accessed. */
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
    /* One nonzero per tile: nonzeros 0 and 1 are too far apart for offsets of 32 bits. */
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
static const struct slc_test tests[] = {
    {"integers are exact: all strategies, workers, types, sets", test_integers},
    {"reals stay within the relative error", test_reals},
    {"edges: no nonzeros, one, 16 modes, one row, rank 4096", test_edges},
    {"full tiles, windows that overflow", test_large_tiles},
    {"ordered: same bits for any workers, chunks, sets", test_ordered_bits},
    {"ordered: same bits over runs of fibers", test_ordered_run_bits},
    {"direct: the oracle's bits", test_direct_bits},
    {"row numbers beyond 32 bits", test_four_billion_rows},
};

SLC_SUITE(mttkrp)
{
    return slc_test_main("mttkrp", tests, SLC_COUNT(tests), argc, argv);
}
