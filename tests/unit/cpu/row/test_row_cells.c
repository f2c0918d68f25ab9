/* Row solvers of completion: normal equations are solved as a dense solver does, also with fixed
 * columns and singular; coordinate descent and Newton converge to the same solution. */
#include "base/matrix.h"
#include "base/random.h"
#include "cpu/dense/pseudo_inverse.h"
#include "row_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t ranks[] = {1, 3, 7, 16, 33, 64};

static struct slc_row_options cell_options(enum slc_row_method method)
{
    return (struct slc_row_options){.method = method,
                                    .cells = {.inner = 3000, .tolerance = 1e-13},
                                    .loss = slc_row_loss(SLC_LOSS_LS, 0.0)};
}

static double *start_of(uint32_t rank)
{
    double *x = row_numbers(slc_row_width(rank));

    for (uint32_t r = 0; r < rank; r++) {
        x[r] = slc_random_f64(slc_test_seed(), 77, r) - 0.5;
    }
    return x;
}

/* The largest derivative of the objective in a free element. */
static double gradient_of(const struct row_problem *row,
                          const double *ridge,
                          const unsigned char *fixed,
                          double scale,
                          const double *x)
{
    double worst = 0.0;

    for (uint32_t r = 0; r < row->rank; r++) {
        double gradient = ridge == NULL ? 0.0 : ridge[r] * scale * x[r];

        for (uint32_t i = 0; i < row->nnz; i++) {
            const double *product = row->products + (uint64_t)i * row->width;
            double model = 0.0;

            for (uint32_t s = 0; s < row->rank; s++) {
                model += product[s] * x[s];
            }
            gradient += (model - row->values[i]) * product[r];
        }
        if (fixed == NULL || fixed[r] == 0) {
            worst = fmax(worst, fabs(gradient));
        }
    }
    return worst;
}

static void
check_minimum(enum slc_row_method method, uint32_t rank, uint32_t nnz, bool by_count, bool fixes)
{
    struct row_problem row = row_problem(ROW_REALS, rank, nnz);
    struct slc_row_options options = cell_options(method);
    double *x = start_of(rank), *start = start_of(rank), ridge[64];
    unsigned char fixed[64] = {0};

    for (uint32_t r = 0; r < rank; r++) {
        ridge[r] = 0.1 + 0.01 * r;
        fixed[r] = fixes && r % 3 == 0;
    }
    options.cells.ridge[1] = ridge;
    options.cells.ridge_by_count = by_count;
    options.cells.fixed[1] = fixes ? fixed : NULL;
    struct slc_row_solver *solver = row_solver(&options, rank);

    (void)solve_row(solver, &row, &(struct row_way){0}, x, NULL);
    CU_ASSERT(gradient_of(&row, ridge, fixed, by_count ? row.nnz : 1.0, x) <= 1e-9);
    for (uint32_t r = 0; r < rank; r++) {
        CU_ASSERT(fixed[r] == 0 || x[r] == start[r]);
    }
    CU_ASSERT_EQUAL(slc_row_solver_statistics(solver).singular, 0);
    CU_ASSERT_EQUAL(slc_row_solver_statistics(solver).unconverged, 0);
    slc_row_solver_destroy(solver);
    row_problem_free(&row);
    free(x);
    free(start);
}

static void minima_of_one_set(void)
{
    static const enum slc_row_method methods[] = {SLC_ROW_METHOD_ALS, SLC_ROW_METHOD_CCD,
                                                  SLC_ROW_METHOD_NEWTON};

    for (size_t m = 0; m < SLC_COUNT(methods); m++) {
        for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
            for (unsigned kind = 0; kind < 4; kind++) {
                const bool by_count = kind % 2 == 1, fixes = kind / 2 == 1;

                check_minimum(methods[m], ranks[r], 3 * ranks[r] + 20, by_count, fixes);
                check_minimum(methods[m], ranks[r], ranks[r] / 2 + 1, by_count, fixes);
                check_minimum(methods[m], ranks[r], (ranks[r] + 3) / 4, by_count, fixes);
            }
        }
    }
}

static void every_method_minimizes(void)
{
    with_every_set(minima_of_one_set);
}

/* Rows in several pieces; of these, coordinate descent solves the normal equations. */
static void pieces_agree(void)
{
    struct row_problem row = row_problem(ROW_REALS, 16, 2500);

    for (int m = SLC_ROW_METHOD_ALS; m <= SLC_ROW_METHOD_NEWTON; m++) {
        struct slc_row_options options = cell_options((enum slc_row_method)m);
        struct slc_row_solver *solver = row_solver(&options, 16);
        double *x = start_of(16);

        (void)solve_row(solver, &row, &(struct row_way){.piece = 333}, x, NULL);
        CU_ASSERT(gradient_of(&row, NULL, NULL, 0.0, x) <= 1e-8);
        slc_row_solver_destroy(solver);
        free(x);
    }
    row_problem_free(&row);
}

