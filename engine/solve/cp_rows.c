/* Shared functions of methods that update rows from their nonzeros (cp_poisson.c, cp_complete.c).
 *
 * While a mode is updated, its rows include all weights, and the weights are ones. So the model is
 * complete even if a stopped pass has updated only some rows. */
#include "engine/solve/cp_rows.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "cpu/row/row.h"
#include "engine/plan/plan_sizes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Version of the section `rows`. */
    ROWS_VERSION = 1,
    /* Numbers per iteration in the section `past-rows`. */
    PAST_NUMBERS = 6
};

/* Returns the bytes of two vectors, and of a ridge and a set of columns per mode. */
static uint64_t vectors_bytes(unsigned order, uint32_t rank)
{
    return slc_row_width(rank) * ((order + UINT64_C(2)) * sizeof(double) + order);
}

/* Returns the memory of the flags of inadmissible zeros, or of the best model. */
static uint64_t factor_bytes(unsigned order,
                             const uint64_t *dims,
                             const struct slc_cp_options *options,
                             const struct slc_plan_request *request)
{
    const bool best = options->unlisted == SLC_UNLISTED_UNKNOWN && options->holdout > 0.0;
    const bool flags = options->unlisted == SLC_UNLISTED_ZERO;
    uint64_t bytes = 0;

    for (unsigned n = 0; n < order; n++) {
        const uint64_t rank_bytes = slc_row_flag_bytes(request->rank);

        if (best) {
            bytes = slc_plan_plus(bytes,
                                  slc_matrix_footprint(request->precision, dims[n], request->rank));
        } else if (flags && dims[n] <= UINT64_MAX / rank_bytes) {
            bytes =
                slc_plan_plus(bytes, slc_buffer_footprint(dims[n] * rank_bytes, SLC_PAGES_SMALL));
        } else if (flags) {
            return UINT64_MAX;
        }
    }
    return bytes;
}

enum slc_status slc_cp_plan_request(unsigned order,
                                    const uint64_t *dims,
                                    const struct slc_cp_options *options,
                                    struct slc_plan_request *request,
                                    struct slc_error *err)
{
    const enum slc_row_method method = cp_rows_method(options);
    const unsigned workers = request->threads != 0 ? request->threads : slc_team_default_workers();
    struct slc_row_options choice = {.method = method, .poisson = slc_row_poisson_defaults()};
    struct slc_row_solver *solver = NULL;
    uint64_t bytes;

    request->rank = slc_cp_components(order, options);
    if (!slc_cp_needs_nonzeros(options)) {
        return SLC_OK;
    }
    choice.cells.inner = 1;
    choice.given = options->row_solver;
    choice.loss = slc_row_loss(SLC_LOSS_LS, 1.0);
    SLC_TRY(slc_row_solver_create(&choice, request->rank, 1, &solver, err));
    request->rows =
        (struct slc_plan_row_request){.nonzeros = true,
                                      .sums = solver->sums(solver->context, request->rank),
                                      .memory = solver->memory(solver->context, request->rank),
                                      .traversals = method == SLC_ROW_METHOD_ALS ? 1
                                                    : options->inner != 0        ? options->inner
                                                                                 : SLC_CP_INNER,
                                      .measures = true};
    slc_row_solver_destroy(solver);
    bytes =
        slc_plan_plus(slc_buffer_footprint(vectors_bytes(order, request->rank), SLC_PAGES_SMALL),
                      slc_row_solver_memory_bytes(method, request->rank, workers));
    bytes = slc_plan_plus(bytes, factor_bytes(order, dims, options, request));
    request->beside_bytes = slc_plan_plus(request->beside_bytes, bytes);
    return SLC_OK;
}

enum slc_row_method cp_rows_method(const struct slc_cp_options *options)
{
    if (options->row_solver != NULL) {
        return SLC_ROW_METHOD_GIVEN;
    }
    if (options->unlisted == SLC_UNLISTED_ZERO) {
        return options->algorithm == SLC_CP_PDNR ? SLC_ROW_METHOD_PDNR : SLC_ROW_METHOD_MU;
    }
    if (options->loss != SLC_LOSS_LS || options->algorithm == SLC_CP_NEWTON) {
        return SLC_ROW_METHOD_NEWTON;
    }
    return options->algorithm == SLC_CP_CCD ? SLC_ROW_METHOD_CCD : SLC_ROW_METHOD_ALS;
}

