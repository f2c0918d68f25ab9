/* Row solvers of Poisson models: multiplicative updates follow the formula and never increase the
 * objective; PDNR ends at the optimum, with the same bits for streamed rows. */
#include "base/random.h"
#include "row_fixture.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t ranks[] = {1, 3, 7, 16, 33, 64};
static const uint32_t counts[] = {1, 5, 200, 2500};

static struct slc_row_options poisson_options(enum slc_row_method method)
{
    return (struct slc_row_options){.method = method, .poisson = slc_row_poisson_defaults()};
}

/* Numbers in [low, 2 low + 1). */
static double *start_of(uint32_t rank, double low)
{
    double *x = row_numbers(slc_row_width(rank));

    for (uint32_t r = 0; r < rank; r++) {
        x[r] = low + (1.0 + low) * slc_random_f64(slc_test_seed(), 77, r);
    }
    return x;
}

/* Returns phi, computed by plain loops. */
static double *phi_of(const struct row_problem *row, const double *x)
{
    double *phi = row_numbers(row->width);

    for (uint32_t i = 0; i < row->nnz; i++) {
        const double *product = row->products + (uint64_t)i * row->width;
        double model = 0.0;

        for (uint32_t r = 0; r < row->rank; r++) {
            model += product[r] * x[r];
        }
        for (uint32_t r = 0; r < row->rank; r++) {
            phi[r] += row->values[i] / fmax(model, 1e-10) * product[r];
        }
    }
    return phi;
}

static double objective_of(const struct row_problem *row, const double *x)
{
    double objective = 0.0;

    for (uint32_t r = 0; r < row->rank; r++) {
        objective += x[r] * row->totals[r];
    }
    for (uint32_t i = 0; i < row->nnz; i++) {
        double model = 0.0;

        for (uint32_t r = 0; r < row->rank; r++) {
            model += row->products[(uint64_t)i * row->width + r] * x[r];
        }
        objective -= row->values[i] == 0.0 ? 0.0 : row->values[i] * log(model);
    }
    return objective;
}

static double violation_of(const struct row_problem *row, const double *x)
{
    double *phi = phi_of(row, x), violation = 0.0;

    for (uint32_t r = 0; r < row->rank; r++) {
        violation = fmax(violation, fabs(fmin(x[r], row->totals[r] - phi[r])));
    }
    free(phi);
    return violation;
}

static void check_formula(uint32_t rank, uint32_t nnz)
{
    struct row_problem row = row_problem(ROW_COUNTS, rank, nnz);
    struct slc_row_options options = poisson_options(SLC_ROW_METHOD_MU);
    double *x = start_of(rank, 0.1), *phi = phi_of(&row, x), *want = row_numbers(row.width);
    const double violation = violation_of(&row, x);
    uint64_t wrong = 0;

    options.poisson.inner = 1;
    struct slc_row_solver *solver = row_solver(&options, rank);
    for (uint32_t r = 0; r < rank; r++) {
        want[r] = x[r] * phi[r] / row.totals[r];
    }
    CU_ASSERT_EQUAL(solve_row(solver, &row, &(struct row_way){0}, x, NULL), 1);
    for (uint32_t r = 0; r < rank; r++) {
        wrong += !(fabs(x[r] - want[r]) <= 1e-12 * (nnz + 10) * want[r]);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    const struct slc_row_statistics counted = slc_row_solver_statistics(solver);

    CU_ASSERT_EQUAL(counted.rows, 1);
    CU_ASSERT_EQUAL(counted.traversals, 1);
    CU_ASSERT_EQUAL(counted.unconverged, 1);
    CU_ASSERT(fabs(counted.violation_first - violation) <= 1e-10 * (1.0 + violation));
    CU_ASSERT_EQUAL(counted.violation_last, counted.violation_first);
    const double objective = objective_of(&row, x), measured = measure_row(solver, &row, x);

    CU_ASSERT(fabs(measured - objective) <= 1e-12 * (1.0 + fabs(objective)) * (nnz + 10));
    slc_row_solver_destroy(solver);
    row_problem_free(&row);
    free(x);
    free(phi);
    free(want);
}

static void for_every_size(void (*check)(uint32_t rank, uint32_t nnz))
{
    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        for (size_t n = 0; n < SLC_COUNT(counts); n++) {
            check(ranks[r], counts[n]);
        }
    }
}

static void formulas_of_one_set(void)
{
    for_every_size(check_formula);
}

static void mu_is_the_formula(void)
{
    with_every_set(formulas_of_one_set);
}

