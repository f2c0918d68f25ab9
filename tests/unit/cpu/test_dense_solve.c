/* Solving and the update of a factor: the residual of every row for any condition of V, the sums
 * computed along the way, singular V, scales. On every instruction set of this machine. */
#include "base/error/fault.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "cpu/reference/reference.h"
#include "dense_fixture.h"
#include "naive_products.h"

#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

/* One system, one MTTKRP, and their results. */
struct problem {
    uint32_t rank;
    double *v, *left, *right;
    struct slc_matrix m, x;
    struct slc_solver solver;
    struct slc_update_sums sums;
};

static void
problem_create(struct problem *problem, enum slc_value_type type, uint64_t rows, uint32_t rank)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(problem, 0, sizeof *problem);
    problem->rank = rank;
    problem->v = must(malloc((size_t)rank * rank * sizeof(double)));
    regular_gram(rank, problem->v);
    problem->left = ones(rank);
    problem->right = ones(rank);
    random_matrix(&problem->m, type, rows, rank);
    empty_matrix(&problem->x, &problem->m);
    SLC_ASSERT_OK(slc_solver_create(&problem->solver, rank, &err), &err);
    problem->sums = update_sums(rank);
}

static void problem_destroy(struct problem *problem)
{
    free(problem->v);
    free(problem->left);
    free(problem->right);
    slc_matrix_destroy(&problem->m);
    slc_matrix_destroy(&problem->x);
    slc_solver_destroy(&problem->solver);
    slc_solver_destroy(&problem->solver);
    update_sums_free(&problem->sums);
}

static void problem_solve(struct problem *problem, unsigned workers)
{
    struct slc_dense *dense = dense_for(workers, problem->rank, problem->m.rows);
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_dense_factorize(dense, problem->v, problem->left, problem->right,
                                      &problem->solver, &err),
                  &err);
    SLC_ASSERT_OK(
        slc_dense_update(dense, &problem->solver, &problem->m, &problem->x, &problem->sums, &err),
        &err);
    slc_dense_destroy(dense);
}

static double problem_error(const struct problem *problem)
{
    return backward_error(problem->v, problem->left, problem->right, &problem->m, &problem->x);
}

static uint64_t count_padding(const struct slc_matrix *matrix)
{
    struct slc_matrix wide = *matrix;
    uint64_t wrong = 0;

    wide.cols = matrix->pitch;
    for (uint64_t i = 0; i < matrix->rows; i++) {
        for (uint32_t r = matrix->cols; r < matrix->pitch; r++) {
            wrong += slc_matrix_get(&wide, i, r) != 0.0;
        }
    }
    return wrong;
}