enum slc_status cp_rows_create(struct cp_state *state, struct slc_error *err)
{
    struct cp_rows *rows = slc_calloc(1, sizeof *rows);
    const uint64_t vector = slc_row_width(state->rank);

    SLC_TRY(slc_check_memory(rows != NULL, err, "for the state of a decomposition"));
    state->nonzeros = rows;
    SLC_TRY(slc_buffer_create(&rows->vectors, vectors_bytes(state->order, state->rank),
                              SLC_PAGES_SMALL, err));
    rows->weights = rows->vectors.data;
    rows->totals = rows->weights + vector;
    for (unsigned n = 0; n < state->order; n++) {
        rows->ridge[n] = rows->totals + (n + 1) * vector;
        rows->fixed[n] = (unsigned char *)(rows->totals + (state->order + 1) * vector) + n * vector;
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        rows->weights[r] = 1.0;
        rows->totals[r] = 1.0;
    }
    return SLC_OK;
}

void cp_rows_destroy(struct cp_state *state)
{
    struct cp_rows *rows = state->nonzeros;

    if (rows == NULL) {
        return;
    }
    slc_row_passes_close(rows->passes);
    slc_buffer_destroy(&rows->vectors);
    slc_row_solver_destroy(rows->solver);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_buffer_destroy(&rows->flags[n]);
        slc_matrix_destroy(&rows->best[n]);
    }
    slc_free(rows);
    state->nonzeros = NULL;
}

enum slc_status cp_rows_open(struct cp_state *state, enum slc_loss loss, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;

    /* The survey needs the values of held-out nonzeros. */
    slc_stream_hold_out(state->stream, NULL, NULL);
    SLC_TRY(slc_survey_store(state->store, state->stream,
                             state->plan->mode_layout[state->mode_order[0]], loss,
                             state->options->stop, &rows->survey, err));
    cp_holdout_apply(state);
    for (uint64_t i = 0; i < state->held.count; i++) {
        slc_survey_remove(&rows->survey, slc_held_value(&state->held, i));
    }
    return slc_row_passes_open(state->stream, state->plan, state->options->stop, &rows->passes,
                               err);
}

static enum slc_status
check_factor(const struct cp_state *state, unsigned mode, struct slc_error *err)
{
    const struct slc_matrix *factor = &state->result->factors[mode];

    for (uint64_t i = 0; i < factor->rows; i++) {
        for (uint32_t r = 0; r < state->rank; r++) {
            const double value = slc_matrix_get(factor, i, r);

            if (value < 0.0) {
                return slc_fail(err, SLC_ERR_INPUT,
                                "the starting factor of mode %u has the negative number %g in "
                                "component %" PRIu32 ", but a model for the loss %s has no "
                                "negative numbers: start from random factors or from a "
                                "non-negative model",
                                mode + 1, value, r + 1, slc_loss_name(state->options->loss));
            }
        }
    }
    return SLC_OK;
}

enum slc_status cp_rows_check_start(const struct cp_state *state, struct slc_error *err)
{
    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(check_factor(state, n, err));
    }
    return SLC_OK;
}

static struct slc_row_mode mode_of(const struct cp_state *state)
{
    return (struct slc_row_mode){.order = state->order,
                                 .mode = state->mode,
                                 .workers = state->plan->threads,
                                 .iteration = state->iteration,
                                 .rank = state->rank,
                                 .rows = state->dims[state->mode],
                                 .weights = state->nonzeros->weights,
                                 .totals = state->nonzeros->totals};
}

/* Returns the largest KKT violation of a row in the current iteration so far. */
static double violation_so_far(const struct cp_state *state)
{
    const struct cp_rows *rows = state->nonzeros;

    return fmax(rows->violation, slc_row_solver_statistics(rows->solver).violation_first);
}

