/* Several GPUs (gpu_group.h). Neither factors nor outputs pass through the host. */
#include "engine/executor/executor_impl.h"

#include <string.h>

static enum slc_status load_factors(struct slc_executor *executor, struct slc_error *err)
{
    return slc_gpu_group_load(executor->setup.parts.gpus, executor->setup.factors, err);
}

static enum slc_status compute_mttkrp(struct slc_executor *executor,
                                      const struct slc_executor_pass *pass,
                                      struct slc_error *err)
{
    return slc_gpu_group_mttkrp(executor->setup.parts.gpus, pass->mode, pass->stop, pass->progress,
                                pass->progress_context, err);
}

static enum slc_status
read_output(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    struct slc_matrix output = slc_executor_output(executor, mode);

    return slc_gpu_group_output(executor->setup.parts.gpus, &output, err);
}

static enum slc_status update_rows(struct slc_executor *executor,
                                   unsigned mode,
                                   const struct slc_matrix *mttkrp,
                                   const struct slc_solver *solver,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err)
{
    (void)mttkrp;
    return slc_gpu_group_update(executor->setup.parts.gpus, mode, solver, sums, err);
}

static enum slc_status scale_factor(struct slc_executor *executor,
                                    unsigned mode,
                                    const double *scale,
                                    struct slc_error *err)
{
    return slc_gpu_group_scale(executor->setup.parts.gpus, mode, scale, err);
}

static enum slc_status
read_factor(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    return slc_gpu_group_read(executor->setup.parts.gpus, mode, &executor->setup.factors[mode],
                              err);
}

static void read_stats(const struct slc_executor *executor, struct slc_executor_stats *stats)
{
    const struct slc_gpu_group *gpus = executor->setup.parts.gpus;

    memset(stats, 0, sizeof *stats);
    stats->members = executor->setup.plan->request.gpu_count;
    for (unsigned d = 0; d < stats->members; d++) {
        slc_gpu_group_stats(gpus, d, &stats->member[d]);
    }
    slc_gpu_group_sum(gpus, &stats->gpu);
}

static const struct slc_executor_ops gpu_group_ops = {.load = load_factors,
                                                      .mttkrp = compute_mttkrp,
                                                      .read_output = read_output,
                                                      .update_rows = update_rows,
                                                      .scale = scale_factor,
                                                      .read_factor = read_factor,
                                                      .stats = read_stats,
                                                      .destroy = slc_executor_free};

enum slc_status slc_gpu_group_executor_create(const struct slc_executor_setup *setup,
                                              struct slc_executor **executor,
                                              struct slc_error *err)
{
    const struct slc_plan_request *request = &setup->plan->request;

    if (setup->parts.gpus == NULL || setup->parts.gpu != NULL ||
        slc_stream_device(setup->stream) != request->gpu ||
        slc_stream_device_count(setup->stream) != request->gpu_count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "plan, stream and options have to have the same devices (accelerators)");
    }
    return slc_executor_allocate(&gpu_group_ops, setup, sizeof **executor, executor, err);
}
