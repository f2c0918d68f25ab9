/* Implements completion: a model of the listed cells only. A row of a factor is the solution of its
 * own small problem over the nonzeros of the row ([Smith2018]): normal equations (als), coordinate
 * descent (ccd), or Newton's method for losses other than least squares ([Hong2020]).
 *
 * Factors are not normalized before the end, so the ridge is the weight of the squares of their
 * elements. Biases are components with ones in all modes but one (cp.h); the solvers do not change
 * these ones. Held-out nonzeros are dropped, not replaced by zeros. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "cpu/row/row.h"
#include "engine/solve/cp_rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    /* A run ends if the held-out error has not improved for this many iterations. */
    WORSE_LIMIT = 10,
    /* WORSE_LIMIT applies from this iteration on, because the error often rises at first. */
    WORSE_FIRST = 30,
    GRAIN = 1024
};

/* Standard deviation of the random initial model, divided by that of the values. */
#define START_SCALE 0.1
/* Factor of the ridge that chosen_ridge returns. */
#define RIDGE_SCALE 2.0
/* Magnitude of the log-odds of the mean, if all values are 0 or all are 1. */
#define LOG_ODDS_LIMIT 10.0

/* Returns mode n if component r is the bias of mode n, the order if it is the mean, and
 * SLC_MAX_ORDER + 1 otherwise. */
static unsigned bias_of(const struct cp_state *state, uint32_t r)
{
    const unsigned biases = state->result->biases;

    if (r < state->rank - biases) {
        return SLC_MAX_ORDER + 1;
    }
    return state->order + 1 - (state->rank - r);
}

/* Sets which columns of which modes are fixed. */
static void set_columns(struct cp_state *state)
{
    for (unsigned n = 0; n < state->order; n++) {
        for (uint32_t r = 0; r < state->rank; r++) {
            const unsigned bias = bias_of(state, r);

            state->nonzeros->fixed[n][r] = bias != SLC_MAX_ORDER + 1 && bias != n;
        }
    }
}

/* Returns the mean square of the listed values, minus the square of their mean if the model has
 * biases. */
static double variance_of(const struct cp_state *state)
{
    const double count = (double)state->nonzeros->survey.count;
    const double mean = slc_survey_sum(&state->nonzeros->survey) / count;
    const double square = state->norm_x * state->norm_x / count;

    return state->result->biases > 0 ? fmax(square - mean * mean, 0.0) : square;
}

/* Returns the ridge of a run without a requested ridge: RIDGE_SCALE (found by experiments) times
 * noise / variance. If the elements of a column are normally distributed with this variance, the
 * solution with the ridge noise / variance is the most probable model. The variance assumes that
 * all components explain equal parts of the values' variance. The noise is the squared error of the
 * model so far. The ridge is therefore large at first, which avoids poor solutions, and vanishes if
 * the model becomes exact. */
static double chosen_ridge(const struct cp_state *state, bool bias)
{
    const struct cp_rows *rows = state->nonzeros;
    const double power = 1.0 / state->order;
    const double components = state->rank - state->result->biases;
    double variance = variance_of(state), noise = variance;

    if (slc_loss_is_nonnegative(state->options->loss)) {
        return 0.0;
    }
    if (state->options->loss == SLC_LOSS_BERNOULLI) {
        variance = 1.0; /* variance of the log-odds */
        noise = 0.5;
    } else if (state->iteration > 1) {
        noise = state->options->loss == SLC_LOSS_LS ? rows->objective * rows->objective
                                                    : rows->objective / (double)rows->survey.count;
    }
    if (!(variance > 0.0)) {
        return 0.0;
    }
    return RIDGE_SCALE * noise /
           (bias ? variance / state->order : pow(variance / components, power));
}

static void set_ridges(struct cp_state *state)
{
    for (unsigned n = 0; n < state->order; n++) {
        for (uint32_t r = 0; r < state->rank; r++) {
            const bool bias = bias_of(state, r) != SLC_MAX_ORDER + 1;

            state->nonzeros->ridge[n][r] = state->options->ridge_chosen
                                               ? chosen_ridge(state, bias)
                                               : state->options->terms[n].ridge;
        }
    }
}

