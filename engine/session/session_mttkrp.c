/* One MTTKRP by whatever a session computes with; see session.h. */
#include "engine/executor/gpu_executor.h"
#include "engine/session/session.h"

/* By the plan's devices of the CPU. */
static enum slc_status compute_on_devices(struct slc_session *session,
                                          struct slc_session_pass *pass,
                                          struct slc_error *err)
{
    const struct slc_cpu_groups_setup setup = {.layouts = &session->layouts,
                                               .plan = &session->plan,
                                               .backends = session->devices,
                                               .factors = pass->factors,
                                               .output = &pass->output->buffer,
                                               .rank = pass->output->cols};
    struct slc_cpu_groups *devices = NULL;
    enum slc_status status = slc_cpu_groups_create(&setup, &devices, err);

    if (status == SLC_OK) {
        status = slc_cpu_groups_load(devices, err);
    }
    if (status == SLC_OK) {
        status = slc_cpu_groups_mttkrp(devices, session->stream, pass->mode, pass->stop,
                                       pass->progress, pass->progress_context, err);
    }
    if (status == SLC_OK) {
        status = slc_cpu_groups_gather(devices, pass->mode, err);
    }
    for (unsigned d = 0; d < session->plan.cpu_groups && status == SLC_OK; d++) {
        slc_cpu_groups_stats(devices, d, &pass->devices[d]);
    }
    slc_cpu_groups_destroy(devices);
    return status;
}

/* By several GPUs. */
static enum slc_status compute_on_accelerators(struct slc_session *session,
                                               struct slc_session_pass *pass,
                                               struct slc_error *err)
{
    enum slc_status status = slc_gpu_group_load(session->group, pass->factors, err);

    if (status == SLC_OK) {
        status = slc_gpu_group_mttkrp(session->group, pass->mode, pass->stop, pass->progress,
                                      pass->progress_context, err);
    }
    if (status == SLC_OK) {
        status = slc_gpu_group_output(session->group, pass->output, err);
    }
    for (unsigned d = 0; d < session->set.count && status == SLC_OK; d++) {
        slc_gpu_group_stats(session->group, d, &pass->devices[d]);
    }
    return status;
}

/* By the GPU, or by it and the CPU, as the share has it. */
static enum slc_status compute_on_accelerator(struct slc_session *session,
                                              struct slc_session_pass *pass,
                                              const struct slc_mttkrp_job *job,
                                              struct slc_error *err)
{
    struct slc_hybrid *hybrid = &pass->hybrid[pass->mode];
    const struct slc_hybrid_cpu cpu = {.backend = session->backend, .job = job, .hybrid = hybrid};
    struct slc_device *device = session->gpu;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < session->store.manifest.order && status == SLC_OK; n++) {
        if (n != pass->mode) {
            status = device->ops->factor_write(device, n, &pass->factors[n], err);
        }
    }
    if (status == SLC_OK && hybrid->wish.kind != SLC_HYBRID_NONE) {
        status =
            slc_gpu_executor_mttkrp_hybrid(device, session->stream, &session->plan, &cpu,
                                           pass->stop, pass->progress, pass->progress_context, err);
    } else if (status == SLC_OK) {
        status = slc_gpu_executor_mttkrp(device, session->stream, &session->plan, pass->mode,
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
    pass->hybrid[pass->mode].wish = plan->request.hybrid;
    for (unsigned n = 0; n < job.order; n++) {
        job.factors[n] = &pass->factors[n];
    }
    if (session->group != NULL) {
        return compute_on_accelerators(session, pass, err);
    }
    if (session->gpu != NULL) {
        return compute_on_accelerator(session, pass, &job, err);
    }
    if (plan->cpu_groups > 0) {
        return compute_on_devices(session, pass, err);
    }
    status = slc_mttkrp_stream(session->stream, plan->mode_layout[pass->mode], session->backend,
                               &job, pass->stop, pass->progress, pass->progress_context, err);
    (void)session->backend->ops->mttkrp_tried(session->backend, &pass->choice);
    return status;
}
