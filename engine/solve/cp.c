/* Decomposes a tensor: the loop over iterations and modes, for all methods (cp_method.h).
 *
 * Invariant: between two passes the result holds a complete model, so a run may stop there. */
#include "base/error/clock.h"
#include "engine/executor/replica.h"
#include "engine/solve/cp_method.h"
#include "storage/file/files.h"
#include "storage/model/model.h"

#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

const char *slc_stop_reason_name(enum slc_stop_reason reason)
{
    switch (reason) {
    case SLC_STOP_TOLERANCE:
        return "tol";
    case SLC_STOP_ITERATIONS:
        return "iterations";
    case SLC_STOP_TIME:
        return "time";
    case SLC_STOP_SIGNAL:
        return "signal";
    case SLC_STOP_HOLDOUT:
        return "holdout";
    }
    return "?";
}

void slc_cp_result_destroy(struct slc_cp_result *result)
{
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_matrix_destroy(&result->factors[n]);
    }
    slc_free(result->lambda);
    memset(result, 0, sizeof *result);
}

static enum slc_status check_options(const struct slc_store *store,
                                     const struct slc_plan *plan,
                                     const struct slc_cp_options *options,
                                     struct slc_error *err)
{
    if (plan->request.operation != SLC_OP_CPD ||
        plan->request.rank != slc_cp_components(store->manifest.order, options) ||
        plan->request.deterministic != options->deterministic) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the plan (rank %" PRIu32
                        ", deterministic %d) was not made for this decomposition (rank %" PRIu32
                        ", deterministic %d)",
                        plan->request.rank, (int)plan->request.deterministic, options->rank,
                        (int)options->deterministic);
    }
    /* This form of the comparison also rejects NaN. */
    if (!(options->tolerance >= 0.0) || !(options->max_seconds >= 0.0)) {
        return slc_fail(err, SLC_ERR_USAGE, "tolerance and time limit must be 0 or more");
    }
    if (!(options->holdout >= 0.0) || !(options->holdout <= 0.5)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the held-out part must be between 0 and 50 %% of the nonzeros");
    }
    if (options->holdout > 0.0 && (plan->cpu_groups > 0 || plan->request.gpu != NULL)) {
        return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_HOLDOUT,
                               plan->cpu_groups > 0 ? SLC_FIELD_DEVICES : SLC_FIELD_DEVICE,
                               "nonzeros can be held out only if the CPU computes as a single "
                               "device: hold out no nonzeros, or request no other device");
    }
    if (store->manifest.nnz == 0) {
        return slc_fail(
            err, SLC_ERR_NUMERIC,
            "the tensor has no nonzeros (its norm is 0): there is nothing to factorize");
    }
    if (store->manifest.values.zeros == store->manifest.nnz) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "all listed values of the tensor are 0: there is nothing to factorize");
    }
    /* If the sum of squares is below this value, some squares may be subnormal numbers, which have
     * lost digits. */
    if (!(store->manifest.sum_of_squares >= DBL_MIN / DBL_EPSILON) ||
        !isfinite(store->manifest.sum_of_squares)) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "the sum of squares of the tensor is %g, too small or too large to compute "
                        "a fit; scale its values and convert it again",
                        store->manifest.sum_of_squares);
    }
    return SLC_OK;
}

static enum slc_status set_mode_order(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    const struct slc_plan *plan = state->plan;

    memcpy(state->mode_order, options->mode_order_set ? options->mode_order : plan->mode_order,
           state->order * sizeof state->mode_order[0]);
    SLC_TRY(slc_plan_check_order(state->order, state->mode_order, err));
    if (plan->fusion.modes != 0 && memcmp(state->mode_order, plan->mode_order,
                                          state->order * sizeof state->mode_order[0]) != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the plan has passes that update two modes, but for a different order of "
                        "modes than requested: make the plan with the requested order");
    }
    return SLC_OK;
}

bool cp_stop_requested(const struct cp_state *state)
{
    /* Read atomically, because another thread may set the flag. */
    return state->options->stop != NULL &&
           __atomic_load_n(state->options->stop, __ATOMIC_RELAXED) != 0;
}

/* Returns the deadline of options->max_seconds, as a time of slc_clock_ns; 0 if there is none. */
static uint64_t deadline_ns(const struct cp_state *state)
{
    const double limit_ns = state->options->max_seconds * 1e9;

    /* A limit of 2^62 ns (146 years) or more is treated as no limit. */
    return limit_ns > 0.0 && limit_ns < 0x1p62 ? state->start_ns + (uint64_t)limit_ns : 0;
}