static void check_decrease(uint32_t rank, uint32_t nnz)
{
    enum { UPDATES = 30 };
    struct row_problem row = row_problem(ROW_COUNTS, rank, nnz);
    struct slc_row_options options = poisson_options(SLC_ROW_METHOD_MU);
    double *x = start_of(rank, 0.1), *whole = start_of(rank, 0.1), objectives[UPDATES + 1];

    options.poisson.inner = UPDATES;
    options.poisson.tolerance = 0.0;
    struct slc_row_solver *solver = row_solver(&options, rank);
    (void)solve_row(solver, &row, &(struct row_way){0}, whole, NULL);
    solver->whole = NULL; /* the objective is computed between updates */
    const uint32_t traversals = solve_row(solver, &row, &(struct row_way){0}, x, objectives);

    CU_ASSERT_EQUAL(traversals, UPDATES);
    CU_ASSERT_EQUAL(memcmp(x, whole, rank * sizeof *x), 0);
    for (uint32_t i = 1; i <= traversals; i++) {
        CU_ASSERT(objectives[i] <= objectives[i - 1] + 1e-12 * fabs(objectives[i - 1]));
    }
    slc_row_solver_destroy(solver);
    row_problem_free(&row);
    free(x);
    free(whole);
}

static void mu_never_increases(void)
{
    for_every_size(check_decrease);
}

static void mu_releases_zeros(void)
{
    enum { RANK = 10 };
    struct row_problem row = row_problem(ROW_COUNTS, RANK, 50);
    struct slc_row_options options = poisson_options(SLC_ROW_METHOD_MU);
    unsigned char flags[2][2] = {{0xFF, 0xFF}, {0, 0}}; /* flags of rows 0 and 1 */
    double weights[RANK], *x = start_of(RANK, 0.1), *start = start_of(RANK, 0.1);

    options.poisson.flags[1] = &flags[0][0];
    options.poisson.inner = 1;
    for (uint32_t r = 0; r < RANK; r++) {
        weights[r] = 2.0 + r;
        x[r] *= 1e-3; /* so small that every phi exceeds its total */
    }
    x[2] = 0.0;
    x[9] = 1e-12;
    struct slc_row_solver *solver = row_solver(&options, RANK);
    const struct row_way way = {.weights = weights};

    (void)solve_row(solver, &row, &way, x, NULL);
    CU_ASSERT_EQUAL(x[2], 0.0);
    CU_ASSERT_EQUAL(flags[0][0], 0xFF);
    CU_ASSERT_EQUAL(flags[1][0], 0xFF);
    CU_ASSERT_EQUAL(flags[1][1], 0x03);

    /* Only elements that are flagged and almost zero move, by weight * offset. */
    flags[1][1] = 0x01;
    memset(x, 0, RANK * sizeof *x);
    x[1] = 0.3;
    x[3] = 1e-10 * weights[3];
    memcpy(start, x, RANK * sizeof *x);
    slc_row_solver_set_tolerance(solver, INFINITY); /* prevents updates */
    (void)solve_row(solver, &row, &way, x, NULL);
    for (uint32_t r = 0; r < RANK; r++) {
        const bool moves = r != 1 && r != 3 && r != 9;

        CU_ASSERT_EQUAL(x[r], moves ? 0.01 * weights[r] : start[r]);
    }
    /* phi is below its total for x that is large enough */
    for (uint32_t r = 0; r < RANK; r++) {
        x[r] = 1e6;
    }
    (void)solve_row(solver, &row, &way, x, NULL);
    CU_ASSERT_EQUAL(flags[1][0], 0);
    CU_ASSERT_EQUAL(flags[1][1], 0);
    slc_row_solver_destroy(solver);
    row_problem_free(&row);
    free(x);
    free(start);
}

/* Solves with up to `inner` updates; returns the solution. */
static double *solution_of(enum slc_row_method method,
                           const struct row_problem *row,
                           unsigned inner,
                           double tolerance,
                           double low,
                           const struct row_way *way,
                           struct slc_row_statistics *statistics,
                           uint32_t *traversals)
{
    struct slc_row_options options = poisson_options(method);
    double *x = start_of(row->rank, low);

    options.poisson.inner = inner;
    options.poisson.tolerance = tolerance;
    struct slc_row_solver *solver = row_solver(&options, row->rank);
    const uint32_t done = solve_row(solver, row, way, x, NULL);

    if (traversals != NULL) {
        *traversals = done;
    }
    if (statistics != NULL) {
        *statistics = slc_row_solver_statistics(solver);
    }
    slc_row_solver_destroy(solver);
    return x;
}

