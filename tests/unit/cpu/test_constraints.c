/* Row solvers of MTTKRP rows. Coordinate descent: the exact solutions of small problems, found by
 * trying every set of numbers at a bound; soft thresholds; bits that do not depend on the other
 * rows. On every instruction set of this machine. ADMM: the solutions of coordinate descent, and
 * the conditions of optimality on the simplex. */
#include "cpu/cpu.h"
#include "cpu/row/admm.h"
#include "cpu/row/descent.h"
#include "cpu/row/smooth.h"
#include "dense_fixture.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

enum { ROWS = 45, RANK_MAX = 70 };

/* One problem: rows of M and X with the pitch of a vector. */
struct problem {
    uint32_t rank, pitch;
    double v[RANK_MAX * RANK_MAX];
    double m[ROWS * 72] __attribute__((aligned(64)));
    double x[ROWS * 72] __attribute__((aligned(64)));
    struct slc_row_terms terms[1];
};

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (double)(*state >> 11) * 0x1p-53;
}

static void make_problem(struct problem *problem, uint32_t rank)
{
    uint64_t state = rank + 7;

    memset(problem, 0, sizeof *problem);
    problem->rank = rank;
    problem->pitch = slc_row_width(rank);
    regular_gram(rank, problem->v);
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t r = 0; r < rank; r++) {
            problem->m[i * problem->pitch + r] = 4.0 * uniform(&state) - 2.0;
            problem->x[i * problem->pitch + r] = uniform(&state);
        }
    }
}

/* Solves rows [first, first + count) with sweeps until a row no longer changes. */
static void solve_some(
    struct problem *problem, uint64_t first, uint64_t count, double tolerance, unsigned sweeps)
{
    const struct slc_descent_options options = {problem->terms, tolerance, sweeps};
    const struct slc_row_mode mode = {.order = 3,
                                      .workers = 2,
                                      .iteration = 1,
                                      .rank = problem->rank,
                                      .rows = ROWS,
                                      .gram = problem->v};
    struct slc_row_solver solver;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_descent_create(2, problem->rank, &options, &solver, &err), &err);
    SLC_ASSERT_OK(solver.begin(solver.context, &mode, &err), &err);
    SLC_ASSERT_OK(solver.solve(solver.context, 1, first, count, problem->pitch,
                               problem->m + first * problem->pitch,
                               problem->x + first * problem->pitch, &err),
                  &err);
    slc_descent_destroy(&solver);
}

/* Does the same by ADMM. */
static void
admm_some(struct problem *problem, uint64_t first, uint64_t count, double tolerance, unsigned steps)
{
    struct slc_admm_options options = {
        .terms = problem->terms, .tolerance = tolerance, .steps = steps};
    const struct slc_row_mode mode = {.order = 3,
                                      .workers = 2,
                                      .iteration = 1,
                                      .rank = problem->rank,
                                      .rows = ROWS,
                                      .gram = problem->v};
    struct slc_row_solver solver;
    struct slc_error err = SLC_ERROR_INIT;

    options.dense = dense_for(1, problem->rank, ROWS);
    SLC_ASSERT_OK(slc_admm_create(2, problem->rank, &options, &solver, &err), &err);
    SLC_ASSERT_OK(solver.begin(solver.context, &mode, &err), &err);
    SLC_ASSERT_OK(solver.solve(solver.context, 1, first, count, problem->pitch,
                               problem->m + first * problem->pitch,
                               problem->x + first * problem->pitch, &err),
                  &err);
    slc_admm_destroy(&solver);
    slc_dense_destroy(options.dense);
}

/* Returns the objective of a row. */
static double objective(const struct problem *problem, const double *m, const double *x)
{
    const struct slc_row_terms *terms = &problem->terms[0];
    double sum = 0.0;

    for (uint32_t r = 0; r < problem->rank; r++) {
        double product = terms->ridge * x[r];

        for (uint32_t s = 0; s < problem->rank; s++) {
            product += problem->v[r * problem->rank + s] * x[s];
        }
        sum += x[r] * (product / 2 - m[r]) + terms->l1 * fabs(x[r]);
    }
    return sum;
}