enum slc_status
cp_rows_pass(struct cp_state *state, bool objective, bool *stopped, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;
    const struct slc_row_mode about = mode_of(state);
    const uint64_t start_ns = slc_clock_ns();
    double before[SLC_ROW_MEASURES]; /* measures in a checkpoint within this pass */
    struct slc_error fault = SLC_ERROR_INIT;
    struct cp_pass parts;

    memcpy(before, rows->pass.measures, sizeof before);
    SLC_TRY(cp_row_pass_begin(state, rows->passes, &parts, err));
    rows->pass = (struct slc_row_pass){.solver = rows->solver,
                                       .about = &about,
                                       .factors = state->result->factors,
                                       .weighted = true,
                                       .measure = objective,
                                       .cuts = parts.cuts,
                                       .stop = parts.stop,
                                       .progress = parts.progress,
                                       .progress_context = state};
    if (parts.cuts != NULL && parts.cuts->first > 0) {
        memcpy(rows->pass.measures, before, sizeof before);
    }
    const enum slc_status status = slc_row_pass_run(rows->passes, &rows->pass, &fault);
    rows->pass.about = NULL;
    rows->violation = violation_so_far(state);
    rows->rows += rows->pass.rows;
    rows->traversals += rows->pass.traversals;
    state->result->times.mttkrp += slc_seconds_since(start_ns);
    if (status == SLC_ERR_INTERRUPTED && cp_stop_due(state)) {
        *stopped = true;
        /* Without parts, the rows that the pass has updated cannot be saved in a checkpoint. */
        state->half_updated = parts.cuts == NULL || !state->current.left;
        return SLC_OK;
    }
    if (status != SLC_OK) {
        slc_error_pass(err, &fault);
    }
    return status;
}

void cp_rows_report(struct cp_state *state, struct slc_cp_iteration *report)
{
    struct cp_rows *rows = state->nonzeros;

    report->objective = rows->objective;
    report->objective_name = slc_cp_objective_name(state->options->loss, state->options->unlisted);
    report->violation = rows->violation;
    report->inner = rows->rows > 0 ? (double)rows->traversals / (double)rows->rows : 0.0;
    report->delta = state->iteration == 1 ? report->fit : report->fit - state->fit;
    state->fit = report->fit;
    state->result->fit = report->fit;
    state->result->objective = rows->objective;
    state->result->violation = rows->violation;
    rows->violation = 0.0;
    rows->rows = 0;
    rows->traversals = 0;
}

void cp_rows_identify(const struct cp_state *state, struct cp_identity *identity)
{
    const struct slc_cp_options *options = state->options;

    cp_identity_append(identity, "loss=%s\nunlisted cells=%s\ninner iterations=%u\n",
                       slc_loss_name(options->loss), slc_unlisted_name(options->unlisted),
                       options->inner);
    if (options->unlisted == SLC_UNLISTED_UNKNOWN) {
        cp_identity_append(identity, "biases=%s\nridge chosen=%s\n",
                           slc_biases_name(slc_cp_biases_in_effect(options)),
                           options->ridge_chosen ? "yes" : "no");
    }
    if (options->loss == SLC_LOSS_HUBER) {
        cp_identity_append(identity, "huber=");
        cp_identity_number(identity, options->huber);
        cp_identity_append(identity, "\n");
    }
    if (options->row_solver != NULL) {
        cp_identity_append(identity, "row solver=%s\n", options->row_solver->name);
    }
}

static void name_best(char name[SLC_CHECKPOINT_NAME_BYTES], unsigned mode)
{
    (void)snprintf(name, SLC_CHECKPOINT_NAME_BYTES, "best-%u", (mode + 1) % 100);
}

static void save_past(const struct cp_state *state, struct slc_checkpoint *checkpoint)
{
    slc_checkpoint_section(checkpoint, "past-rows");
    for (unsigned i = 0; i < state->result->iterations; i++) {
        const struct slc_cp_iteration *past = &state->past[i];

        slc_checkpoint_put_f64(checkpoint, past->objective);
        slc_checkpoint_put_f64(checkpoint, past->violation);
        slc_checkpoint_put_f64(checkpoint, past->inner);
        slc_checkpoint_put_f64(checkpoint, past->heldout_rmse);
        slc_checkpoint_put_f64(checkpoint, past->heldout_mae);
        slc_checkpoint_put_f64(checkpoint, past->heldout_deviance);
    }
}

