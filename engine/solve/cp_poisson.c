/* Implements CP-APR: a non-negative model of counts that are Poisson distributed, with maximum
 * likelihood ([Chi2012], [Hansen2015]).
 *
 * The columns of every factor have 1-norm 1, except those of the mode that is updated, which
 * include the weights. The loss of a model M is the sum over all cells of m - x log m, and the sum
 * of m over all cells is the sum of the weights. The log-likelihood that is reported has the
 * opposite sign and omits the terms log x!, which do not depend on the model.
 *
 * A model is optimal if min(b, 1 - phi) = 0 for every element b of every factor, where phi is the
 * sum over the nonzeros of x / m times the product of the other factors' elements. The violation is
 * the largest magnitude of this minimum, measured before each row is updated. */
#include "cpu/row/row.h"
#include "engine/solve/cp_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Moves the 1-norms of the columns of state->mode into the weights. */
static enum slc_status normalize_factor(struct cp_state *state, struct slc_error *err)
{
    struct slc_matrix *factor = &state->result->factors[state->mode];
    double *weights = state->nonzeros->weights;
    double *lambda = state->result->lambda;

    SLC_TRY(slc_dense_column_sums(state->dense, factor, weights, err));
    for (uint32_t r = 0; r < state->rank; r++) {
        lambda[r] *= weights[r];
        if (!isfinite(lambda[r])) {
            return slc_fail(err, SLC_ERR_NUMERIC,
                            "iteration %u, mode %u: component %" PRIu32
                            " is not finite; compute in f64",
                            state->iteration, state->mode + 1, r + 1);
        }
        /* The reciprocal of a subnormal sum can overflow, so the column is treated as zero. */
        weights[r] = isnormal(weights[r]) ? 1.0 / weights[r] : 0.0;
    }
    return slc_dense_scale(state->dense, factor, weights, err);
}

/* Moves the weights into the rows of state->mode. */
static enum slc_status include_weights(struct cp_state *state, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;
    double *lambda = state->result->lambda;

    SLC_TRY(slc_dense_scale(state->dense, &state->result->factors[state->mode], lambda, err));
    for (uint32_t r = 0; r < state->rank; r++) {
        rows->weights[r] = lambda[r];
        lambda[r] = 1.0;
    }
    rows->absorbed = true;
    return SLC_OK;
}

static enum slc_status
update(struct cp_state *state, unsigned place, bool *singular, bool *stopped, struct slc_error *err)
{
    (void)singular;
    state->mode = state->mode_order[place];
    if (!state->nonzeros->absorbed) {
        SLC_TRY(include_weights(state, err));
    }
    SLC_TRY(cp_rows_pass(state, place + 1 == state->order, stopped, err));
    if (*stopped) {
        return SLC_OK;
    }
    state->nonzeros->absorbed = false;
    return normalize_factor(state, err);
}

/* Computes the log-likelihood, and the fit: 1 minus the deviance of the model divided by the
 * deviance of the best constant model. */
static enum slc_status
measure(struct cp_state *state, struct slc_cp_iteration *report, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;
    const double entropy = slc_survey_entropy(&rows->survey);
    const double sum = slc_survey_sum(&rows->survey);
    const double loss = rows->pass.measures[0];
    double cells = 1.0;

    if (report == NULL) {
        return SLC_OK; /* only the last update of an iteration computes the objective */
    }
    for (unsigned n = 0; n < state->order; n++) {
        cells *= (double)state->dims[n];
    }
    const double constant = entropy - sum * log(sum / cells);
    if (!isfinite(loss)) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "iteration %u: the log-likelihood is not finite; compute in f64",
                        state->iteration);
    }
    rows->objective = -loss;
    report->fit = constant > 0.0 ? 1.0 - (entropy - sum + loss) / constant : 1.0;
    cp_rows_report(state, report);
    return SLC_OK;
}

/* The stopping rule needs only the last violation. */
static void record(struct cp_state *state, const struct slc_cp_iteration *report)
{
    state->result->violation = report->violation;
}