static bool time_is_up(const struct cp_state *state)
{
    return slc_stop_wanted(&(struct slc_stop){NULL, deadline_ns(state)});
}

bool cp_stop_due(const struct cp_state *state)
{
    return cp_stop_requested(state) || time_is_up(state);
}

void cp_report_progress(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes)
{
    const struct cp_state *state = context;

    (void)bytes;
    state->options->progress(state->options->context, state->iteration, state->mode, blocks_done,
                             blocks);
}

struct slc_mttkrp_job cp_job(const struct cp_state *state, unsigned mode, struct slc_matrix *output)
{
    struct slc_mttkrp_job job = {.order = state->order,
                                 .mode = mode,
                                 .rank = state->rank,
                                 .nnz = state->store->manifest.nnz,
                                 .workers = state->plan->threads,
                                 .deterministic = state->options->deterministic,
                                 .output = output};

    for (unsigned n = 0; n < state->order; n++) {
        job.factors[n] = &state->result->factors[n];
    }
    return job;
}

/* Returns true if copies per mode must be made before the next iteration. */
static bool copies_due(const struct cp_state *state)
{
    const struct slc_cp_options *options = state->options;

    if (state->copies || state->copies_refused || state->plan->copies_bytes == 0 ||
        cp_stop_requested(state)) {
        return false;
    }
    return slc_plan_starts_with_copies(state->plan) ||
           (state->result->iterations >= SLC_CP_COPIES_AFTER &&
            slc_cp_copies_pay(options->iterations));
}

/* Records the sort order of the new copies in the result. */
static void record_forms(struct cp_state *state)
{
    for (unsigned n = 0; n < state->order; n++) {
        (void)state->backend->ops->replica_form(state->backend, n, &state->result->copies[n]);
    }
}

/* Makes copies per mode. Returns SLC_OK without copies in two cases: if the run must stop (the next
 * iteration then ends it), and if memory is short with SLC_COPIES_AUTO. */
static enum slc_status make_copies(struct cp_state *state, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    const struct slc_stop stop = {state->options->stop, deadline_ns(state)};
    struct slc_error fault = SLC_ERROR_INIT;
    const enum slc_status status =
        slc_replica_load(state->stream, state->backend, slc_reader_info(state->store->reader),
                         state->plan->request.precision, state->plan->threads,
                         state->result->factors, &stop, &fault);

    state->copies_due_after = state->result->iterations;
    state->result->times.copies += slc_seconds_since(start_ns);
    if (status == SLC_OK) {
        state->copies = true;
        state->result->copies_after = state->copies_due_after;
        record_forms(state);
        return SLC_OK;
    }
    if (status == SLC_ERR_MEMORY && state->plan->request.copies == SLC_COPIES_AUTO) {
        state->copies_refused = true;
        state->copies_fault = fault;
        return SLC_OK;
    }
    if (status == SLC_ERR_INTERRUPTED && slc_stop_wanted(&stop)) {
        return SLC_OK;
    }
    slc_error_pass(err, &fault);
    return status;
}

/* Makes the updates of one iteration. If the iteration ends early, sets *stopped and
 * result->reason, and result->fit as described for slc_cp_result. */
static enum slc_status update_modes(struct cp_state *state,
                                    struct slc_cp_iteration *report,
                                    bool *stopped,
                                    struct slc_error *err)
{
    for (unsigned k = state->place; k < state->order; k++) {
        const unsigned mode = state->mode_order[k];
        const uint64_t mode_start_ns = slc_clock_ns();

        if (cp_stop_due(state)) {
            state->result->reason = cp_stop_requested(state) ? SLC_STOP_SIGNAL : SLC_STOP_TIME;
            *stopped = true;
            return k == 0 ? SLC_OK : state->method->measure(state, NULL, err);
        }
        enum slc_status status =
            state->method->update(state, k, &report->singular[mode], stopped, err);
        if (status != SLC_OK || *stopped) {
            state->result->reason = cp_stop_requested(state) ? SLC_STOP_SIGNAL : SLC_STOP_TIME;
            return status;
        }
        report->mode_seconds[mode] = slc_seconds_since(mode_start_ns);
        state->place = k + 1;
        /* After the last update of an iteration, run_iteration writes the checkpoint, because the
         * saved state must include the fit. */
        if (k + 1 < state->order) {
            status = cp_checkpoint_due(state, err);
            SLC_TRY(status);
        }
    }
    state->place = 0;
    return SLC_OK;
}