static enum slc_status create_best(struct cp_state *state, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;

    rows->keeps_best = state->options->holdout > 0.0;
    for (unsigned n = 0; n < state->order && rows->keeps_best; n++) {
        SLC_TRY(slc_matrix_create(&rows->best[n], state->plan->request.precision, state->dims[n],
                                  state->rank, err));
    }
    return SLC_OK;
}

static enum slc_status create(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    struct slc_row_options choice = {.method = cp_rows_method(options),
                                     .loss = slc_row_loss(options->loss, options->huber),
                                     .given = options->row_solver};

    SLC_TRY(cp_rows_create(state, err));
    set_columns(state);
    for (unsigned n = 0; n < state->order; n++) {
        choice.cells.ridge[n] = state->nonzeros->ridge[n];
        choice.cells.fixed[n] = state->nonzeros->fixed[n];
    }
    choice.cells.inner = options->inner != 0 ? options->inner : SLC_CP_INNER;
    choice.cells.tolerance = 1e-8;
    SLC_TRY(create_best(state, err));
    return slc_row_solver_create(&choice, state->rank, state->plan->threads,
                                 &state->nonzeros->solver, err);
}

/* Replaces each element x of column r with scale[r] x + shift[r]. */
struct transform {
    struct slc_matrix *factor;
    const double *scale, *shift;
};

static void transform_rows(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct transform *transform = context;

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        for (uint32_t r = 0; r < transform->factor->cols; r++) {
            slc_matrix_set(transform->factor, i, r,
                           slc_matrix_get(transform->factor, i, r) * transform->scale[r] +
                               transform->shift[r]);
        }
    }
}

/* Returns the number that the mean component adds to the model: `mean`, or its log-odds. */
static double mean_component(const struct cp_state *state, double mean)
{
    if (state->options->loss == SLC_LOSS_BERNOULLI) {
        const double odds = log(mean / (1.0 - mean));

        return fmax(-LOG_ODDS_LIMIT, fmin(odds, LOG_ODDS_LIMIT));
    }
    return mean;
}

/* Returns the largest magnitude of a random element of the initial factors. If elements have random
 * signs, the standard deviation of the model's values is START_SCALE times that of the tensor's
 * values. The mean of a nonnegative model's values is the mean of the tensor's values. */
static double start_element(const struct cp_state *state, double mean)
{
    const double components = state->rank - state->result->biases;
    const double power = 1.0 / state->order;
    double deviation = sqrt(variance_of(state));

    if (slc_loss_is_nonnegative(state->options->loss)) {
        return 2.0 * pow(mean / components, power);
    }
    deviation = state->options->loss == SLC_LOSS_BERNOULLI ? 1.0 : deviation;
    deviation = deviation > 0.0 ? deviation : fabs(mean);
    /* Uniform numbers from -s to s have the variance s^2 / 3. */
    return sqrt(3.0) * pow(START_SCALE * deviation / sqrt(components), power);
}

/* Converts the uniform random numbers of the factors to the initial factors. */
static enum slc_status start_random(struct cp_state *state, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;
    const double count = (double)rows->survey.count;
    const double mean = slc_survey_sum(&rows->survey) / count;
    const double element = start_element(state, mean);
    const bool positive = slc_loss_is_nonnegative(state->options->loss);
    double scale[SLC_MAX_RANK], shift[SLC_MAX_RANK];

    for (unsigned n = 0; n < state->order; n++) {
        struct transform transform = {&state->result->factors[n], scale, shift};

        for (uint32_t r = 0; r < state->rank; r++) {
            const unsigned bias = bias_of(state, r);

            scale[r] = bias != SLC_MAX_ORDER + 1 ? 0.0 : positive ? element : 2.0 * element;
            shift[r] = bias == SLC_MAX_ORDER + 1        ? (positive ? 0.0 : -element)
                       : bias == n                      ? 0.0
                       : bias == state->order && n == 0 ? mean_component(state, mean)
                                                        : 1.0;
        }
        SLC_TRY(slc_team_for(state->plan->threads, state->dims[n], GRAIN, transform_rows,
                             &transform, err));
    }
    return SLC_OK;
}

