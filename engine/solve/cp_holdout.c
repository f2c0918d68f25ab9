/* Holds nonzeros out of a factorization, and measures the error of the model on these nonzeros. */
#include "base/memory/checked.h"
#include "engine/solve/cp_state.h"

#include <float.h>
#include <math.h>

uint64_t slc_cp_holdout_bytes(unsigned order, uint64_t nnz, double holdout, unsigned workers)
{
    uint64_t bytes;

    if (holdout == 0.0) {
        return 0;
    }
    return slc_add_u64(slc_held_memory_bytes(order, nnz, holdout),
                       slc_buffer_footprint((uint64_t)workers * SLC_HOLDOUT_SCRATCH_BYTES +
                                                SLC_MAX_RANK * sizeof(double),
                                            SLC_PAGES_SMALL),
                       &bytes)
               ? bytes
               : UINT64_MAX;
}

void cp_holdout_apply(struct cp_state *state)
{
    if (state->held.count > 0) {
        slc_stream_hold_out(state->stream, &state->holdout,
                            (char *)state->holdout_scratch.data + SLC_MAX_RANK * sizeof(double));
    }
}

enum slc_status cp_holdout_begin(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    const struct slc_manifest *manifest = &state->store->manifest;

    if (options->holdout == 0.0) {
        return SLC_OK;
    }
    state->holdout = slc_holdout_choose(options->holdout, options->holdout_seed);
    state->holdout.drop = options->unlisted == SLC_UNLISTED_UNKNOWN;
    SLC_TRY(slc_buffer_create(&state->holdout_scratch,
                              (uint64_t)state->plan->threads * SLC_HOLDOUT_SCRATCH_BYTES +
                                  SLC_MAX_RANK * sizeof(double),
                              SLC_PAGES_SMALL, err));
    SLC_TRY(slc_held_gather(state->stream, state->plan->mode_layout[state->mode_order[0]],
                            &state->holdout, options->holdout, state->order, manifest->nnz,
                            options->stop, &state->held, err));
    cp_holdout_apply(state);
    double rest = manifest->sum_of_squares - slc_squares_total(&state->held.squares);
    if (!isfinite(rest)) {
        return slc_fail(
            err, SLC_ERR_NUMERIC,
            "a held-out nonzero is too large for f32; scale the values of the tensor or "
            "compute in f64");
    }
    if (!(rest >= DBL_MIN / DBL_EPSILON) ||
        rest < manifest->sum_of_squares * 64.0 * DBL_EPSILON * (double)state->order) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "all nonzeros that are not held out are 0, or negligible compared with "
                        "those that are: hold out a smaller part, or choose another seed");
    }
    state->norm_x = sqrt(rest);
    state->result->norm_x = state->norm_x;
    state->result->heldout = state->held.count;
    state->result->heldout_norm = slc_squares_root(&state->held.squares, 1.0);
    return SLC_OK;
}

enum slc_status cp_holdout_measure(struct cp_state *state, struct slc_error *err)
{
    struct slc_cp_result *result = state->result;
    double *weights = state->holdout_scratch.data;
    struct slc_held_errors errors;

    if (state->held.count == 0) {
        return SLC_OK;
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        weights[r] = result->lambda[r];
        for (unsigned n = 0; n < state->order; n++) {
            weights[r] *= state->scale[n][r];
        }
    }
    SLC_TRY(slc_held_error(&state->held, result->factors, weights, state->options->loss,
                           state->options->huber, state->plan->threads, &errors, err));
    result->heldout_rmse = errors.rmse;
    result->heldout_mae = errors.mae;
    result->heldout_deviance = errors.deviance;
    return SLC_OK;
}

void cp_holdout_end(struct cp_state *state)
{
    if (state->held.count > 0) {
        slc_stream_hold_out(state->stream, NULL, NULL);
    }
    slc_held_destroy(&state->held);
    slc_buffer_destroy(&state->holdout_scratch);
}