void cp_rows_save(const struct cp_state *state, struct slc_checkpoint *checkpoint)
{
    const struct cp_rows *rows = state->nonzeros;

    slc_checkpoint_section(checkpoint, "rows");
    slc_checkpoint_put_u64(checkpoint, ROWS_VERSION);
    slc_checkpoint_put_u64(checkpoint, rows->absorbed);
    slc_checkpoint_put_u64(checkpoint, rows->rows + rows->pass.rows * rows->absorbed);
    slc_checkpoint_put_u64(checkpoint, rows->traversals + rows->pass.traversals * rows->absorbed);
    slc_checkpoint_put_u64(checkpoint, rows->worse);
    slc_checkpoint_put_u64(checkpoint, rows->best_iteration);
    slc_checkpoint_put_f64(checkpoint, rows->best_error);
    for (unsigned i = 0; i < SLC_ROW_MEASURES; i++) {
        slc_checkpoint_put_f64(checkpoint, rows->pass.measures[i]);
    }
    slc_checkpoint_put_f64(checkpoint, violation_so_far(state));
    slc_checkpoint_put_f64(checkpoint, rows->objective);
    slc_checkpoint_put_f64(checkpoint, rows->best_fit);
    slc_checkpoint_put_f64(checkpoint, rows->best_objective);
    for (uint32_t r = 0; r < state->rank; r++) {
        slc_checkpoint_put_f64(checkpoint, rows->weights[r]);
    }
    save_past(state, checkpoint);
    for (unsigned n = 0; n < state->order && rows->best_iteration > 0; n++) {
        char name[SLC_CHECKPOINT_NAME_BYTES];

        name_best(name, n);
        slc_checkpoint_section(checkpoint, name);
        cp_matrix_write(checkpoint, &rows->best[n]);
    }
}

static enum slc_status
restore_past(struct cp_state *state, struct slc_checkpoint_reader *reader, struct slc_error *err)
{
    const struct slc_checkpoint_section *section = slc_checkpoint_find(reader, "past-rows");
    unsigned count = state->past_capacity;

    if (section == NULL || section->bytes != (uint64_t)count * PAST_NUMBERS * sizeof(double)) {
        return slc_fail_file(
            err, SLC_ERR_FORMAT, slc_checkpoint_reader_path(reader),
            "the checkpoint does not have the number of iteration records that it states");
    }
    slc_checkpoint_seek(reader, "past-rows");
    for (unsigned i = 0; i < count; i++) {
        struct slc_cp_iteration *past = &state->past[i];

        past->objective = slc_checkpoint_get_f64(reader);
        past->objective_name =
            slc_cp_objective_name(state->options->loss, state->options->unlisted);
        past->violation = slc_checkpoint_get_f64(reader);
        past->inner = slc_checkpoint_get_f64(reader);
        past->heldout_rmse = slc_checkpoint_get_f64(reader);
        past->heldout_mae = slc_checkpoint_get_f64(reader);
        past->heldout_deviance = slc_checkpoint_get_f64(reader);
        past->heldout = state->held.count;
    }
    return slc_checkpoint_end(reader, err);
}

enum slc_status
cp_rows_restore(struct cp_state *state, struct slc_checkpoint_reader *reader, struct slc_error *err)
{
    struct cp_rows *rows = state->nonzeros;

    slc_checkpoint_seek(reader, "rows");
    const uint64_t version = slc_checkpoint_get_u64(reader);
    if (version > ROWS_VERSION) {
        return slc_fail_file(
            err, SLC_ERR_UNSUPPORTED, slc_checkpoint_reader_path(reader),
            "the checkpoint was written by a newer sluice: resume with that version");
    }
    rows->absorbed = slc_checkpoint_get_u64(reader) != 0;
    rows->rows = slc_checkpoint_get_u64(reader);
    rows->traversals = slc_checkpoint_get_u64(reader);
    rows->worse = (unsigned)slc_checkpoint_get_u64(reader);
    rows->best_iteration = (unsigned)slc_checkpoint_get_u64(reader);
    rows->best_error = slc_checkpoint_get_f64(reader);
    for (unsigned i = 0; i < SLC_ROW_MEASURES; i++) {
        rows->pass.measures[i] = slc_checkpoint_get_f64(reader);
    }
    rows->violation = slc_checkpoint_get_f64(reader);
    rows->objective = slc_checkpoint_get_f64(reader);
    rows->best_fit = slc_checkpoint_get_f64(reader);
    rows->best_objective = slc_checkpoint_get_f64(reader);
    for (uint32_t r = 0; r < state->rank; r++) {
        rows->weights[r] = slc_checkpoint_get_f64(reader);
    }
    SLC_TRY(slc_checkpoint_end(reader, err));
    SLC_TRY(restore_past(state, reader, err));
    for (unsigned n = 0; n < state->order && rows->keeps_best && rows->best_iteration > 0; n++) {
        char name[SLC_CHECKPOINT_NAME_BYTES];

        name_best(name, n);
        SLC_TRY(cp_matrix_read(reader, name, &rows->best[n], err));
    }
    return SLC_OK;
}