/* Runs one iteration. Sets *done and result->reason if it is the last iteration. */
static enum slc_status run_iteration(struct cp_state *state, bool *done, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    struct slc_cp_result *result = state->result;
    struct slc_cp_iteration report = {
        .iteration = state->iteration,
        .first_of_copies = state->copies && state->iteration == state->copies_due_after + 1,
        .copies_fault = state->copies_refused && state->iteration == state->copies_due_after + 1
                            ? &state->copies_fault
                            : NULL,
        .copies_bytes = state->plan->copies_bytes,
        .choices = result->choices,
        .second_choices = result->second_choices,
        .copies = state->copies ? result->copies : NULL};
    const uint64_t start_ns = slc_clock_ns();
    const uint32_t settled = state->settled;
    struct slc_stream_stats before, after;

    slc_stream_stats(state->stream, &before);
    enum slc_status status = update_modes(state, &report, done, err);
    if (status != SLC_OK || *done) {
        return status;
    }
    status = state->method->measure(state, &report, err);
    SLC_THEN(status, cp_holdout_measure(state, err));
    SLC_TRY(status);
    report.heldout = result->heldout;
    report.heldout_rmse = result->heldout_rmse;
    report.heldout_mae = result->heldout_mae;
    report.heldout_deviance = result->heldout_deviance;
    slc_stream_stats(state->stream, &after);
    report.bytes_read = after.bytes_read - before.bytes_read;
    report.passes = (unsigned)(after.passes - before.passes);
    report.seconds = slc_seconds_since(start_ns);
    report.settled = state->settled & ~settled;
    result->iterations = state->iteration;
    SLC_TRY(cp_checkpoint_past(state, &report, err));
    if (options->iteration != NULL) {
        options->iteration(options->context, &report);
    }
    state->method->record(state, &report);
    *done = true;
    if (state->method->settled(state)) {
        result->reason = cp_complete_overfits(state) ? SLC_STOP_HOLDOUT : SLC_STOP_TOLERANCE;
    } else if (state->iteration == options->iterations) {
        result->reason = SLC_STOP_ITERATIONS;
    } else if (cp_stop_requested(state)) {
        result->reason = SLC_STOP_SIGNAL;
    } else if (time_is_up(state)) {
        result->reason = SLC_STOP_TIME;
    } else {
        *done = false;
    }
    state->unsaved = true;
    return *done ? SLC_OK : cp_checkpoint_due(state, err);
}

/* Creates the executor and loads the starting factors into it. */
static enum slc_status start_executor(struct cp_state *state, struct slc_error *err)
{
    struct slc_executor_setup setup = {.parts = state->options->parts,
                                       .stream = state->stream,
                                       .plan = state->plan,
                                       .factors = state->result->factors,
                                       .output = &state->output,
                                       .dense = state->dense};

    setup.parts.backend = state->backend;
    SLC_TRY(slc_executor_create(&setup, &state->executor, err));
    return state->executor->ops->load(state->executor, err);
}

/* Copies the factors and the statistics of the executor into the result. */
static enum slc_status finish_executor(struct cp_state *state, struct slc_error *err)
{
    const struct slc_executor_ops *ops = state->executor->ops;
    struct slc_executor_stats stats;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < state->order && status == SLC_OK; n++) {
        status = ops->read_factor(state->executor, n, err);
    }
    ops->stats(state->executor, &stats);
    state->result->device_count = stats.members;
    memcpy(state->result->devices, stats.member, sizeof stats.member);
    state->result->gpu = stats.gpu;
    return status;
}

/* Allocates memory, then computes the starting factors or restores a checkpoint. The folder of the
 * starting factors stays open, so that the factors that are read are those in the identity. */
static enum slc_status start_run(struct cp_state *state, struct slc_error *err)
{
    const struct slc_files *const files = state->choices.files;
    struct slc_held_folder *held = NULL;
    struct slc_error unheld = SLC_ERROR_INIT; /* reported when the folder is read */
    bool resumed = false;

    if (state->choices.init_folder != NULL &&
        slc_model_hold(files, state->choices.init_folder, &held, &unheld) == SLC_OK) {
        state->choices.files = slc_held_folder_files(held);
    }
    enum slc_status status = cp_state_create(state, err);
    SLC_THEN(status, cp_holdout_begin(state, err));
    SLC_THEN(status, cp_init_find(state, err));
    SLC_THEN(status, cp_resume(state, &resumed, err));
    if (status == SLC_OK && !resumed) {
        status = cp_start(state, err);
    }
    if (status == SLC_OK && state->method->begin != NULL) {
        status = state->method->begin(state, resumed, err);
    }
    SLC_THEN(status, start_executor(state, err));
    SLC_THEN(status, cp_checkpoint_start(state, err));
    state->choices.files = files;
    slc_held_folder_close(held);
    state->result->times.init += slc_seconds_since(state->start_ns);
    state->result->reason = SLC_STOP_ITERATIONS;
    return status;
}