/* Finds the minimum of a row of a nonnegative problem: for every set of positive numbers, solves
 * the equations of these numbers, and keeps the best solution without negative numbers. */
static double exact_minimum(const struct problem *problem, const double *m, double *best)
{
    const uint32_t rank = problem->rank;
    double least = INFINITY;

    for (unsigned set = 0; set < 1U << rank; set++) {
        double a[5 * 5], b[5], x[5] = {0};
        lapack_int pivots[5], index[5], count = 0;
        bool feasible = true;

        for (uint32_t r = 0; r < rank; r++) {
            if ((set >> r & 1U) != 0) {
                index[count++] = (lapack_int)r;
            }
        }
        for (lapack_int i = 0; i < count; i++) {
            b[i] = m[index[i]] - problem->terms[0].l1;
            for (lapack_int j = 0; j < count; j++) {
                a[i * count + j] = problem->v[(uint32_t)index[i] * rank + (uint32_t)index[j]] +
                                   (i == j ? problem->terms[0].ridge : 0.0);
            }
        }
        if (count > 0) {
            CU_ASSERT_EQUAL(LAPACKE_dgesv(LAPACK_ROW_MAJOR, count, 1, a, count, pivots, b, 1), 0);
        }
        for (lapack_int i = 0; i < count; i++) {
            feasible = feasible && b[i] >= 0.0;
            x[index[i]] = b[i];
        }
        if (feasible && objective(problem, m, x) < least) {
            least = objective(problem, m, x);
            memcpy(best, x, rank * sizeof *x);
        }
    }
    return least;
}

static void check_exact(uint32_t rank, double l1, double ridge)
{
    struct problem problem;

    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        make_problem(&problem, rank);
        problem.terms[0] = (struct slc_row_terms){.nonnegative = true, .l1 = l1, .ridge = ridge};
        solve_some(&problem, 0, ROWS, 0.0, 5000);
        for (uint32_t i = 0; i < ROWS; i++) {
            const double *x = problem.x + i * problem.pitch;
            double best[5];

            (void)exact_minimum(&problem, problem.m + i * problem.pitch, best);
            for (uint32_t r = 0; r < rank; r++) {
                CU_ASSERT_TRUE(fabs(x[r] - best[r]) <= 1e-9);
                CU_ASSERT_TRUE(x[r] >= 0.0);
            }
        }
    }
    (void)slc_cpu_force_instruction_set(NULL);
}

static void solves_exactly(void)
{
    for (uint32_t rank = 1; rank <= 5; rank++) {
        check_exact(rank, 0.0, 0.0);
        check_exact(rank, 0.3, 0.5);
    }
}

/* With a diagonal V, the solution is a soft threshold, cut at the bounds. */
static void thresholds_diagonal_systems(void)
{
    struct problem problem;

    make_problem(&problem, 9);
    for (uint32_t r = 0; r < 9; r++) {
        for (uint32_t s = 0; s < 9; s++) {
            problem.v[r * 9 + s] = r == s ? r + 1.0 : 0.0;
        }
    }
    problem.terms[0] =
        (struct slc_row_terms){.l1 = 0.5, .bounded = true, .low = -0.2, .high = 0.75};
    solve_some(&problem, 0, ROWS, 0.0, 10);
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t r = 0; r < 9; r++) {
            const double m = problem.m[i * problem.pitch + r];
            const double soft = copysign(fmax(fabs(m) - 0.5, 0.0), m) / (r + 1.0);
            const double x = problem.x[i * problem.pitch + r];

            CU_ASSERT_TRUE(fabs(x - fmin(fmax(soft, -0.2), 0.75)) <= 1e-15);
            CU_ASSERT_TRUE(x >= -0.2 && x <= 0.75);
        }
    }
}