/* The solution with the least norm, by the pseudo-inverse of the products. */
static void check_singular(uint32_t rank, uint32_t nnz, const unsigned char *fixed, bool repeats)
{
    struct row_problem row = row_problem(ROW_REALS, rank, nnz);
    struct slc_row_options options = cell_options(SLC_ROW_METHOD_ALS);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix inverse;
    double *x = start_of(rank), *start = start_of(rank);
    uint32_t independent, free_columns = 0, column[64];
    double worst = 0.0;

    options.cells.fixed[1] = fixed;
    for (uint32_t r = 0; r < rank; r++) {
        if (fixed == NULL || fixed[r] == 0) {
            column[free_columns++] = r;
        }
    }
    for (uint32_t i = 0; repeats && i < nnz; i++) { /* columns 1 and 2 are equal */
        row.products[i * row.width + 2] = row.products[i * row.width + 1];
    }
    SLC_ASSERT_OK(slc_matrix_create(&inverse, SLC_F64, nnz, free_columns, &err), &err);
    for (uint32_t i = 0; i < nnz; i++) {
        for (uint32_t c = 0; c < free_columns; c++) {
            slc_matrix_set(&inverse, i, c, row.products[i * row.width + column[c]]);
        }
    }
    SLC_ASSERT_OK(slc_pseudo_inverse(&inverse, &independent, &err), &err);
    struct slc_row_solver *solver = row_solver(&options, rank);

    (void)solve_row(solver, &row, &(struct row_way){0}, x, NULL);
    CU_ASSERT_EQUAL(slc_row_solver_statistics(solver).singular, 1);
    for (uint32_t c = 0; c < free_columns; c++) {
        double want = 0.0;

        for (uint32_t i = 0; i < nnz; i++) {
            double value = row.values[i];

            for (uint32_t r = 0; r < rank; r++) {
                value -= fixed != NULL && fixed[r] != 0 ? row.products[i * row.width + r] * start[r]
                                                        : 0.0;
            }
            want += slc_matrix_get(&inverse, i, c) * value;
        }
        worst = fmax(worst, fabs(x[column[c]] - want));
    }
    CU_ASSERT(worst <= 1e-7);
    slc_matrix_destroy(&inverse);
    slc_row_solver_destroy(solver);
    row_problem_free(&row);
    free(x);
    free(start);
}

static void singular_rows_have_the_least_norm(void)
{
    static const unsigned char fixed[16] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 1};

    check_singular(3, 1, NULL, false);
    check_singular(16, 5, NULL, false);
    check_singular(33, 20, NULL, false);
    check_singular(16, 5, fixed, false);
    check_singular(7, 40, NULL, true);
}

static void empty_rows_become_zero(void)
{
    static const unsigned char fixed[5] = {0, 1, 0, 0, 1};
    struct row_problem row = row_problem(ROW_REALS, 5, 0);

    for (int m = SLC_ROW_METHOD_ALS; m <= SLC_ROW_METHOD_NEWTON; m++) {
        struct slc_row_options options = cell_options((enum slc_row_method)m);
        double *x = start_of(5), *start = start_of(5);

        options.cells.fixed[1] = fixed;
        struct slc_row_solver *solver = row_solver(&options, 5);

        (void)solve_row(solver, &row, &(struct row_way){0}, x, NULL);
        for (uint32_t r = 0; r < 5; r++) {
            CU_ASSERT_EQUAL(x[r], fixed[r] != 0 ? start[r] : 0.0);
        }
        CU_ASSERT_EQUAL(slc_row_solver_statistics(solver).rows, 1);
        slc_row_solver_destroy(solver);
        free(x);
        free(start);
    }
    row_problem_free(&row);
}

static void measures_are_residuals(void)
{
    struct row_problem row = row_problem(ROW_REALS, 7, 50);
    struct slc_row_options options = cell_options(SLC_ROW_METHOD_ALS);
    struct slc_row_solver *solver = row_solver(&options, 7);
    double *x = start_of(7), want[2] = {0.0, 0.0}, got[2] = {1.0, 2.0};
    const struct slc_row about = {.nnz = 50, .x = x};
    const struct slc_row_piece piece = {50, row.width, row.values, row.products};

    for (uint32_t i = 0; i < 50; i++) {
        double residual = row.values[i];

        for (uint32_t r = 0; r < 7; r++) {
            residual -= row.products[i * row.width + r] * x[r];
        }
        want[0] += residual * residual;
        want[1] += fabs(residual);
    }
    solver->measure(solver->context, 0, &about, &piece, got);
    solver->measure(solver->context, 0, &about, NULL, got);
    CU_ASSERT_DOUBLE_EQUAL(got[0], 1.0 + want[0], 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(got[1], 2.0 + want[1], 1e-12);
    slc_row_solver_destroy(solver);
    row_problem_free(&row);
    free(x);
}

static void wrong_options_are_rejected(void)
{
    struct slc_row_options options = cell_options(SLC_ROW_METHOD_CCD);
    struct slc_row_solver *solver = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    const struct slc_error empty = SLC_ERROR_INIT;
    double ridge[2] = {0.0, NAN};

    options.cells.ridge[2] = ridge;
    err = empty;
    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 2, 1, &solver, &err), SLC_ERR_USAGE, &err,
                     "mode 3, component 2");
    ridge[1] = -1.0;
    err = empty;
    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 2, 1, &solver, &err), SLC_ERR_USAGE, &err,
                     "-1");
    ridge[1] = 0.0;
    options.cells.inner = 0;
    err = empty;
    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 2, 1, &solver, &err), SLC_ERR_USAGE, &err,
                     "1 step");
    options = cell_options(SLC_ROW_METHOD_NEWTON);
    options.loss.evaluate = NULL;
    err = empty;
    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 2, 1, &solver, &err), SLC_ERR_USAGE, &err,
                     "loss");
}