/* Ends a run that has no iterations left. The result is the model of the checkpoint, or the
 * starting factors if no checkpoint was resumed. If the checkpoint was written within a pass that
 * updates rows, only some rows of a factor are updated, so this pass is completed first. */
static enum slc_status end_at_checkpoint(struct cp_state *state, struct slc_error *err)
{
    struct slc_cp_result *result = state->result;
    bool singular = false, stopped = false;
    enum slc_status status = SLC_OK;

    if (cp_rows_due(state)) {
        state->iteration = result->iterations + 1;
        status = state->method->update(state, state->place, &singular, &stopped, err);
        state->place += stopped ? 0 : 1;
    }
    if (stopped) {
        result->reason = cp_stop_requested(state) ? SLC_STOP_SIGNAL : SLC_STOP_TIME;
    }
    return status == SLC_OK && !stopped && state->place > 0
               ? state->method->measure(state, NULL, err)
               : status;
}

static enum slc_status run_iterations(struct cp_state *state, struct slc_error *err)
{
    struct slc_cp_result *result = state->result;
    enum slc_status status = start_run(state, err);

    SLC_THEN(status, slc_check_open_files(err));
    SLC_TRY(status);
    bool done = result->iterations >= state->options->iterations;
    if (done) {
        status = end_at_checkpoint(state, err);
    }
    while (!done) {
        if (copies_due(state)) {
            status = make_copies(state, err);
            SLC_TRY(status);
        }
        state->iteration = result->iterations + 1;
        status = run_iteration(state, &done, err);
        SLC_TRY(status);
    }
    SLC_THEN(status, cp_checkpoint_last(state, err));
    SLC_THEN(status, finish_executor(state, err));
    SLC_THEN(status, cp_holdout_measure(state, err));
    SLC_THEN(status, state->method->finish(state, err));
    return status;
}

/* Sets the conflict strategies in the result: those of the plan, or SLC_CONFLICT_REPLICA if the run
 * starts with copies. */
static void copy_strategies(const struct slc_plan *plan, struct slc_cp_result *result)
{
    const struct slc_conflict_choice replica = {.chosen = SLC_CONFLICT_REPLICA};

    for (unsigned n = 0; n < result->order; n++) {
        result->choices[n] = slc_plan_starts_with_copies(plan) ? replica : plan->choices[n];
        result->second_choices[n] = plan->fusion.choices[n];
        result->hybrid[n].wish = plan->request.hybrid;
    }
}

enum slc_status slc_cp_run(const struct slc_store *store,
                           struct slc_stream *stream,
                           struct slc_backend *backend,
                           const struct slc_plan *plan,
                           const struct slc_cp_options *options,
                           struct slc_cp_result *result,
                           struct slc_error *err)
{
    struct cp_state state = {.store = store,
                             .stream = stream,
                             .backend = backend,
                             .plan = plan,
                             .choices = *options,
                             .result = result,
                             .order = store->manifest.order,
                             .rank = slc_cp_components(store->manifest.order, options),
                             .dims = store->manifest.dims,
                             .pending = SLC_MAX_ORDER,
                             .start_ns = slc_clock_ns()};

    state.options = &state.choices;
    memset(result, 0, sizeof *result);
    SLC_TRY(check_options(store, plan, options, err));
    SLC_TRY(cp_method_choose(&state, err));
    if (state.method->check != NULL) {
        SLC_TRY(state.method->check(&state, err));
    }
    SLC_TRY(set_mode_order(&state, err));
    state.norm_x = sqrt(store->manifest.sum_of_squares);
    result->order = state.order;
    result->rank = state.rank;
    result->loss = options->loss;
    result->huber = options->huber;
    result->unlisted = options->unlisted;
    result->biases = state.rank - options->rank;
    result->bias_mean = result->biases > 0;
    result->bias_modes = result->biases > 1 ? (UINT32_C(1) << state.order) - 1 : 0;
    result->norm_x = state.norm_x;
    result->algorithm = state.options->algorithm;
    result->copies_after = UINT_MAX;
    memcpy(result->mode_order, state.mode_order, sizeof result->mode_order);
    copy_strategies(plan, result);
    enum slc_status status = run_iterations(&state, err);
    cp_state_destroy(&state);
    if (status != SLC_OK) {
        slc_cp_result_destroy(result);
        return status;
    }
    result->times.total = state.seconds_before + slc_seconds_since(state.start_ns);
    return SLC_OK;
}
