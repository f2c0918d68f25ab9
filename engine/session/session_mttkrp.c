/* One MTTKRP by whatever a session computes with; see session.h. */
#include "engine/executor/gpu_executor.h"
#include "engine/session/session.h"

/* By the plan's devices of the CPU. */
static enum slc_status compute_on_devices(struct slc_session *session,
                                          struct slc_session_pass *pass,
                                          struct slc_error *err)
{
    const struct slc_devices_setup setup = {.layouts = &session->layouts,
                                            .plan = &session->plan,
                                            .backends = session->devices,
                                            .factors = pass->factors,
                                            .output = &pass->output->buffer,
                                            .rank = pass->output->cols};
    struct slc_devices *devices = NULL;
    enum slc_status status = slc_devices_create(&setup, &devices, err);

    if (status == SLC_OK) {
        status = slc_devices_load(devices, err);
    }
    if (status == SLC_OK) {
        status = slc_devices_mttkrp(devices, session->stream, pass->mode, pass->stop,
                                    pass->progress, pass->progress_context, err);
    }
    if (status == SLC_OK) {
        status = slc_devices_gather(devices, pass->mode, err);
    }
    for (unsigned d = 0; d < session->plan.devices && status == SLC_OK; d++) {
        slc_devices_stats(devices, d, &pass->devices[d]);
    }
    slc_devices_destroy(devices);
    return status;
}

/* By several accelerators. */
static enum slc_status compute_on_accelerators(struct slc_session *session,
                                               struct slc_session_pass *pass,
                                               struct slc_error *err)
{
    enum slc_status status = slc_accelerators_load(session->group, pass->factors, err);

    if (status == SLC_OK) {
        status = slc_accelerators_mttkrp(session->group, pass->mode, pass->stop, pass->progress,
                                         pass->progress_context, err);
    }
    if (status == SLC_OK) {
        status = slc_accelerators_output(session->group, pass->output, err);
    }
    for (unsigned d = 0; d < session->set.count && status == SLC_OK; d++) {
        slc_accelerators_stats(session->group, d, &pass->devices[d]);
    }
    return status;
}

/* By the accelerator, or by it and the CPU, as the share has it. */
static enum slc_status compute_on_accelerator(struct slc_session *session,
                                              struct slc_session_pass *pass,
                                              const struct slc_mttkrp_job *job,
                                              struct slc_error *err)
{
    struct slc_share *share = &pass->shares[pass->mode];
    const struct slc_accelerator_cpu cpu = {
        .backend = session->backend, .job = job, .share = share};
    struct slc_device *device = session->accelerator;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < session->store.manifest.order && status == SLC_OK; n++) {
        if (n != pass->mode) {
            status = device->ops->factor_write(device, n, &pass->factors[n], err);
        }
    }
    if (status == SLC_OK && share->wish.kind != SLC_SHARE_NONE) {
        status =
            slc_accelerator_mttkrp_shared(device, session->stream, &session->plan, &cpu, pass->stop,
                                          pass->progress, pass->progress_context, err);
    } else if (status == SLC_OK) {
        status = slc_accelerator_mttkrp(device, session->stream, &session->plan, pass->mode,
                                        pass->stop, pass->progress, pass->progress_context, err);
    }
    return status == SLC_OK ? device->ops->output_read(device, pass->output, err) : status;
}

enum slc_status slc_session_mttkrp(struct slc_session *session,
                                   struct slc_session_pass *pass,
                                   struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;
    struct slc_mttkrp_job job = {.order = session->store.manifest.order,
                                 .mode = pass->mode,
                                 .rank = plan->request.rank,
                                 .nnz = session->store.manifest.nnz,
                                 .workers = plan->threads,
                                 .deterministic = plan->request.deterministic,
                                 .partitions = plan->partitions[pass->mode],
                                 .conflict = plan->choices[pass->mode].chosen,
                                 .rival = plan->choices[pass->mode].rival,
                                 .output = pass->output};
    enum slc_status status;

    pass->choice = plan->choices[pass->mode];
    pass->shares[pass->mode].wish = plan->request.share;
    for (unsigned n = 0; n < job.order; n++) {
        job.factors[n] = &pass->factors[n];
    }
    if (session->group != NULL) {
        return compute_on_accelerators(session, pass, err);
    }
    if (session->accelerator != NULL) {
        return compute_on_accelerator(session, pass, &job, err);
    }
    if (plan->devices > 0) {
        return compute_on_devices(session, pass, err);
    }
    status = slc_mttkrp_stream(session->stream, plan->mode_layout[pass->mode], session->backend,
                               &job, pass->stop, pass->progress, pass->progress_context, err);
    (void)session->backend->ops->mttkrp_tried(session->backend, &pass->choice);
    return status;
}
