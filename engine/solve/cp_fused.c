/* Updates two modes in one pass.
 *
 * The system matrix V of a mode depends only on the other factors, so it is known before the pass.
 * A row of the factor depends only on V and its row of the MTTKRP. When a worker has multiplied all
 * nonzeros of a range of rows, it therefore solves these rows. It then multiplies the nonzeros of
 * the range again, with the new rows, for the MTTKRP of the next mode, while the nonzeros are in
 * memory. This second MTTKRP uses the factor as it is stored, before its norms are known. It stays
 * valid, because norms are kept separate from the stored factor (cp_update.c). If stored columns
 * must be scaled, the columns of the second MTTKRP are scaled by the same powers of two.
 *
 * Results differ from plain passes in the same order of modes only by the order of summation. */
#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "cpu/cpu.h"
#include "engine/solve/cp_state.h"
#include "engine/stream/fused.h"

#include <inttypes.h>
#include <string.h>

enum slc_status cp_fused_create(struct cp_state *state, struct slc_error *err)
{
    const struct slc_plan *plan = state->plan;
    uint64_t rows_max = 0, ranges_max = 0;
    struct slc_matrix output = {0};
    enum slc_status status = SLC_OK;

    if (plan->fusion.modes == 0) {
        return SLC_OK;
    }
    for (unsigned n = 0; n < state->order && status == SLC_OK; n++) {
        if ((plan->fusion.seconds >> n & 1U) != 0 && state->dims[n] > rows_max) {
            rows_max = state->dims[n];
        }
        if ((plan->fusion.modes >> n & 1U) != 0) {
            status =
                slc_row_ranges_make(slc_stream_reader(state->stream, plan->mode_layout[n]), n,
                                    plan->schedule == SLC_SCHEDULE_FILE, &state->ranges[n], err);
            ranges_max = state->ranges[n].count > ranges_max ? state->ranges[n].count : ranges_max;
        }
    }
    SLC_THEN(status, slc_cpu_backend_create(&state->second_backend, err));
    if (status == SLC_OK) {
        status = slc_matrix_create(&output, plan->request.precision, rows_max, state->rank, err);
        state->second_output = output.buffer;
    }
    SLC_TRY(status);
    state->solved = slc_calloc(ranges_max, sizeof *state->solved);
    SLC_TRY(slc_check_memory(state->solved != NULL, err, "to record %" PRIu64 " ranges of rows",
                             ranges_max));
    return SLC_OK;
}

bool cp_fuses(const struct cp_state *state, unsigned place)
{
    const bool last = place + 1 == state->order && state->iteration == state->options->iterations;

    return (state->plan->fusion.modes >> state->mode_order[place] & 1U) != 0 && !last &&
           !state->copies;
}

/* Solves the rows of a range. Called when all nonzeros of these rows have been multiplied. */
static enum slc_status
solve_range(void *context, unsigned worker, uint64_t number, struct slc_error *err)
{
    struct cp_state *state = context;
    const unsigned mode = state->mode;
    const struct slc_row_range *range = &state->ranges[mode].ranges[number];
    const struct slc_matrix output = cp_output_view(state, &state->output, mode);

    state->solved[number] = true;
    return slc_dense_update_rows(state->dense, &state->solver, &output,
                                 &state->result->factors[mode], range->first_row, range->end_row,
                                 worker, err);
}

/* Completes the factor of a stopped pass. Rows that have not been solved still have the scales of
 * the previous update. Scales them so that they match the solved rows, and then normalizes the
 * factor. */
static enum slc_status complete_factor(struct cp_state *state, unsigned mode, struct slc_error *err)
{
    double *factor = state->column_inner; /* reused here; cp_update_end overwrites it */

    for (uint32_t r = 0; r < state->rank; r++) {
        factor[r] = state->solver.rows != NULL
                        ? state->start[r] * state->right[r]
                        : state->result->lambda[r] * state->scale[mode][r] * state->right[r];
    }
    for (uint64_t i = 0; i < state->ranges[mode].count; i++) {
        const struct slc_row_range *range = &state->ranges[mode].ranges[i];

        if (!state->solved[i]) {
            slc_dense_scale_rows(&state->result->factors[mode], range->first_row, range->end_row,
                                 factor);
        }
    }
    return cp_update_end(state, mode, &state->output, err);
}

static enum slc_status
run_pass(struct cp_state *state, unsigned mode, unsigned next, struct slc_error *err)
{
    const struct slc_plan *plan = state->plan;
    struct slc_conflict_choice *choice = &state->result->second_choices[next];
    struct slc_matrix outputs[2] = {cp_output_view(state, &state->output, mode),
                                    cp_output_view(state, &state->second_output, next)};
    struct slc_mttkrp_job jobs[2] = {cp_job(state, mode, &outputs[0]),
                                     cp_job(state, next, &outputs[1])};
    struct slc_fused_jobs fused = {.first = state->backend,
                                   .second = state->second_backend,
                                   .first_job = &jobs[0],
                                   .second_job = &jobs[1],
                                   .ranges = &state->ranges[mode],
                                   .range_done = solve_range,
                                   .context = state};
    const struct cp_strategy strategies[2] = {{.conflict = SLC_CONFLICT_ROWS},
                                              {choice->chosen, choice->rival}};
    struct cp_pass pass;

    jobs[0].partitions = state->ranges[mode].count;
    jobs[0].conflict = SLC_CONFLICT_ROWS;
    jobs[1].conflict = choice->chosen;
    jobs[1].rival = choice->rival;
    SLC_TRY(cp_pass_begin(state, strategies, 2, &pass, err));
    fused.cuts = pass.cuts;
    for (uint64_t i = 0; i < state->ranges[mode].count; i++) {
        state->solved[i] = pass.cuts != NULL && i < pass.cuts->first;
    }
    enum slc_status status = slc_fused_stream(state->stream, plan->mode_layout[mode], &fused,
                                              pass.stop, pass.progress, state, err);
    if (status == SLC_OK && jobs[1].rival != SLC_CONFLICT_AUTO) {
        (void)state->second_backend->ops->mttkrp_tried(state->second_backend, choice);
        choice->rival = SLC_CONFLICT_AUTO; /* later passes make no trial */
    }
    state->settled |= UINT32_C(1) << next;
    return status;
}

enum slc_status cp_fused_update(
    struct cp_state *state, unsigned place, bool *singular, bool *stopped, struct slc_error *err)
{
    const unsigned mode = state->mode_order[place];
    const unsigned next = state->mode_order[(place + 1) % state->order];
    uint64_t start_ns = slc_clock_ns();
    struct slc_error fault = SLC_ERROR_INIT;
    enum slc_status status = cp_update_begin(state, mode, singular, err);

    state->result->times.solve += slc_seconds_since(start_ns);
    SLC_TRY(status);
    start_ns = slc_clock_ns();
    status = run_pass(state, mode, next, &fault);
    state->result->times.mttkrp += slc_seconds_since(start_ns);
    if (status == SLC_ERR_INTERRUPTED && cp_stop_due(state)) {
        *stopped = true;
        state->half_updated = true;
        return complete_factor(state, mode, err);
    }
    if (status != SLC_OK) {
        slc_error_pass(err, &fault);
        return status;
    }
    start_ns = slc_clock_ns();
    state->pending = next;
    status = cp_update_end(state, mode, &state->output, err);
    state->result->times.solve += slc_seconds_since(start_ns);
    return status;
}
