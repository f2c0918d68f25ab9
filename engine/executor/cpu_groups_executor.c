/* Groups of CPU workers (cpu_groups.h), the first of which works on the host's factors. */
#include "engine/executor/executor_impl.h"

#include "base/memory/memory.h"

#include <string.h>

struct groups_executor {
    struct slc_executor base;
    struct slc_cpu_groups *groups;
};

static struct slc_cpu_groups *groups_of(const struct slc_executor *executor)
{
    return ((const struct groups_executor *)executor)->groups;
}

static enum slc_status load_factors(struct slc_executor *executor, struct slc_error *err)
{
    return slc_cpu_groups_load(groups_of(executor), err);
}

static enum slc_status compute_mttkrp(struct slc_executor *executor,
                                      const struct slc_executor_pass *pass,
                                      struct slc_error *err)
{
    return slc_cpu_groups_mttkrp(groups_of(executor), executor->setup.stream, pass->mode,
                                 pass->stop, pass->progress, pass->progress_context, err);
}

static enum slc_status
read_output(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    return slc_cpu_groups_gather(groups_of(executor), mode, err);
}

static enum slc_status update_rows(struct slc_executor *executor,
                                   unsigned mode,
                                   const struct slc_matrix *mttkrp,
                                   const struct slc_solver *solver,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err)
{
    (void)mttkrp;
    return slc_cpu_groups_update(groups_of(executor), solver, mode, sums, err);
}

static enum slc_status scale_factor(struct slc_executor *executor,
                                    unsigned mode,
                                    const double *scale,
                                    struct slc_error *err)
{
    return slc_cpu_groups_scale(groups_of(executor), mode, scale, err);
}

static void read_stats(const struct slc_executor *executor, struct slc_executor_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->members = executor->setup.plan->cpu_groups;
    for (unsigned d = 0; d < stats->members; d++) {
        slc_cpu_groups_stats(groups_of(executor), d, &stats->member[d]);
    }
}

static void destroy_executor(struct slc_executor *executor)
{
    slc_cpu_groups_destroy(groups_of(executor));
    slc_free(executor);
}

static const struct slc_executor_ops groups_ops = {.load = load_factors,
                                                   .mttkrp = compute_mttkrp,
                                                   .read_output = read_output,
                                                   .update_rows = update_rows,
                                                   .scale = scale_factor,
                                                   .read_factor = slc_executor_read_nothing,
                                                   .stats = read_stats,
                                                   .destroy = destroy_executor};

enum slc_status slc_cpu_groups_executor_create(const struct slc_executor_setup *setup,
                                               struct slc_executor **executor,
                                               struct slc_error *err)
{
    const struct slc_cpu_groups_setup groups = {.layouts = setup->parts.layouts,
                                                .plan = setup->plan,
                                                .backends = setup->parts.groups,
                                                .dense = setup->dense,
                                                .factors = setup->factors,
                                                .output = setup->output,
                                                .rank = setup->plan->request.rank};
    struct groups_executor *made;
    enum slc_status status;

    if (groups.backends == NULL || groups.layouts == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "the plan has %u devices, but none are given",
                        setup->plan->cpu_groups);
    }
    SLC_TRY(slc_executor_allocate(&groups_ops, setup, sizeof *made, &made, err));
    status = slc_cpu_groups_create(&groups, &made->groups, err);
    if (status != SLC_OK) {
        slc_free(made);
        return status;
    }
    *executor = &made->base;
    return SLC_OK;
}
