/*
 * CP-ALS on other devices than the one backend: what the loop and the update hand to them in place
 * of that and its dense algebra.
 *
 * Of several devices of the CPU (engine/executor/cpu_groups.h) the first works on the factors of
 * the result, so that start, finish and whatever a stop leaves behind are as with one. A
 * GPU has factors and MTTKRPs of its own. It gets the start, and the factors of the result
 * are what they were then until the run ends, for whatever reason, and they are read back; several
 * of them (engine/executor/gpu_group.h) have a copy each, of which the first comes back. Where a
 * GPU shares its MTTKRPs with the backend, that computes from the factors of the result,
 * and those that have been updated are read back before an MTTKRP in which the backend takes part.
 */
#include "engine/solve/cp_state.h"

#include "base/error/clock.h"

/* Gives the GPU the factors of the start. */
static enum slc_status start_accelerator(struct cp_state *state, struct slc_error *err)
{
    struct slc_device *device = state->options->gpu;
    enum slc_status status = SLC_OK;

    if (device != state->plan->request.gpu || device != slc_stream_device(state->stream)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "plan, stream and options have to have the same device (accelerator)");
    }
    state->gpu = device;
    for (unsigned n = 0; n < state->order && status == SLC_OK; n++) {
        status = device->ops->factor_write(device, n, &state->result->factors[n], err);
    }
    return status;
}

static enum slc_status start_accelerators(struct cp_state *state, struct slc_error *err)
{
    const struct slc_plan_request *request = &state->plan->request;

    if (state->options->gpus == NULL || state->options->gpu != NULL ||
        slc_stream_device(state->stream) != request->gpu ||
        slc_stream_device_count(state->stream) != request->gpu_count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "plan, stream and options have to have the same devices (accelerators)");
    }
    state->gpus = state->options->gpus;
    return slc_gpu_group_load(state->gpus, state->result->factors, err);
}

enum slc_status cp_devices_start(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cpu_groups_setup setup = {.layouts = state->options->layouts,
                                               .plan = state->plan,
                                               .backends = state->options->devices,
                                               .dense = state->dense,
                                               .factors = state->result->factors,
                                               .output = &state->output,
                                               .rank = state->rank};
    enum slc_status status;

    if (state->plan->request.gpu_count > 0 || state->options->gpus != NULL) {
        return start_accelerators(state, err);
    }
    if (state->plan->request.gpu != NULL || state->options->gpu != NULL) {
        return start_accelerator(state, err);
    }
    if (state->plan->cpu_groups == 0) {
        return SLC_OK;
    }
    if (setup.backends == NULL || setup.layouts == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "the plan has %u devices, but none are given",
                        state->plan->cpu_groups);
    }
    status = slc_cpu_groups_create(&setup, &state->devices, err);
    return status == SLC_OK ? slc_cpu_groups_load(state->devices, err) : status;
}

static void finish_accelerators(struct cp_state *state)
{

    state->result->device_count = state->plan->request.gpu_count;
    for (unsigned d = 0; d < state->result->device_count; d++) {
        slc_gpu_group_stats(state->gpus, d, &state->result->devices[d]);
    }
    slc_gpu_group_sum(state->gpus, &state->result->gpu);
}

enum slc_status cp_devices_finish(struct cp_state *state, struct slc_error *err)
{
    struct slc_device *device = state->gpu;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < state->order && status == SLC_OK; n++) {
        status = cp_devices_read(state, n, err);
    }
    if (state->gpus != NULL) {
        finish_accelerators(state);
        return status;
    }
    state->result->device_count = state->plan->cpu_groups;
    for (unsigned d = 0; d < state->plan->cpu_groups; d++) {
        slc_cpu_groups_stats(state->devices, d, &state->result->devices[d]);
    }
    if (device != NULL) {
        device->ops->stats(device, &state->result->gpu);
    }
    return status;
}

enum slc_status cp_devices_read(struct cp_state *state, unsigned mode, struct slc_error *err)
{
    struct slc_device *device = state->gpu;

    if (state->gpus != NULL) {
        return slc_gpu_group_read(state->gpus, mode, &state->result->factors[mode], err);
    }
    state->stale[mode] = false;
    return device != NULL
               ? device->ops->factor_read(device, mode, &state->result->factors[mode], err)
               : SLC_OK;
}

enum slc_status cp_dense_update(struct cp_state *state,
                                unsigned mode,
                                const struct slc_buffer *output,
                                const struct slc_update_sums *sums,
                                struct slc_error *err)
{
    const struct slc_matrix mttkrp = cp_output_view(state, output, mode);
    struct slc_device *device = state->gpu;

    if (state->gpus != NULL) {
        return slc_gpu_group_update(state->gpus, mode, &state->solver, sums, err);
    }
    if (device != NULL) {
        return device->ops->update(device, mode, &state->solver, sums, err);
    }
    if (state->devices != NULL) {
        return slc_cpu_groups_update(state->devices, &state->solver, mode, sums, err);
    }
    return slc_dense_update(state->dense, &state->solver, &mttkrp, &state->result->factors[mode],
                            sums, err);
}

void cp_devices_updated(struct cp_state *state, unsigned mode)
{
    state->stale[mode] = state->gpu != NULL;
}

enum slc_status cp_devices_read_stale(struct cp_state *state,
                                      unsigned except,
                                      double *seconds,
                                      struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < state->order && status == SLC_OK; n++) {
        if (n != except && state->stale[n]) {
            status = cp_devices_read(state, n, err);
        }
    }
    *seconds = slc_seconds_since(start_ns);
    return status;
}

enum slc_status
cp_dense_scale(struct cp_state *state, unsigned mode, const double *scale, struct slc_error *err)
{
    struct slc_device *device = state->gpu;

    if (state->gpus != NULL) {
        return slc_gpu_group_scale(state->gpus, mode, scale, err);
    }
    if (device != NULL) {
        return device->ops->scale(device, mode, scale, err);
    }
    return state->devices != NULL
               ? slc_cpu_groups_scale(state->devices, mode, scale, err)
               : slc_dense_scale(state->dense, &state->result->factors[mode], scale, err);
}