/* A solver that takes two gradient steps of length 0.01. */
struct steps {
    unsigned begun, started, ended;
};

static enum slc_status
steps_begin(void *context, const struct slc_row_mode *mode, struct slc_error *err)
{
    struct steps *steps = context;

    steps->begun++;
    return mode->rank == 3 ? SLC_OK : slc_fail(err, SLC_ERR_USAGE, "a rank other than 3");
}

static uint64_t steps_numbers(void *context, uint32_t rank)
{
    (void)context;
    return rank;
}

static void steps_start(void *context, unsigned worker, struct slc_row *row)
{
    struct steps *steps = context;

    (void)worker;
    steps->started++;
    row->memory[0] = 0.01;
}

static void steps_add(void *context,
                      unsigned worker,
                      const struct slc_row *row,
                      const struct slc_row_piece *piece,
                      double *sums)
{
    (void)context;
    (void)worker;
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const double *product = piece->products + (uint64_t)i * piece->pitch;
        double residual = piece->values[i];

        for (uint32_t r = 0; r < 3; r++) {
            residual -= product[r] * row->x[r];
        }
        for (uint32_t r = 0; r < 3; r++) {
            sums[r] += residual * product[r];
        }
    }
}

static enum slc_row_next
steps_step(void *context, unsigned worker, struct slc_row *row, const double *sums)
{
    (void)context;
    (void)worker;
    for (uint32_t r = 0; r < 3; r++) {
        row->x[r] += row->memory[0] * sums[r];
    }
    return row->traversals < 2 ? SLC_ROW_AGAIN : SLC_ROW_DONE;
}

static void steps_end(void *context)
{
    ((struct steps *)context)->ended++;
}

static void given_solvers_are_called(void)
{
    struct row_problem row = row_problem(ROW_REALS, 3, 40);
    struct steps steps = {0};
    struct slc_row_solver given = {.name = "steps",
                                   .input = SLC_ROW_NONZEROS,
                                   .context = &steps,
                                   .begin = steps_begin,
                                   .sums = steps_numbers,
                                   .memory = steps_numbers,
                                   .start = steps_start,
                                   .add = steps_add,
                                   .step = steps_step,
                                   .end = steps_end};
    const struct slc_row_options options = {.method = SLC_ROW_METHOD_GIVEN, .given = &given};
    struct slc_row_solver *solver = row_solver(&options, 3);
    double *x = start_of(3), objectives[3];
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_STRING_EQUAL(solver->name, "steps");
    CU_ASSERT_EQUAL(solve_row(solver, &row, &(struct row_way){0}, x, objectives), 2);
    solver->end(solver->context);
    CU_ASSERT(objectives[1] < objectives[0]); /* objective of squared residuals */
    CU_ASSERT(objectives[2] < objectives[1]);
    CU_ASSERT_EQUAL(steps.begun, 1);
    CU_ASSERT_EQUAL(steps.started, 1);
    CU_ASSERT_EQUAL(steps.ended, 1);
    CU_ASSERT_EQUAL(slc_row_solver_statistics(solver).rows, 1);
    CU_ASSERT_EQUAL(slc_row_solver_statistics(solver).traversals, 2);
    slc_row_solver_destroy(solver);

    given.step = NULL;
    SLC_ASSERT_FAILS(slc_row_solver_create(&options, 3, 1, &solver, &err), SLC_ERR_USAGE, &err,
                     "and step");
    CU_ASSERT_PTR_NULL(solver);
    row_problem_free(&row);
    free(x);
}

SLC_SUITE(row_cells)
{
    static const struct slc_test tests[] = {
        {"every method minimizes the objective", every_method_minimizes},
        {"rows in pieces agree", pieces_agree},
        {"singular rows have the least norm", singular_rows_have_the_least_norm},
        {"empty rows become zero", empty_rows_become_zero},
        {"measures are sums of residuals", measures_are_residuals},
        {"a solver of the caller is called", given_solvers_are_called},
        {"wrong options are rejected", wrong_options_are_rejected},
    };

    return slc_test_main("cpu: row cells", tests, SLC_COUNT(tests), argc, argv);
}