static void solved_rows_stay(void)
{
    static const enum slc_row_method methods[] = {SLC_ROW_METHOD_MU, SLC_ROW_METHOD_PDNR};
    struct row_problem row = row_problem(ROW_COUNTS, 7, 60);
    const struct row_way way = {0};

    for (size_t m = 0; m < SLC_COUNT(methods); m++) {
        struct slc_row_statistics counted;
        uint32_t traversals;
        double *start = start_of(7, 0.1);
        double *x = solution_of(methods[m], &row, 10, 1e6, 0.1, &way, &counted, &traversals);

        CU_ASSERT_EQUAL(memcmp(x, start, 7 * sizeof *x), 0);
        CU_ASSERT_EQUAL(traversals, 1);
        CU_ASSERT_EQUAL(counted.unconverged, 0);
        CU_ASSERT(counted.violation_first > 0.0);
        free(x);
        free(start);
    }
    row_problem_free(&row);
}

static void check_optimum(uint32_t rank, uint32_t nnz)
{
    static const double lows[] = {0.1, 1e-8, 100.0};
    struct row_problem row = row_problem(ROW_COUNTS, rank, nnz);
    const struct row_way way = {0};
    /* MU needs no line search; after many iterations, its result is the independent optimum */
    double *slow = solution_of(SLC_ROW_METHOD_MU, &row, 3000, 1e-9, 0.1, &way, NULL, NULL);
    const double best = objective_of(&row, slow);

    for (size_t l = 0; l < SLC_COUNT(lows); l++) {
        struct slc_row_statistics counted;
        double *x =
            solution_of(SLC_ROW_METHOD_PDNR, &row, 200, 1e-7, lows[l], &way, &counted, NULL);
        const double objective = objective_of(&row, x);

        CU_ASSERT(counted.violation_last < 1e-7);
        CU_ASSERT(violation_of(&row, x) < 1e-6);
        CU_ASSERT(objective <= best + 1e-9 * fabs(best));
        for (uint32_t r = 0; r < rank; r++) {
            CU_ASSERT(x[r] >= 0.0);
        }
        free(x);
    }
    free(slow);
    row_problem_free(&row);
}

static void optima_of_one_set(void)
{
    static const uint32_t few[] = {5, 200};

    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        for (size_t n = 0; n < SLC_COUNT(few); n++) {
            check_optimum(ranks[r], few[n]);
        }
    }
}

static void pdnr_ends_at_the_optimum(void)
{
    with_every_set(optima_of_one_set);
}

static void check_streamed(uint32_t rank, uint32_t nnz)
{
    static const double lows[] = {0.1, 1e-6, 1000.0};
    struct row_problem row = row_problem(ROW_COUNTS, rank, nnz);

    for (size_t l = 0; l < SLC_COUNT(lows); l++) {
        const struct row_way memory = {0}, streamed = {.streamed = true};
        uint32_t more, fewer;
        double *x = solution_of(SLC_ROW_METHOD_PDNR, &row, 20, 1e-6, lows[l], &memory, NULL, &more);
        double *y =
            solution_of(SLC_ROW_METHOD_PDNR, &row, 20, 1e-6, lows[l], &streamed, NULL, &fewer);

        CU_ASSERT_EQUAL(memcmp(x, y, rank * sizeof *x), 0);
        CU_ASSERT(fewer <= more);
        CU_ASSERT(fewer <= 40); /* at most two traversals per update */
        free(x);
        free(y);
    }
    row_problem_free(&row);
}

static void streamed_rows_have_the_same_bits(void)
{
    for_every_size(check_streamed);
}

static void first_iterations_are_short(void)
{
    struct row_problem row = row_problem(ROW_COUNTS, 16, 100);
    const struct row_way first = {.iteration = 1, .streamed = true}, later = {.streamed = true};
    uint32_t traversals, more;
    double *x = solution_of(SLC_ROW_METHOD_PDNR, &row, 10, 0.0, 1e-3, &first, NULL, &traversals);
    double *y = solution_of(SLC_ROW_METHOD_PDNR, &row, 10, 0.0, 1e-3, &later, NULL, &more);

    CU_ASSERT(traversals <= 4);
    CU_ASSERT(more > 10);
    free(x);
    free(y);
    row_problem_free(&row);
}

