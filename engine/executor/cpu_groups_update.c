/* Implements the steps of groups of CPU workers after an MTTKRP. Each group completes the output
 * rows that it owns (with SLC_SPLIT_NNZ it adds the partial sums of the other groups) and solves
 * its rows of the factor. Then an exchange in a ring makes all copies of the factor equal.
 *
 * The threads of a group claim units of rows one by one. The column sums of each unit are stored
 * separately and added in row order. The total therefore does not depend on the threads that
 * computed it and, with SLC_SPLIT_PARTITIONS, not on the number of groups. */
#include "engine/executor/cpu_groups_impl.h"

#include "base/error/clock.h"

/* Adds the `count` numbers of `from` to those of `to`, for either value type. */
static void add_numbers(enum slc_value_type type, void *to, const void *from, uint64_t count)
{
    if (type == SLC_F32) {
        for (uint64_t i = 0; i < count; i++) {
            ((float *)to)[i] += ((const float *)from)[i];
        }
    } else {
        for (uint64_t i = 0; i < count; i++) {
            ((double *)to)[i] += ((const double *)from)[i];
        }
    }
}

/* Adds the other groups' partial sums of `rows` to the output of the group that owns the rows. */
static enum slc_status
reduce_rows(struct slc_cpu_groups *groups, unsigned number, const struct slc_row_span *rows)
{
    const unsigned owner = number / groups->threads;
    struct slc_cpu_group *own = &groups->group[owner];
    unsigned char *sums = (unsigned char *)groups->staging.data + 2 * number * groups->unit_bytes;
    unsigned char *part = sums + groups->unit_bytes;
    const uint64_t count = rows->end - rows->first;
    struct slc_error *fault = &groups->workers[number].fault;
    enum slc_status status =
        own->backend->ops->rows_read(own->backend, &own->view, rows->first, count, sums, fault);

    for (unsigned d = 0; d < groups->count && status == SLC_OK; d++) {
        struct slc_cpu_group *other = &groups->group[d];

        if (d != owner) {
            status = other->backend->ops->rows_read(other->backend, &other->view, rows->first,
                                                    count, part, fault);
            add_numbers(own->view.type, sums, part, count * own->view.pitch);
        }
    }
    return status != SLC_OK ? status
                            : own->backend->ops->rows_write(own->backend, &own->view, rows->first,
                                                            count, sums, fault);
}

/* Claims units of rows of the worker's group, completes their outputs and solves their rows. */
static void finish_units(void *context, unsigned number, unsigned workers)
{
    struct slc_cpu_groups *groups = context;
    const unsigned d = number / groups->threads;
    const struct slc_group_division *division = &groups->division[groups->mode];
    const struct slc_device_rows *piece = &division->pieces[d];
    const uint64_t elements = slc_dense_columns_elements(groups->base.setup.plan->request.rank);
    struct slc_cpu_group *group = &groups->group[d];
    struct slc_cpu_group_worker *worker = &groups->workers[number];
    enum slc_status status = SLC_OK;

    (void)workers;
    while (status == SLC_OK) {
        const uint64_t unit = atomic_fetch_add(&group->next_unit, 1);
        uint64_t start_ns = slc_clock_ns();

        if (unit >= piece->count) {
            return;
        }
        if (groups->base.setup.plan->request.split == SLC_SPLIT_NNZ && groups->count > 1) {
            status = reduce_rows(groups, number, &piece->ranges[unit]);
            worker->reduce_ns += slc_clock_ns() - start_ns;
            start_ns = slc_clock_ns();
        }
        if (status == SLC_OK && groups->solver != NULL) {
            const uint64_t at = (uint64_t)(piece->ranges - division->units) + unit;

            status = slc_dense_update_part(
                groups->base.setup.dense, groups->solver, &group->view,
                &group->factors[groups->mode], piece->ranges[unit].first, piece->ranges[unit].end,
                number, (double *)groups->columns.data + division->ordinal[at] * elements,
                &worker->fault);
            worker->solve_ns += slc_clock_ns() - start_ns;
        }
    }
}

/* Completes the outputs of `mode`. With a solver, solves the factor and exchanges its rows between
 * groups; without one (NULL), exchanges the rows of the outputs. */
static enum slc_status finish_rows(struct slc_cpu_groups *groups,
                                   const struct slc_solver *solver,
                                   unsigned mode,
                                   struct slc_error *err)
{
    struct slc_matrix *copies[SLC_MAX_DEVICES];
    struct slc_exchange_stats exchanged[SLC_MAX_DEVICES];
    const struct slc_exchange_job job = {groups->base.setup.parts.groups, copies,
                                         groups->division[mode].pieces};

    groups->mode = mode;
    groups->solver = solver;
    for (unsigned d = 0; d < groups->count; d++) {
        copies[d] = solver != NULL ? &groups->group[d].factors[mode] : &groups->group[d].view;
        atomic_store(&groups->group[d].next_unit, 0);
    }
    enum slc_status status =
        slc_cpu_groups_run(groups, groups->count * groups->threads, finish_units, err);
    SLC_THEN(status, slc_exchange_run(groups->exchange, &job, exchanged, err));
    for (unsigned w = 0; w < groups->count * groups->threads; w++) {
        struct slc_cpu_group_worker *worker = &groups->workers[w];
        struct slc_member_stats *stats = &groups->group[w / groups->threads].stats;

        stats->reduce_seconds += (double)worker->reduce_ns * 1e-9 / groups->threads;
        stats->solve_seconds += (double)worker->solve_ns * 1e-9 / groups->threads;
        worker->reduce_ns = 0;
        worker->solve_ns = 0;
    }
    for (unsigned d = 0; d < groups->count && status == SLC_OK; d++) {
        groups->group[d].stats.sent_bytes += exchanged[d].bytes_sent;
        groups->group[d].stats.exchange_seconds += exchanged[d].copy_seconds;
        groups->group[d].stats.exchange_wait_seconds += exchanged[d].wait_seconds;
    }
    return status;
}

enum slc_status slc_cpu_groups_update(struct slc_executor *executor,
                                      unsigned mode,
                                      const struct slc_matrix *mttkrp,
                                      const struct slc_solver *solver,
                                      const struct slc_update_sums *sums,
                                      struct slc_error *err)
{
    struct slc_cpu_groups *groups = (struct slc_cpu_groups *)executor;

    (void)mttkrp;
    SLC_TRY(finish_rows(groups, solver, mode, err));
    slc_dense_columns_join(executor->setup.plan->request.rank, groups->columns.data,
                           groups->division[mode].unit_count, sums);
    /* All copies are equal, so the Gram matrix is computed from the first copy. */
    return slc_dense_update_gram(executor->setup.dense, &executor->setup.factors[mode], sums->gram,
                                 err);
}

enum slc_status
slc_cpu_groups_gather(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    return finish_rows((struct slc_cpu_groups *)executor, NULL, mode, err);
}

enum slc_status slc_cpu_groups_scale(struct slc_executor *executor,
                                     unsigned mode,
                                     const double *scale,
                                     struct slc_error *err)
{
    struct slc_cpu_groups *groups = (struct slc_cpu_groups *)executor;

    for (unsigned d = 0; d < groups->count; d++) {
        SLC_TRY(
            slc_dense_scale(executor->setup.dense, &groups->group[d].factors[mode], scale, err));
    }
    return SLC_OK;
}
