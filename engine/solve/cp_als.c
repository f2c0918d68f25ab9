/* Implements CP-ALS ([Kolda2009] section 3.4) as a method: A(n) = M(n) V(n)^-1.
 *
 * Each mode needs one pass over the store (the MTTKRP) and one sweep over its factor (cp_update.c).
 * Two consecutive modes may share a pass (cp_fused.c), even the last mode of an iteration and the
 * first mode of the next iteration. In this case an MTTKRP is pending at the end of the iteration.
 * It is not part of the model, and is dropped if the run ends there. The fit is computed from
 * results of the last update. If the backend's MTTKRPs are deterministic, the whole run is
 * deterministic, because all sums are added in an order that depends neither on threads nor on the
 * arrival of blocks. */
#include "base/error/clock.h"
#include "engine/solve/cp_method.h"

/* Computes the MTTKRP of a mode in its own pass, or from the copies. */
static enum slc_status compute_mttkrp(struct cp_state *state, unsigned mode, struct slc_error *err)
{
    struct slc_conflict_choice *choice = &state->result->choices[mode];
    const struct cp_strategy strategy = {state->copies ? SLC_CONFLICT_REPLICA : choice->chosen,
                                         state->copies ? SLC_CONFLICT_AUTO : choice->rival};
    struct cp_pass pass;
    enum slc_status status = cp_pass_begin(state, &strategy, 1, &pass, err);

    if (status == SLC_OK) {
        const struct slc_executor_pass mttkrp = {.mode = mode,
                                                 .choice = choice,
                                                 .copies = state->copies,
                                                 .hybrid = &state->result->hybrid[mode],
                                                 .cuts = pass.cuts,
                                                 .stop = pass.stop,
                                                 .progress = pass.progress,
                                                 .progress_context = state};

        status = state->executor->ops->mttkrp(state->executor, &mttkrp, err);
    }
    SLC_TRY(status);
    if (!state->copies) {
        choice->rival = SLC_CONFLICT_AUTO; /* later passes of the mode make no trial */
    }
    return SLC_OK;
}

static enum slc_status solve_mode(struct cp_state *state,
                                  unsigned mode,
                                  const struct slc_buffer *output,
                                  bool *singular,
                                  struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    const enum slc_status status = cp_update(state, mode, output, singular, err);

    state->result->times.solve += slc_seconds_since(start_ns);
    return status;
}

/* Updates the mode at position `place` in the order of modes. The MTTKRP is pending from the
 * previous pass, or comes from a pass that also leaves an MTTKRP pending for the next mode, or from
 * a pass for this mode alone. Sets *stopped if the run must stop and the update is incomplete. */
enum slc_status cp_mttkrp_update(
    struct cp_state *state, unsigned place, bool *singular, bool *stopped, struct slc_error *err)
{
    const unsigned mode = state->mode_order[place];
    const uint64_t start_ns = slc_clock_ns();
    struct slc_error fault = SLC_ERROR_INIT;

    state->mode = mode;
    if (state->pending == mode) {
        state->pending = SLC_MAX_ORDER;
        return solve_mode(state, mode, &state->second_output, singular, err);
    }
    /* A fused pass that is resumed from a checkpoint is completed even if the run ends after it. */
    if (cp_fuses(state, place) || cp_rows_due(state)) {
        return cp_fused_update(state, place, singular, stopped, err);
    }
    enum slc_status status = compute_mttkrp(state, mode, &fault);
    state->result->times.mttkrp += slc_seconds_since(start_ns);
    if (status == SLC_ERR_INTERRUPTED && cp_stop_due(state)) {
        *stopped = true;
        return SLC_OK;
    }
    if (status != SLC_OK) {
        slc_error_pass(err, &fault);
        return status;
    }
    return solve_mode(state, mode, &state->output, singular, err);
}

enum slc_status
cp_mttkrp_measure(struct cp_state *state, struct slc_cp_iteration *report, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    double fit = 0.0;
    enum slc_status status = cp_fit(state, &fit, err);

    state->result->times.fit += slc_seconds_since(start_ns);
    SLC_TRY(status);
    state->result->fit = fit;
    if (report != NULL) {
        report->fit = fit;
        report->delta = state->iteration == 1 ? fit : fit - state->fit;
    }
    return SLC_OK;
}

void cp_mttkrp_record(struct cp_state *state, const struct slc_cp_iteration *report)
{
    state->fit = report->fit;
    cp_fit_changed(state, report->iteration, report->fit, report->delta);
}

const struct cp_method cp_method_als = {.create = cp_mttkrp_create,
                                        .destroy = cp_mttkrp_destroy,
                                        .update = cp_mttkrp_update,
                                        .measure = cp_mttkrp_measure,
                                        .record = cp_mttkrp_record,
                                        .settled = cp_fit_settled,
                                        .finish = cp_finish};
