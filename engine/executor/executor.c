/* Chooses an executor, and implements the functions that executors share. */
#include "engine/executor/executor_impl.h"

#include "base/memory/memory.h"

static slc_executor_create_fn *choose_executor(const struct slc_executor_setup *setup)
{
    const struct slc_plan *plan = setup->plan;

    if (plan->request.gpu_count > 0 || setup->parts.gpus != NULL) {
        return slc_gpu_group_executor_create;
    }
    if (plan->request.gpu != NULL || setup->parts.gpu != NULL) {
        return slc_gpu_executor_create;
    }
    return plan->cpu_groups > 0 ? slc_cpu_groups_executor_create : slc_cpu_executor_create;
}

enum slc_status slc_executor_create(const struct slc_executor_setup *setup,
                                    struct slc_executor **executor,
                                    struct slc_error *err)
{
    return choose_executor(setup)(setup, executor, err);
}

void slc_executor_destroy(struct slc_executor *executor)
{
    if (executor != NULL) {
        executor->ops->destroy(executor);
    }
}

enum slc_status slc_executor_allocate(const struct slc_executor_ops *ops,
                                      const struct slc_executor_setup *setup,
                                      size_t bytes,
                                      void *executor,
                                      struct slc_error *err)
{
    struct slc_executor *made = slc_calloc(1, bytes);

    SLC_TRY(slc_check_memory(made != NULL, err, "for an executor"));
    made->ops = ops;
    made->setup = *setup;
    *(void **)executor = made;
    return SLC_OK;
}

enum slc_status
slc_executor_read_nothing(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    (void)executor;
    (void)mode;
    (void)err;
    return SLC_OK;
}

void slc_executor_free(struct slc_executor *executor)
{
    slc_free(executor);
}

static const struct slc_layout_info *layout_of(const struct slc_executor *executor, unsigned mode)
{
    const struct slc_executor_setup *setup = &executor->setup;

    return slc_reader_info(slc_stream_reader(setup->stream, setup->plan->mode_layout[mode]));
}

struct slc_matrix slc_executor_output(const struct slc_executor *executor, unsigned mode)
{
    const struct slc_plan_request *request = &executor->setup.plan->request;

    return (struct slc_matrix){.type = request->precision,
                               .rows = layout_of(executor, mode)->dims[mode],
                               .cols = request->rank,
                               .pitch = slc_matrix_pitch(request->precision, request->rank),
                               .buffer = *executor->setup.output};
}

struct slc_mttkrp_job slc_executor_job(const struct slc_executor *executor,
                                       const struct slc_executor_pass *pass,
                                       struct slc_matrix *output)
{
    const struct slc_plan *plan = executor->setup.plan;
    const struct slc_layout_info *info = layout_of(executor, pass->mode);
    struct slc_mttkrp_job job = {.order = info->order,
                                 .mode = pass->mode,
                                 .rank = plan->request.rank,
                                 .nnz = info->nnz,
                                 .workers = plan->threads,
                                 .deterministic = plan->request.deterministic,
                                 .partitions = plan->partitions[pass->mode],
                                 .conflict =
                                     pass->copies ? SLC_CONFLICT_REPLICA : pass->choice->chosen,
                                 .rival = pass->copies ? SLC_CONFLICT_AUTO : pass->choice->rival,
                                 .output = output};

    for (unsigned n = 0; n < info->order; n++) {
        job.factors[n] = &executor->setup.factors[n];
    }
    return job;
}