static enum slc_status fail_start(uint32_t component, struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_NUMERIC,
                    "component %" PRIu32
                    " of the starting model is too large or too small: scale its factors",
                    component + 1);
}

/* Moves scales between the columns of initial factors, which were read from a folder. A bias gets
 * its scale in its mode, and the mean in the first mode, so that their other columns have ones. For
 * any other component, each column gets the N-th root of the scale, where N is the order. */
static enum slc_status start_given(struct cp_state *state, struct slc_error *err)
{
    double norms[SLC_MAX_ORDER][SLC_MAX_RANK], signs[SLC_MAX_RANK], opposites[SLC_MAX_RANK];
    double *scale = signs;

    if (slc_loss_is_nonnegative(state->options->loss)) {
        SLC_TRY(cp_rows_check_start(state, err));
    }
    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(slc_dense_column_norms(state->dense, &state->result->factors[n], norms[n], signs,
                                       opposites, err));
        for (uint32_t r = state->rank - state->result->biases; r < state->rank; r++) {
            norms[n][r] = slc_matrix_get(&state->result->factors[n], 0, r);
        }
    }
    for (unsigned n = 0; n < state->order; n++) {
        for (uint32_t r = 0; r < state->rank; r++) {
            const unsigned bias = bias_of(state, r);
            const unsigned owner = bias == state->order ? 0 : bias;
            double product = 1.0;

            for (unsigned m = 0; m < state->order; m++) {
                product *= bias == SLC_MAX_ORDER + 1 || m != owner ? norms[m][r] : 1.0;
            }
            scale[r] =
                bias == SLC_MAX_ORDER + 1
                    ? (norms[n][r] > 0.0 ? pow(product, 1.0 / state->order) / norms[n][r] : 1.0)
                : n == owner         ? product
                : norms[n][r] != 0.0 ? 1.0 / norms[n][r]
                                     : 1.0;
            if (!isfinite(scale[r])) {
                return fail_start(r, err);
            }
        }
        SLC_TRY(slc_dense_scale(state->dense, &state->result->factors[n], scale, err));
    }
    return SLC_OK;
}

static enum slc_status begin(struct cp_state *state, bool resumed, struct slc_error *err)
{
    SLC_TRY(cp_rows_open(state, state->options->loss, err));
    if (state->nonzeros->survey.count == 0) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_HOLDOUT,
                              "all nonzeros are held out: hold out a smaller part");
    }
    if (resumed) {
        return SLC_OK;
    }
    return state->options->init_folder != NULL ? start_given(state, err) : start_random(state, err);
}

static enum slc_status
update(struct cp_state *state, unsigned place, bool *singular, bool *stopped, struct slc_error *err)
{
    state->mode = state->mode_order[place];
    set_ridges(state);
    SLC_TRY(cp_rows_pass(state, place + 1 == state->order, stopped, err));
    *singular = slc_row_solver_statistics(state->nonzeros->solver).singular > 0;
    return SLC_OK;
}

/* Returns the part of a loss that no model can remove. */
static double least_loss(const struct cp_state *state)
{
    const struct slc_survey *survey = &state->nonzeros->survey;

    switch (state->options->loss) {
    case SLC_LOSS_POISSON:
        return slc_survey_sum(survey) - slc_survey_entropy(survey);
    case SLC_LOSS_GAMMA:
        return (double)survey->count + slc_survey_entropy(survey);
    case SLC_LOSS_LS:
    case SLC_LOSS_BERNOULLI:
    case SLC_LOSS_HUBER:
        break;
    }
    return 0.0;
}

/* Returns the loss of the best constant model; for huber, the loss of least squares, which is an
 * upper bound. */