static void pieces_agree(void)
{
    static const enum slc_row_method methods[] = {SLC_ROW_METHOD_MU, SLC_ROW_METHOD_PDNR};
    struct row_problem row = row_problem(ROW_COUNTS, 16, 1000);

    for (size_t m = 0; m < SLC_COUNT(methods); m++) {
        const struct row_way one = {0}, many = {.piece = 77};
        double *x = solution_of(methods[m], &row, 5, 1e-4, 0.1, &one, NULL, NULL);
        double *y = solution_of(methods[m], &row, 5, 1e-4, 0.1, &many, NULL, NULL);

        for (uint32_t r = 0; r < 16; r++) {
            CU_ASSERT(fabs(x[r] - y[r]) <= 1e-9 * (1.0 + fabs(x[r])));
        }
        free(x);
        free(y);
    }
    row_problem_free(&row);
}

static void empty_rows_become_zero(void)
{
    static const enum slc_row_method methods[] = {SLC_ROW_METHOD_MU, SLC_ROW_METHOD_PDNR};
    struct row_problem row = row_problem(ROW_COUNTS, 5, 0);

    for (size_t m = 0; m < SLC_COUNT(methods); m++) {
        struct slc_row_statistics counted;
        double *x =
            solution_of(methods[m], &row, 10, 1e-4, 0.1, &(struct row_way){0}, &counted, NULL);

        for (uint32_t r = 0; r < 5; r++) {
            CU_ASSERT_EQUAL(x[r], 0.0);
        }
        CU_ASSERT_EQUAL(counted.rows, 1);
        free(x);
    }
    row_problem_free(&row);
}

static void rows_of_zeros_recover(void)
{
    struct row_problem row = row_problem(ROW_COUNTS, 7, 60);
    struct slc_row_options options = poisson_options(SLC_ROW_METHOD_PDNR);
    double *x = row_numbers(8);

    options.poisson.inner = 100;
    struct slc_row_solver *solver = row_solver(&options, 7);

    (void)solve_row(solver, &row, &(struct row_way){0}, x, NULL);
    CU_ASSERT(violation_of(&row, x) < 1e-3);
    /* a column that is zero in another factor is in no product */
    for (uint32_t i = 0; i < row.nnz; i++) {
        row.products[i * 8 + 3] = 0.0;
    }
    row.totals[3] = 0.0;
    (void)solve_row(solver, &row, &(struct row_way){0}, x, NULL);
    for (uint32_t r = 0; r < 7; r++) {
        CU_ASSERT(isfinite(x[r]));
    }
    slc_row_solver_destroy(solver);
    row_problem_free(&row);
    free(x);
}

static void wrong_options_are_rejected(void)
{
    struct slc_row_options options = poisson_options(SLC_ROW_METHOD_MU);
    struct slc_row_solver *solver = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    const struct slc_error empty = SLC_ERROR_INIT;

    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 0, 1, &solver, &err), SLC_ERR_USAGE, &err,
                     "rank 0");
    err = empty;
    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 3, 0, &solver, &err), SLC_ERR_USAGE, &err,
                     "0 workers");
    options.poisson.tolerance = NAN;
    err = empty;
    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 3, 1, &solver, &err), SLC_ERR_USAGE, &err,
                     "tolerance");
    options.method = SLC_ROW_METHODS;
    err = empty;
    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 3, 1, &solver, &err), SLC_ERR_USAGE, &err,
                     "method");
    CU_ASSERT_PTR_NULL(solver);
    slc_row_solver_destroy(NULL);

    struct slc_row_mode mode = {.order = 3, .workers = 3, .rank = 4, .rows = 2};

    options = poisson_options(SLC_ROW_METHOD_MU);
    solver = row_solver(&options, 4);
    err = empty;
    SLC_ASSERT_FAILS(solver->begin(solver->context, &mode, &err), SLC_ERR_USAGE, &err, "2 workers");
    slc_row_solver_destroy(solver);
}

SLC_SUITE(row_poisson)
{
    static const struct slc_test tests[] = {
        {"a multiplicative update is the formula", mu_is_the_formula},
        {"multiplicative updates never increase the objective", mu_never_increases},
        {"inadmissible zeros are released", mu_releases_zeros},
        {"rows that satisfy the tolerance stay", solved_rows_stay},
        {"PDNR ends at the optimum", pdnr_ends_at_the_optimum},
        {"streamed rows have the same bits", streamed_rows_have_the_same_bits},
        {"the first outer iteration is short", first_iterations_are_short},
        {"rows in pieces agree", pieces_agree},
        {"empty rows become zero", empty_rows_become_zero},
        {"rows of zeros recover", rows_of_zeros_recover},
        {"wrong options are rejected", wrong_options_are_rejected},
    };

    return slc_test_main("cpu: row Poisson", tests, SLC_COUNT(tests), argc, argv);
}