static bool settled(const struct cp_state *state)
{
    return state->options->tolerance > 0.0 && state->result->violation <= state->options->tolerance;
}

/* Normalizes the starting factors. Scales a random model, so that its sum is the sum of the
 * tensor. */
static enum slc_status start_factors(struct cp_state *state, struct slc_error *err)
{
    double *lambda = state->result->lambda;
    double total = 0.0;

    SLC_TRY(cp_rows_check_start(state, err));
    for (state->mode = 0; state->mode < state->order; state->mode++) {
        SLC_TRY(normalize_factor(state, err));
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        total += lambda[r];
    }
    if (state->options->init_folder == NULL && total > 0.0) {
        for (uint32_t r = 0; r < state->rank; r++) {
            lambda[r] *= slc_survey_sum(&state->nonzeros->survey) / total;
        }
    }
    return SLC_OK;
}

static enum slc_status create_flags(struct cp_state *state, struct slc_error *err)
{
    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(slc_buffer_create(&state->nonzeros->flags[n],
                                  state->dims[n] * slc_row_flag_bytes(state->rank), SLC_PAGES_SMALL,
                                  err));
    }
    return SLC_OK;
}

static enum slc_status create(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    const bool pdnr = options->algorithm == SLC_CP_PDNR;
    struct slc_row_options choice = {.method = cp_rows_method(options),
                                     .poisson = slc_row_poisson_defaults()};

    SLC_TRY(cp_rows_create(state, err));
    if (!pdnr) {
        SLC_TRY(create_flags(state, err));
        for (unsigned n = 0; n < state->order; n++) {
            choice.poisson.flags[n] = state->nonzeros->flags[n].data;
        }
    }
    if (options->inner != 0) {
        choice.poisson.inner = options->inner;
    }
    choice.poisson.tolerance = options->tolerance;
    return slc_row_solver_create(&choice, state->rank, state->plan->threads,
                                 &state->nonzeros->solver, err);
}

static enum slc_status begin(struct cp_state *state, bool resumed, struct slc_error *err)
{
    SLC_TRY(cp_rows_open(state, SLC_LOSS_POISSON, err));
    return resumed ? SLC_OK : start_factors(state, err);
}

static void name_flags(char name[SLC_CHECKPOINT_NAME_BYTES], unsigned mode)
{
    (void)snprintf(name, SLC_CHECKPOINT_NAME_BYTES, "zeros-%u", (mode + 1) % 100);
}

static void save(const struct cp_state *state, struct slc_checkpoint *checkpoint)
{
    cp_rows_save(state, checkpoint);
    for (unsigned n = 0; n < state->order && state->nonzeros->flags[n].data != NULL; n++) {
        char name[SLC_CHECKPOINT_NAME_BYTES];

        name_flags(name, n);
        slc_checkpoint_section(checkpoint, name);
        slc_checkpoint_put(checkpoint, state->nonzeros->flags[n].data,
                           state->dims[n] * slc_row_flag_bytes(state->rank));
    }
}

static enum slc_status
restore(struct cp_state *state, struct slc_checkpoint_reader *reader, struct slc_error *err)
{
    SLC_TRY(cp_rows_restore(state, reader, err));
    for (unsigned n = 0; n < state->order && state->nonzeros->flags[n].data != NULL; n++) {
        char name[SLC_CHECKPOINT_NAME_BYTES];

        name_flags(name, n);
        slc_checkpoint_seek(reader, name);
        slc_checkpoint_get(reader, state->nonzeros->flags[n].data,
                           state->dims[n] * slc_row_flag_bytes(state->rank));
        SLC_TRY(slc_checkpoint_end(reader, err));
    }
    return SLC_OK;
}

const struct cp_method cp_method_poisson = {.create = create,
                                            .destroy = cp_rows_destroy,
                                            .begin = begin,
                                            .update = update,
                                            .measure = measure,
                                            .record = record,
                                            .settled = settled,
                                            .finish = cp_finish,
                                            .identify = cp_rows_identify,
                                            .save = save,
                                            .restore = restore};