/* No sweep raises the objective of a row, for any start. */
static void never_raises_the_objective(void)
{
    struct problem problem;

    make_problem(&problem, 33);
    problem.terms[0] = (struct slc_row_terms){.nonnegative = true, .l1 = 0.1};
    for (unsigned sweep = 0; sweep < 20; sweep++) {
        double before[ROWS];

        for (uint32_t i = 0; i < ROWS; i++) {
            before[i] =
                objective(&problem, problem.m + i * problem.pitch, problem.x + i * problem.pitch);
        }
        solve_some(&problem, 0, ROWS, 1e-6, 1);
        for (uint32_t i = 0; i < ROWS; i++) {
            const double now =
                objective(&problem, problem.m + i * problem.pitch, problem.x + i * problem.pitch);

            CU_ASSERT_TRUE(now <= before[i] + 1e-12 * fabs(before[i]));
        }
    }
}

/* A row has the same bits alone, in any block, and with any other rows. */
static void rows_are_independent(void)
{
    static const uint32_t ranks[] = {1, 7, 16, 64, 70};

    for (size_t k = 0; k < SLC_COUNT(ranks); k++) {
        struct problem all, parts;

        make_problem(&all, ranks[k]);
        all.terms[0] = (struct slc_row_terms){.nonnegative = true};
        parts = all;
        solve_some(&all, 0, ROWS, 1e-6, 50);
        for (uint64_t first = 0, count = 1; first < ROWS; first += count, count += 3) {
            count = first + count > ROWS ? ROWS - first : count;
            solve_some(&parts, first, count, 1e-6, 50);
        }
        CU_ASSERT_EQUAL(memcmp(all.x, parts.x, sizeof all.x), 0);
    }
}

/* A component that is zero in another mode keeps its numbers, within the constraints. */
static void keeps_components_without_effect(void)
{
    struct problem problem;

    make_problem(&problem, 4);
    for (uint32_t s = 0; s < 4; s++) {
        problem.v[2 * 4 + s] = problem.v[s * 4 + 2] = 0.0;
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        problem.m[i * problem.pitch + 2] = 0.0;
        problem.x[i * problem.pitch + 2] = (double)i - 5.0;
    }
    problem.terms[0] = (struct slc_row_terms){.nonnegative = true};
    solve_some(&problem, 0, ROWS, 1e-6, 50);
    for (uint32_t i = 0; i < ROWS; i++) {
        CU_ASSERT_EQUAL(problem.x[i * problem.pitch + 2], fmax((double)i - 5.0, 0.0));
    }
}

/* ADMM finds the minima that coordinate descent finds, with bounds and an l1 penalty. */
static void admm_finds_the_same_minima(void)
{
    static const uint32_t ranks[] = {1, 6, 16, 66};

    for (size_t k = 0; k < SLC_COUNT(ranks); k++) {
        struct problem descent, admm;
        double worst = 0.0;

        make_problem(&descent, ranks[k]);
        descent.terms[0] = (struct slc_row_terms){
            .l1 = 0.05, .ridge = 0.1, .bounded = true, .low = -0.01, .high = 0.2};
        admm = descent;
        solve_some(&descent, 0, ROWS, 0.0, 5000);
        admm_some(&admm, 0, ROWS, 1e-24, 20000);
        for (uint32_t i = 0; i < ROWS; i++) {
            for (uint32_t r = 0; r < ranks[k]; r++) {
                const uint32_t at = i * admm.pitch + r;

                worst = fmax(worst, fabs(admm.x[at] - descent.x[at]));
                CU_ASSERT_TRUE(admm.x[at] >= -0.01 && admm.x[at] <= 0.2);
            }
        }
        CU_ASSERT_TRUE(worst <= 1e-8);
    }
}

/* Rows on the simplex: the slope is the same for all positive numbers of a row, and not smaller for
 * the zeros. */