/* The sums equal those of the stored factor, rounding included. */
static void check_sums(const struct problem *problem)
{
    const uint32_t rank = problem->rank;
    double *gram = must(malloc((size_t)rank * rank * sizeof *gram));
    uint64_t wrong = 0;

    slc_reference_gram(&problem->x, gram);
    CU_ASSERT(relative_error(problem->sums.gram, gram, (uint64_t)rank * rank) <= 1e-13);
    for (uint32_t r = 0; r < rank; r++) {
        double inner = 0.0, scale = 0.0, largest = 0.0;

        for (uint64_t i = 0; i < problem->x.rows; i++) {
            const double x = slc_matrix_get(&problem->x, i, r);
            const double product = x * slc_matrix_get(&problem->m, i, r);

            inner += product;
            scale += fabs(product);
            largest = fmax(largest, fabs(x));
        }
        wrong += problem->sums.largest[r] != largest;
        wrong += !(fabs(problem->sums.inner[r] - inner) <= 1e-13 * scale);
        for (uint32_t s = 0; s < r; s++) {
            wrong += problem->sums.gram[r * rank + s] != problem->sums.gram[s * rank + r];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    free(gram);
}

static void check_update(enum slc_value_type type, uint64_t rows, uint32_t rank)
{
    const double bound = type == SLC_F32 ? 1e-7 : 2.0 * rank * DBL_EPSILON;
    struct problem problem;

    problem_create(&problem, type, rows, rank);
    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        double error;

        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        problem_solve(&problem, 2);
        error = problem_error(&problem);
        if (!(error <= bound)) {
            printf("# %s, %llu x %u: backward error %.1e\n", sets[s], (unsigned long long)rows,
                   rank, error);
        }
        CU_ASSERT(error <= bound);
        CU_ASSERT_FALSE(problem.solver.singular);
        CU_ASSERT_EQUAL(problem.solver.kept, rank);
        check_sums(&problem);
        CU_ASSERT_EQUAL(count_padding(&problem.x), 0);
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
    problem_destroy(&problem);
}

/* Ranks that fill vectors, tiles and blocks differently, and ranks around the switch to BLAS. */
static void test_ranks(void)
{
    static const uint32_t ranks[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15, 16,
                                     17, 20, 24, 31, 32, 33, 48, 63, 64, 65, 140};

    for (size_t i = 0; i < SLC_COUNT(ranks); i++) {
        check_update(SLC_F64, 101, ranks[i]);
        check_update(SLC_F32, 101, ranks[i]);
    }
}

/* Numbers of rows with every remainder of blocks, panels and groups; no rows. */
static void test_rows(void)
{
    static const uint64_t rows[] = {0, 1, 31, 32, 33, 64, 511, 512, 513, 1024, 1025, 2100};
    static const uint32_t ranks[] = {3, 16, 70};

    for (size_t i = 0; i < SLC_COUNT(rows); i++) {
        for (size_t j = 0; j < SLC_COUNT(ranks); j++) {
            check_update((i + j) % 2 == 0 ? SLC_F64 : SLC_F32, rows[i], ranks[j]);
        }
    }
}

/* Scales of many orders of magnitude change neither the solution nor its accuracy. */
static void test_scales(void)
{
    static const uint32_t ranks[] = {5, 16, 64, 80};

    for (size_t c = 0; c < SLC_COUNT(ranks); c++) {
        struct problem problem;

        problem_create(&problem, SLC_F64, 200, ranks[c]);
        for (uint32_t r = 0; r < ranks[c]; r++) {
            problem.left[r] = pow(10.0, r % 13 - 6.0) / 3.0;
            problem.right[r] = pow(2.0, 20.0 - r % 40);
        }
        for (size_t s = 0; s < SLC_COUNT(sets); s++) {
            if (slc_cpu_force_instruction_set(sets[s])) {
                problem_solve(&problem, 1);
                CU_ASSERT(problem_error(&problem) <= 3.0 * ranks[c] * DBL_EPSILON);
                check_sums(&problem);
            }
        }
        problem_destroy(&problem);
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
}

/* Solutions are as accurate as those of LAPACK's dposv, up to the limit of singularity. */
static void test_conditions(void)
{
    static const uint32_t ranks[] = {6, 16, 33, 64};
    static const double digits[] = {2, 5, 8, 11, 13};

    for (size_t c = 0; c < SLC_COUNT(ranks) * SLC_COUNT(digits); c++) {
        const uint32_t rank = ranks[c % SLC_COUNT(ranks)];
        const lapack_int n = (lapack_int)rank;
        struct problem problem;
        double *v;
        double theirs;

        problem_create(&problem, SLC_F64, 100, rank);
        conditioned_gram(rank, digits[c / SLC_COUNT(ranks)], problem.v);
        v = must(malloc((size_t)rank * rank * sizeof *v));
        memcpy(v, problem.v, (size_t)rank * rank * sizeof *v);
        memcpy(problem.x.buffer.data, problem.m.buffer.data, problem.m.buffer.bytes);
        CU_ASSERT_EQUAL(LAPACKE_dposv(LAPACK_COL_MAJOR, 'U', n, 100, v, n, problem.x.buffer.data,
                                      (lapack_int)problem.x.pitch),
                        0);
        theirs = problem_error(&problem);
        for (size_t s = 0; s < SLC_COUNT(sets); s++) {
            if (slc_cpu_force_instruction_set(sets[s])) {
                problem_solve(&problem, 1);
                CU_ASSERT_FALSE(problem.solver.singular);
                CU_ASSERT(problem_error(&problem) <= 3.0 * theirs);
            }
        }
        free(v);
        problem_destroy(&problem);
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
}

/* V of rank 2: V V^+ V = V, and X V = M for M in its range. */
static void check_singular(enum slc_value_type type, uint32_t rank, double scale)
{
    enum { ROWS = 700 };
    struct problem problem;
    struct slc_matrix b, y;
    double *back;

    problem_create(&problem, type, ROWS, rank);
    random_matrix(&b, SLC_F64, 2, rank);
    slc_reference_gram(&b, problem.v);
    random_matrix(&y, SLC_F64, ROWS, rank);
    for (uint32_t r = 0; r < rank; r++) {
        problem.left[r] = r % 2 == 0 ? scale : 1.0;
        problem.right[r] = r % 3 == 0 ? 2.0 / scale : 1.0;
    }
    for (uint64_t i = 0; i < ROWS; i++) {
        for (uint32_t c = 0; c < rank; c++) {
            double sum = 0.0;

            for (uint32_t r = 0; r < rank; r++) {
                sum += slc_matrix_get(&y, i, r) * problem.v[r * rank + c];
            }
            slc_matrix_set(&problem.m, i, c, sum / problem.left[c]);
        }
    }
    problem_solve(&problem, 2);
    CU_ASSERT(problem.solver.singular);
    CU_ASSERT_EQUAL(problem.solver.kept, 2);
    CU_ASSERT(problem_error(&problem) <= tolerance(type));
    check_sums(&problem);
    CU_ASSERT_EQUAL(count_padding(&problem.x), 0);
    back = must(calloc((size_t)rank * rank, sizeof *back));
    for (uint32_t i = 0; i < rank * rank; i++) {
        for (uint32_t j = 0; j < rank; j++) {
            for (uint32_t k = 0; k < rank; k++) {
                back[i] += problem.v[i / rank * rank + j] / problem.left[j] *
                           problem.solver.forward[j * problem.solver.size + k] / problem.right[k] *
                           problem.v[k * rank + i % rank];
            }
        }
    }
    CU_ASSERT(relative_error(back, problem.v, (uint64_t)rank * rank) <= 1e-12);
    free(back);
    slc_matrix_destroy(&b);
    slc_matrix_destroy(&y);
    problem_destroy(&problem);
}

static void test_singular(void)
{
    check_singular(SLC_F32, 6, 1.0);
    check_singular(SLC_F64, 6, 1.0);
    check_singular(SLC_F64, 16, 8.0);
    check_singular(SLC_F64, 70, 8.0);
}

static void test_zero_and_nan(void)
{
    struct slc_dense *dense = dense_for(1, 3, 10);
    const double scale[3] = {1.0, 1.0, 1.0};
    double v[9] = {0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_solver solver = {0};

    SLC_ASSERT_OK(slc_solver_create(&solver, 3, &err), &err);
    SLC_ASSERT_OK(slc_dense_factorize(dense, v, scale, scale, &solver, &err), &err);
    CU_ASSERT(solver.singular);
    CU_ASSERT_EQUAL(solver.kept, 0);
    for (uint32_t i = 0; i < solver.size * solver.size; i++) {
        CU_ASSERT_EQUAL(solver.forward[i], 0.0);
    }
    v[0] = v[4] = v[8] = 1.0;
    for (int i = 0; i < 9; i++) {
        const double kept = v[i];

        v[i] = i % 2 == 0 ? (double)NAN : -(double)INFINITY;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_dense_factorize(dense, v, scale, scale, &solver, &err),
                         SLC_ERR_NUMERIC, &err, "NaN");
        v[i] = kept;
    }
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_dense_factorize(dense, v, scale, scale, &solver, &err), &err);
    CU_ASSERT_FALSE(solver.singular);
    slc_solver_destroy(&solver);
    slc_dense_destroy(dense);
}

/* A NaN or an infinity in the MTTKRP shows in the Gram matrix. */
static void test_not_finite(void)
{
    static const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    static const uint32_t ranks[] = {3, 16, 70};

    for (size_t c = 0; c < SLC_COUNT(ranks) * SLC_COUNT(values); c++) {
        const uint32_t rank = ranks[c % SLC_COUNT(ranks)];

        for (size_t s = 0; s < SLC_COUNT(sets); s++) {
            struct problem problem;

            if (slc_cpu_force_instruction_set(sets[s])) {
                problem_create(&problem, s % 2 == 0 ? SLC_F64 : SLC_F32, 77, rank);
                slc_matrix_set(&problem.m, 40, 1, values[c / SLC_COUNT(ranks)]);
                problem_solve(&problem, 1);
                CU_ASSERT_FALSE(isfinite(problem.sums.gram[rank + 1]));
                problem_destroy(&problem);
            }
        }
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
}

static void check_same_bits(const char *set, enum slc_value_type type, uint32_t rank)
{
    static const unsigned worker_counts[] = {2, 3, 8};
    struct problem first, other;
    const size_t square = (size_t)rank * rank * sizeof(double);

    if (!slc_cpu_force_instruction_set(set)) {
        return;
    }
    problem_create(&first, type, 9000, rank);
    problem_create(&other, type, 9000, rank);
    problem_solve(&first, 1);
    for (size_t w = 0; w < SLC_COUNT(worker_counts); w++) {
        problem_solve(&other, worker_counts[w]);
        CU_ASSERT_EQUAL(memcmp(first.x.buffer.data, other.x.buffer.data, first.x.buffer.bytes), 0);
        CU_ASSERT_EQUAL(memcmp(first.sums.gram, other.sums.gram, square), 0);
        CU_ASSERT_EQUAL(memcmp(first.sums.inner, other.sums.inner, rank * sizeof(double)), 0);
        CU_ASSERT_EQUAL(memcmp(first.sums.largest, other.sums.largest, rank * sizeof(double)), 0);
    }
    problem_destroy(&first);
    problem_destroy(&other);
}

static void test_same_bits(void)
{
    static const uint32_t ranks[] = {5, 16, 140};

    for (size_t c = 0; c < SLC_COUNT(ranks); c++) {
        for (size_t s = 0; s < SLC_COUNT(sets); s++) {
            check_same_bits(sets[s], SLC_F64, ranks[c]);
            check_same_bits(sets[s], SLC_F32, ranks[c]);
        }
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
}

/* Solves for the rows range by range, by alternating workers, and adds the sums. */
static void solve_by_ranges(struct problem *problem)
{
    static const uint64_t ends[] = {1, 33, 200, 200, 777, 778};
    struct slc_dense *dense = dense_for(3, problem->rank, problem->m.rows);
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t begin = 0;

    SLC_ASSERT_OK(slc_dense_factorize(dense, problem->v, problem->left, problem->right,
                                      &problem->solver, &err),
                  &err);
    for (unsigned i = 0; i <= SLC_COUNT(ends); i++) {
        const uint64_t end = i < SLC_COUNT(ends) ? ends[i] : problem->m.rows;

        SLC_ASSERT_OK(slc_dense_update_rows(dense, &problem->solver, &problem->m, &problem->x,
                                            begin, end, i % 3, &err),
                      &err);
        begin = end;
    }
    SLC_ASSERT_OK(slc_dense_update_sums(dense, &problem->solver, &problem->m, &problem->x,
                                        &problem->sums, &err),
                  &err);
    slc_dense_destroy(dense);
}

/* Rows solved range by range, with their sums, equal one update. */
static void test_ranges(void)
{
    static const uint32_t ranks[] = {1, 5, 16, 64, 70, 140};

    for (size_t c = 0; c < SLC_COUNT(ranks); c++) {
        for (enum slc_value_type type = SLC_F32; type <= SLC_F64; type++) {
            const uint32_t rank = ranks[c];
            struct problem whole, ranged;

            problem_create(&whole, type, 1500, rank);
            problem_create(&ranged, type, 1500, rank);
            problem_solve(&whole, 2);
            solve_by_ranges(&ranged);
            if (rank <= 64) {
                CU_ASSERT_EQUAL(
                    memcmp(whole.x.buffer.data, ranged.x.buffer.data, whole.x.buffer.bytes), 0);
                CU_ASSERT_EQUAL(
                    memcmp(whole.sums.gram, ranged.sums.gram, (size_t)rank * rank * sizeof(double)),
                    0);
                CU_ASSERT_EQUAL(memcmp(whole.sums.inner, ranged.sums.inner, rank * sizeof(double)),
                                0);
                CU_ASSERT_EQUAL(
                    memcmp(whole.sums.largest, ranged.sums.largest, rank * sizeof(double)), 0);
            }
            CU_ASSERT_TRUE(problem_error(&ranged) <=
                           (type == SLC_F32 ? 1e-7 : 2.0 * rank * DBL_EPSILON));
            CU_ASSERT_EQUAL(count_padding(&ranged.x), 0);
            check_sums(&ranged);
            problem_destroy(&whole);
            problem_destroy(&ranged);
        }
    }
}

static void test_faults(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_solver solver = {0};

    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    CU_ASSERT_EQUAL(slc_solver_create(&solver, 4, &err), SLC_ERR_MEMORY);
    CU_ASSERT_PTR_NULL(solver.forward);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT_EQUAL(slc_solver_memory_bytes(5), (2 * 8 * 8 + 2 * 8) * sizeof(double));
}

static void test_refusals(void)
{
    struct slc_dense *dense = dense_for(1, 4, 100);
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem, wide;
    struct slc_solver none;

    problem_create(&problem, SLC_F64, 100, 4);
    problem_create(&wide, SLC_F64, 100, 5);
    SLC_ASSERT_FAILS(slc_dense_factorize(dense, wide.v, wide.left, wide.right, &wide.solver, &err),
                     SLC_ERR_USAGE, &err, "rank 5");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(
        slc_dense_update(dense, &problem.solver, &wide.m, &problem.x, &problem.sums, &err),
        SLC_ERR_USAGE, &err, "100 x 5");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_dense_update(dense, &wide.solver, &wide.m, &wide.x, &wide.sums, &err),
                     SLC_ERR_USAGE, &err, "exceeds");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_solver_create(&none, 0, &err), SLC_ERR_USAGE, &err, "rank");
    problem_destroy(&problem);
    problem_destroy(&wide);
    slc_dense_destroy(dense);
}

static const struct slc_test tests[] = {
    {"X V = M and its sums, every rank", test_ranks},
    {"X V = M and its sums, every number of rows", test_rows},
    {"scales", test_scales},
    {"backward errors up to a condition of 1e13", test_conditions},
    {"singular V: pseudo-inverse", test_singular},
    {"V = 0, NaN and infinity", test_zero_and_nan},
    {"an MTTKRP that is not finite", test_not_finite},
    {"same bits for any number of workers", test_same_bits},
    {"range by range", test_ranges},
    {"every allocation may fail", test_faults},
    {"mismatched requests are rejected", test_refusals},
};

SLC_SUITE(dense_solve)
{
    return slc_test_main("dense: solve", tests, SLC_COUNT(tests), argc, argv);
}
