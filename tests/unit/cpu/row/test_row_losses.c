/* Losses on stored cells: derivatives agree with differences, and damped Newton steps end at a
 * minimum without ever increasing the objective. */
#include "base/random.h"
#include "row_fixture.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const enum row_kind kinds[SLC_LOSS_HUBER + 1] = {
    [SLC_LOSS_LS] = ROW_REALS,       [SLC_LOSS_POISSON] = ROW_COUNTS,
    [SLC_LOSS_BERNOULLI] = ROW_BITS, [SLC_LOSS_GAMMA] = ROW_POSITIVE,
    [SLC_LOSS_HUBER] = ROW_REALS,
};
static const double delta = 0.05;

static double loss_at(const struct slc_row_loss *loss, double value, double model)
{
    double result;

    loss->evaluate(loss, 1, &value, &model, &result, NULL, NULL);
    return result;
}

static void derivatives_are_differences(void)
{
    for (int kind = 0; kind <= SLC_LOSS_HUBER; kind++) {
        const struct slc_row_loss loss = slc_row_loss((enum slc_loss)kind, delta);

        for (uint32_t i = 0; i < 400; i++) {
            const bool positive = loss.nonnegative;
            const double random = slc_random_f64(slc_test_seed(), 1, i);
            const double model = positive ? 0.05 + 3.0 * random : 8.0 * random - 4.0;
            const double value = kind == SLC_LOSS_BERNOULLI ? i % 2
                                 : kind == SLC_LOSS_POISSON
                                     ? i % 7
                                     : 0.1 + slc_random_f64(slc_test_seed(), 2, i);
            const double step = 1e-6 * (1.0 + fabs(model));
            double at, first, second;

            loss.evaluate(&loss, 1, &value, &model, &at, &first, &second);
            const double difference =
                (loss_at(&loss, value, model + step) - loss_at(&loss, value, model - step)) /
                (2.0 * step);

            CU_ASSERT_EQUAL(at, loss_at(&loss, value, model));
            CU_ASSERT(fabs(first - difference) <= 2e-6 * (1.0 + fabs(first)));
            CU_ASSERT(second > 0.0);
        }
    }
}

static void losses_are_those_of_the_formulas(void)
{
    const struct slc_row_loss huber = slc_row_loss(SLC_LOSS_HUBER, 0.5);
    const struct slc_row_loss bernoulli = slc_row_loss(SLC_LOSS_BERNOULLI, 0.0);
    const struct slc_row_loss gamma = slc_row_loss(SLC_LOSS_GAMMA, 0.0);
    const struct slc_row_loss poisson = slc_row_loss(SLC_LOSS_POISSON, 0.0);

    CU_ASSERT_DOUBLE_EQUAL(loss_at(&huber, 1.0, 1.3), 0.09, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(loss_at(&huber, 1.0, 3.0), 2.0 - 0.25, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(loss_at(&bernoulli, 1.0, 0.7), log(1.0 + exp(0.7)) - 0.7, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(loss_at(&bernoulli, 1.0, -1000.0), 1000.0, 1e-12);
    CU_ASSERT_EQUAL(loss_at(&bernoulli, 1.0, 1000.0), 0.0);
    CU_ASSERT_DOUBLE_EQUAL(loss_at(&gamma, 2.0, 4.0), 0.5 + log(4.0), 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(loss_at(&poisson, 2.0, 4.0), 4.0 - 2.0 * log(4.0), 1e-15);
    CU_ASSERT(isfinite(loss_at(&poisson, 2.0, 0.0)));
    CU_ASSERT(isfinite(loss_at(&gamma, 2.0, -1.0)));
}

/* The largest violation of the optimality conditions: by central differences of the objective in
 * each element, with the ridge. */
static double violation_of(struct slc_row_solver *solver,
                           const struct row_problem *row,
                           double ridge,
                           bool nonnegative,
                           double *x)
{
    double worst = 0.0;

    for (uint32_t r = 0; r < row->rank; r++) {
        const double kept = x[r], step = 1e-6 * (1.0 + fabs(kept));

        x[r] = kept + step;
        const double above = measure_row(solver, row, x) + ridge * x[r] * x[r];

        x[r] = kept - step;
        const double below = measure_row(solver, row, x) + ridge * x[r] * x[r];

        x[r] = kept;
        const double gradient = (above - below) / (2.0 * step);

        worst = fmax(worst, fabs(nonnegative ? fmin(kept, gradient) : gradient));
    }
    return worst;
}

static void check_loss(enum slc_loss kind, uint32_t rank, uint32_t nnz, double low)
{
    enum { STEPS = 400 };
    struct row_problem row = row_problem(kinds[kind], rank, nnz);
    struct slc_row_options options = {.method = SLC_ROW_METHOD_NEWTON,
                                      .cells = {.inner = STEPS, .tolerance = 1e-8},
                                      .loss = slc_row_loss(kind, delta)};
    double *x = row_numbers(row.width), objectives[STEPS + 2], *ridge = row_numbers(rank);

    for (uint32_t r = 0; r < rank; r++) {
        ridge[r] = 0.05;
        x[r] = low * (0.5 + slc_random_f64(slc_test_seed(), 9, r));
    }
    options.cells.ridge[1] = ridge;
    struct slc_row_solver *solver = row_solver(&options, rank);
    double before = measure_row(solver, &row, x), after;

    for (uint32_t r = 0; r < rank; r++) {
        before += 0.05 * x[r] * x[r];
    }
    (void)solve_row(solver, &row, &(struct row_way){0}, x, objectives);
    after = measure_row(solver, &row, x);
    for (uint32_t r = 0; r < rank; r++) {
        after += 0.05 * x[r] * x[r];
        CU_ASSERT(!options.loss.nonnegative || x[r] >= 0.0);
    }
    CU_ASSERT(after <= before);
    CU_ASSERT_EQUAL(slc_row_solver_statistics(solver).unconverged, 0);
    const double violation = violation_of(solver, &row, 0.05, options.loss.nonnegative, x);

    CU_ASSERT(violation <= 2e-4 * (1.0 + nnz / 100.0));
    slc_row_solver_destroy(solver);
    row_problem_free(&row);
    free(x);
    free(ridge);
}

static void newton_ends_at_a_minimum(void)
{
    static const uint32_t ranks[] = {1, 3, 16, 33};
    static const double lows[] = {0.3, 1e-3, 50.0};

    for (int kind = 0; kind <= SLC_LOSS_HUBER; kind++) {
        for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
            for (size_t l = 0; l < SLC_COUNT(lows); l++) {
                check_loss((enum slc_loss)kind, ranks[r], 5, lows[l]);
                check_loss((enum slc_loss)kind, ranks[r], 1200, lows[l]);
            }
        }
    }
}

SLC_SUITE(row_losses)
{
    static const struct slc_test tests[] = {
        {"derivatives are differences of the loss", derivatives_are_differences},
        {"losses are those of the formulas", losses_are_those_of_the_formulas},
        {"Newton steps end at a minimum", newton_ends_at_a_minimum},
    };

    return slc_test_main("cpu: row losses", tests, SLC_COUNT(tests), argc, argv);
}