static void admm_solves_on_the_simplex(void)
{
    enum { R = 12 };
    struct problem problem;

    make_problem(&problem, R);
    problem.terms[0] = (struct slc_row_terms){.simplex = true};
    admm_some(&problem, 0, ROWS, 1e-24, 20000);
    for (uint32_t i = 0; i < ROWS; i++) {
        const double *x = problem.x + i * problem.pitch;
        double slope[R], level = INFINITY, sum = 0.0;

        for (uint32_t r = 0; r < R; r++) {
            slope[r] = -problem.m[i * problem.pitch + r];
            for (uint32_t s = 0; s < R; s++) {
                slope[r] += problem.v[r * R + s] * x[s];
            }
            level = fmin(level, slope[r]);
            sum += x[r];
            CU_ASSERT_TRUE(x[r] >= 0.0);
        }
        CU_ASSERT_TRUE(fabs(sum - 1.0) <= 1e-14);
        for (uint32_t r = 0; r < R; r++) {
            CU_ASSERT_TRUE(x[r] == 0.0 || slope[r] - level <= 1e-7);
        }
    }
}

/* A row that satisfies the constraints never ends with a larger objective, and has the same bits in
 * any block. */
static void admm_never_raises_the_objective(void)
{
    struct problem problem, parts;
    double before[ROWS];

    make_problem(&problem, 20);
    problem.terms[0] = (struct slc_row_terms){.nonnegative = true, .l1 = 0.1};
    parts = problem;
    for (uint32_t i = 0; i < ROWS; i++) {
        before[i] =
            objective(&problem, problem.m + i * problem.pitch, problem.x + i * problem.pitch);
    }
    admm_some(&problem, 0, ROWS, 1e-6, 2);
    for (uint32_t i = 0; i < ROWS; i++) {
        CU_ASSERT_TRUE(objective(&problem, problem.m + i * problem.pitch,
                                 problem.x + i * problem.pitch) <= before[i]);
    }
    for (uint64_t first = 0, count = 1; first < ROWS; first += count, count += 3) {
        count = first + count > ROWS ? ROWS - first : count;
        admm_some(&parts, first, count, 1e-6, 2);
    }
    CU_ASSERT_EQUAL(memcmp(problem.x, parts.x, sizeof problem.x), 0);
}

/* Solves a problem whose consecutive rows are coupled; the rows have the scales 2, 1 and 1/4. */
static void smooth_some(struct problem *problem, double tolerance, unsigned steps)
{
    const uint32_t rank = problem->rank;
    double left[RANK_MAX], start[RANK_MAX], right[RANK_MAX];
    double *scratch = must(calloc(slc_smooth_elements(ROWS, rank), sizeof *scratch));
    const struct slc_solver solver = {.rank = rank, .left = left, .start = start, .right = right};
    struct slc_matrix m, x;
    struct slc_error err = SLC_ERROR_INIT;
    const struct slc_smooth_problem smooth = {.terms = problem->terms,
                                              .gram = problem->v,
                                              .solver = &solver,
                                              .mttkrp = &m,
                                              .factor = &x,
                                              .tolerance = tolerance,
                                              .steps = steps};

    random_matrix(&m, SLC_F64, ROWS, rank);
    empty_matrix(&x, &m);
    for (uint32_t r = 0; r < rank; r++) {
        left[r] = 2.0;
        start[r] = 1.0;
        right[r] = 0.25;
        for (uint32_t i = 0; i < ROWS; i++) {
            slc_matrix_set(&m, i, r, problem->m[i * problem->pitch + r] / 2.0);
            slc_matrix_set(&x, i, r, problem->x[i * problem->pitch + r]);
        }
    }
    SLC_ASSERT_OK(slc_smooth_solve(&smooth, scratch, &err), &err);
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t r = 0; r < rank; r++) {
            problem->x[i * problem->pitch + r] = slc_matrix_get(&x, i, r) * 4.0;
        }
    }
    slc_matrix_destroy(&m);
    slc_matrix_destroy(&x);
    free(scratch);
}

