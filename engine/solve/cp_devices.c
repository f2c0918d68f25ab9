/*
 * CP-ALS on several devices: what the loop and the update hand to engine/devices.h in place of the
 * backend and the dense algebra of one. The first device works on the factors of the result, so
 * that start, finish and whatever a stop leaves behind are as with one.
 */
#include "engine/solve/cp_state.h"

enum slc_status cp_devices_start(struct cp_state *state, struct slc_error *err)
{
    const struct slc_devices_setup setup = {.layouts = state->options->layouts,
                                            .plan = state->plan,
                                            .backends = state->options->devices,
                                            .dense = state->dense,
                                            .factors = state->result->factors,
                                            .output = &state->output,
                                            .rank = state->rank};
    enum slc_status status;

    if (state->plan->devices == 0) {
        return SLC_OK;
    }
    if (setup.backends == NULL || setup.layouts == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "the plan has %u devices, but none are given",
                        state->plan->devices);
    }
    status = slc_devices_create(&setup, &state->devices, err);
    return status == SLC_OK ? slc_devices_load(state->devices, err) : status;
}

void cp_devices_take_stats(struct cp_state *state)
{
    state->result->device_count = state->plan->devices;
    for (unsigned d = 0; d < state->plan->devices; d++) {
        slc_devices_stats(state->devices, d, &state->result->devices[d]);
    }
}

enum slc_status cp_dense_update(struct cp_state *state,
                                unsigned mode,
                                const struct slc_buffer *output,
                                const struct slc_update_sums *sums,
                                struct slc_error *err)
{
    const struct slc_matrix mttkrp = cp_output_view(state, output, mode);

    if (state->devices != NULL) {
        return slc_devices_update(state->devices, &state->solver, mode, sums, err);
    }
    return slc_dense_update(state->dense, &state->solver, &mttkrp, &state->result->factors[mode],
                            sums, err);
}

enum slc_status
cp_dense_scale(struct cp_state *state, unsigned mode, const double *scale, struct slc_error *err)
{
    return state->devices != NULL
               ? slc_devices_scale(state->devices, mode, scale, err)
               : slc_dense_scale(state->dense, &state->result->factors[mode], scale, err);
}