static double constant_loss(const struct cp_state *state)
{
    const double count = (double)state->nonzeros->survey.count;
    const double mean = slc_survey_sum(&state->nonzeros->survey) / count;

    switch (state->options->loss) {
    case SLC_LOSS_POISSON:
        return mean > 0.0 ? count * (mean - mean * log(mean)) : 0.0;
    case SLC_LOSS_GAMMA:
        return count * (1.0 + log(mean));
    case SLC_LOSS_BERNOULLI:
        return mean > 0.0 && mean < 1.0
                   ? -count * (mean * log(mean) + (1.0 - mean) * log(1.0 - mean))
                   : 0.0;
    case SLC_LOSS_LS:
    case SLC_LOSS_HUBER:
        break;
    }
    return state->norm_x * state->norm_x - count * mean * mean;
}

/* Computes the objective and the fit. The fit is 1 - |residuals| / |values| for least squares; for
 * other losses, the fraction of a constant model's loss that the model removes. */
static enum slc_status
measure(struct cp_state *state, struct slc_cp_iteration *report, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;
    const double loss = rows->pass.measures[0];

    if (report == NULL) {
        return SLC_OK; /* only the last update of an iteration computes the objective */
    }
    if (!isfinite(loss)) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "iteration %u: the loss is not finite; use a larger regularization, or "
                        "compute in f64",
                        state->iteration);
    }
    if (state->options->loss == SLC_LOSS_LS) {
        rows->objective = sqrt(loss / (double)rows->survey.count);
        report->fit = 1.0 - sqrt(loss) / state->norm_x;
    } else {
        const double least = least_loss(state);
        const double constant = constant_loss(state) - least;

        rows->objective = loss;
        report->fit = constant > 0.0 ? 1.0 - (loss - least) / constant : 1.0;
    }
    cp_rows_report(state, report);
    return SLC_OK;
}

static void
copy_factors(const struct cp_state *state, const struct slc_matrix *from, struct slc_matrix *to)
{
    for (unsigned n = 0; n < state->order; n++) {
        memcpy(to[n].buffer.data, from[n].buffer.data,
               from[n].rows * from[n].pitch * (size_t)slc_value_bytes(from[n].type));
    }
}

/* Keeps the model if its held-out error is the smallest so far. */
static void record(struct cp_state *state, const struct slc_cp_iteration *report)
{
    struct cp_rows *rows = state->nonzeros;
    const double error =
        state->options->loss == SLC_LOSS_LS ? report->heldout_rmse : report->heldout_deviance;

    cp_fit_changed(state, report->iteration, report->fit, report->delta);
    if (!rows->keeps_best || report->heldout == 0) {
        return; /* heldout is 0 if the iteration is from a checkpoint, which has the best model */
    }
    rows->worse++;
    if (rows->best_iteration == 0 || error < rows->best_error) {
        rows->worse = 0;
        rows->best_iteration = report->iteration;
        rows->best_error = error;
        rows->best_fit = report->fit;
        rows->best_objective = report->objective;
        copy_factors(state, state->result->factors, rows->best);
    }
}

bool cp_complete_overfits(const struct cp_state *state)
{
    return state->nonzeros != NULL && state->nonzeros->worse >= WORSE_LIMIT &&
           state->result->iterations >= WORSE_FIRST;
}

static bool settled(const struct cp_state *state)
{
    return state->options->tolerance > 0.0 &&
           (cp_complete_overfits(state) || cp_fit_settled(state));
}

/* Replaces the factors with the best model, if one was kept. */
static enum slc_status restore_best(struct cp_state *state, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;

    if (rows->best_iteration == 0) {
        return SLC_OK;
    }
    copy_factors(state, rows->best, state->result->factors);
    state->result->best_iteration = rows->best_iteration;
    state->result->fit = rows->best_fit;
    state->result->objective = rows->best_objective;
    return cp_holdout_measure(state, err);
}

static enum slc_status finish(struct cp_state *state, struct slc_error *err)
{
    SLC_TRY(restore_best(state, err));
    return cp_finish(state, err);
}

const struct cp_method cp_method_complete = {.create = create,
                                             .destroy = cp_rows_destroy,
                                             .begin = begin,
                                             .update = update,
                                             .measure = measure,
                                             .record = record,
                                             .settled = settled,
                                             .finish = finish,
                                             .identify = cp_rows_identify,
                                             .save = cp_rows_save,
                                             .restore = cp_rows_restore};