/* Returns the slope of the smooth part of the objective: X V + ridge X + 2 smooth L X - M. */
static double coupled_slope(const struct problem *problem, uint32_t i, uint32_t r)
{
    const struct slc_row_terms *terms = &problem->terms[0];
    const double *row = problem->x + i * problem->pitch;
    double sum = terms->ridge * row[r] - problem->m[i * problem->pitch + r];

    for (uint32_t s = 0; s < problem->rank; s++) {
        sum += problem->v[r * problem->rank + s] * row[s];
    }
    if (i > 0) {
        sum += 2.0 * terms->smooth * (row[r] - row[(int64_t)r - (int64_t)problem->pitch]);
    }
    if (i + 1 < ROWS) {
        sum += 2.0 * terms->smooth * (row[r] - row[r + problem->pitch]);
    }
    return sum;
}

/* The coupled system is solved exactly; a large penalty makes all rows equal. */
static void smooth_solves_the_coupled_system(void)
{
    static const uint32_t ranks[] = {1, 5, 16, 66};

    for (size_t k = 0; k < SLC_COUNT(ranks); k++) {
        struct problem problem;

        make_problem(&problem, ranks[k]);
        problem.terms[0] = (struct slc_row_terms){.smooth = 3.0, .ridge = 0.5};
        smooth_some(&problem, 0.0, 0);
        for (uint32_t i = 0; i < ROWS; i++) {
            for (uint32_t r = 0; r < ranks[k]; r++) {
                CU_ASSERT_TRUE(fabs(coupled_slope(&problem, i, r)) <= 1e-11);
            }
        }
        problem.terms[0].smooth = 1e9;
        smooth_some(&problem, 0.0, 0);
        CU_ASSERT_TRUE(fabs(problem.x[0] - problem.x[(ROWS - 1) * problem.pitch]) <= 1e-6);
    }
}

/* With bounds, the slope is zero between the bounds, and points out of them at a bound. */
static void smooth_and_bounded(void)
{
    struct problem problem;

    make_problem(&problem, 8);
    problem.terms[0] = (struct slc_row_terms){.smooth = 0.5, .nonnegative = true};
    smooth_some(&problem, 1e-26, 50000);
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t r = 0; r < 8; r++) {
            const double x = problem.x[i * problem.pitch + r];
            const double at = coupled_slope(&problem, i, r);

            CU_ASSERT_TRUE(x >= 0.0);
            CU_ASSERT_TRUE(x > 0.0 ? fabs(at) <= 1e-8 : at >= -1e-8);
        }
    }
}

static void rejects_infinite_systems(void)
{
    const struct slc_row_terms terms = {.nonnegative = true};
    const struct slc_descent_options options = {&terms, 1e-6, 50};
    const double v[4] = {1.0, (double)NAN, (double)NAN, 1.0};
    const struct slc_row_mode mode = {.rank = 2, .gram = v};
    struct slc_row_solver solver;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_descent_create(1, 2, &options, &solver, &err), &err);
    CU_ASSERT_EQUAL(solver.begin(solver.context, &mode, &err), SLC_ERR_NUMERIC);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "NaN"));
    slc_descent_destroy(&solver);
    slc_descent_destroy(&solver);
}

SLC_SUITE(constraints)
{
    static const struct slc_test tests[] = {
        {"exact nonnegative solutions", solves_exactly},
        {"soft thresholds and bounds", thresholds_diagonal_systems},
        {"the objective never rises", never_raises_the_objective},
        {"rows do not depend on each other", rows_are_independent},
        {"components without effect keep their numbers", keeps_components_without_effect},
        {"ADMM: the same minima", admm_finds_the_same_minima},
        {"ADMM: rows on the simplex", admm_solves_on_the_simplex},
        {"ADMM: the objective never rises", admm_never_raises_the_objective},
        {"coupled rows", smooth_solves_the_coupled_system},
        {"coupled rows with bounds", smooth_and_bounded},
        {"infinite systems are errors", rejects_infinite_systems},
    };

    return slc_test_main("cpu: constraints", tests, SLC_COUNT(tests), argc, argv);
}
