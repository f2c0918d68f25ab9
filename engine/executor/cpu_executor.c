/* Implements the executor of one CPU backend, with dense algebra on the factors in host memory. */
#include "engine/executor/executor_impl.h"

#include "engine/stream/mttkrp.h"

#include <string.h>

static enum slc_status load_nothing(struct slc_executor *executor, struct slc_error *err)
{
    (void)executor;
    (void)err;
    return SLC_OK;
}

static enum slc_status compute_mttkrp(struct slc_executor *executor,
                                      const struct slc_executor_pass *pass,
                                      struct slc_error *err)
{
    const struct slc_executor_setup *setup = &executor->setup;
    struct slc_backend *backend = setup->parts.backend;
    struct slc_matrix output = slc_executor_output(executor, pass->mode);
    const struct slc_mttkrp_job job = slc_executor_job(executor, pass, &output);

    if (pass->part != NULL) {
        return slc_mttkrp_stream_part(setup->stream, setup->plan->mode_layout[pass->mode], backend,
                                      &job, pass->part, pass->stop, pass->progress,
                                      pass->progress_context, err);
    }
    SLC_TRY(slc_mttkrp_stream_parts(setup->stream, setup->plan->mode_layout[pass->mode], backend,
                                    &job, pass->cuts, pass->stop, pass->progress,
                                    pass->progress_context, err));
    if (job.rival != SLC_CONFLICT_AUTO) {
        (void)backend->ops->mttkrp_tried(backend, pass->choice);
    }
    return SLC_OK;
}

static enum slc_status update_rows(struct slc_executor *executor,
                                   unsigned mode,
                                   const struct slc_matrix *mttkrp,
                                   const struct slc_solver *solver,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err)
{
    return slc_dense_update(executor->setup.dense, solver, mttkrp, &executor->setup.factors[mode],
                            sums, err);
}

static enum slc_status scale_factor(struct slc_executor *executor,
                                    unsigned mode,
                                    const double *scale,
                                    struct slc_error *err)
{
    return slc_dense_scale(executor->setup.dense, &executor->setup.factors[mode], scale, err);
}

static void read_stats(const struct slc_executor *executor, struct slc_executor_stats *stats)
{
    (void)executor;
    memset(stats, 0, sizeof *stats);
}

static const struct slc_executor_ops cpu_ops = {.in_parts = true,
                                                .load = load_nothing,
                                                .mttkrp = compute_mttkrp,
                                                .read_output = slc_executor_read_nothing,
                                                .update_rows = update_rows,
                                                .scale = scale_factor,
                                                .read_factor = slc_executor_read_nothing,
                                                .stats = read_stats,
                                                .destroy = slc_executor_free};

enum slc_status slc_cpu_executor_create(const struct slc_executor_setup *setup,
                                        struct slc_executor **executor,
                                        struct slc_error *err)
{
    return slc_executor_allocate(&cpu_ops, setup, sizeof **executor, executor, err);
}
