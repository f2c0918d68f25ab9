/* Implements groups of CPU workers: their memory and their MTTKRPs.
 *
 * With T threads per group, worker w of the stream is thread w % T of group w / T. Each tile goes
 * to the backend of its worker's group; during a pass no group touches another group's memory. A
 * row that is split between partitions has one partial sum per partition. These sums are added
 * after the last tile and before the jobs end, in partition order, so the result does not depend on
 * the groups that computed them. */
#include "engine/executor/cpu_groups_impl.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"

#include <assert.h>
#include <string.h>

static const struct slc_layout_info *info_of(const struct slc_cpu_groups *groups)
{
    return slc_reader_info(groups->base.setup.parts.layouts->reader[0]);
}

static bool is_computed(const struct slc_plan *plan, unsigned mode)
{
    return plan->request.operation == SLC_OP_CPD || plan->request.mode == mode;
}

static uint64_t row_bytes(const struct slc_plan *plan)
{
    return (uint64_t)slc_matrix_pitch(plan->request.precision, plan->request.rank) *
           slc_value_bytes(plan->request.precision);
}

static uint64_t unit_rows(const struct slc_plan *plan, uint64_t rows)
{
    return slc_group_unit_rows(row_bytes(plan), rows);
}

/* Returns the bytes of the largest unit of rows of all computed modes. */
static uint64_t most_unit_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    uint64_t rows = 0;

    for (unsigned n = 0; n < info->order; n++) {
        rows = is_computed(plan, n) ? slc_max_u64(rows, info->dims[n]) : rows;
    }
    return unit_rows(plan, rows) * row_bytes(plan);
}

/* Returns the number of units of rows in the computed mode that has the most units. */
static uint64_t most_units(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    uint64_t units = 0;

    for (unsigned n = 0; n < info->order; n++) {
        if (is_computed(plan, n)) {
            units = slc_max_u64(units, slc_group_units_max(layouts->reader[plan->mode_layout[n]],
                                                           plan->cpu_groups, info->dims[n],
                                                           unit_rows(plan, info->dims[n])));
        }
    }
    return units;
}

/* Sizes of the buffers that all groups share. */
struct buffer_sizes {
    uint64_t columns, staging, split;
};

static bool
sizes_of(const struct slc_layouts *layouts, const struct slc_plan *plan, struct buffer_sizes *sizes)
{
    const uint64_t unit_bytes = most_unit_bytes(layouts, plan);

    sizes->split = slc_matrix_pitch(plan->request.precision, plan->request.rank) * sizeof(double);
    sizes->staging = plan->request.split == SLC_SPLIT_NNZ ? 2 * unit_bytes * plan->threads : 0;
    return slc_mul_u64(most_units(layouts, plan),
                       slc_dense_columns_elements(plan->request.rank) * sizeof(double),
                       &sizes->columns);
}

uint64_t slc_cpu_groups_memory_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    struct buffer_sizes sizes;

    if (!sizes_of(layouts, plan, &sizes)) {
        return UINT64_MAX;
    }
    uint64_t sum = slc_exchange_memory_bytes(plan->cpu_groups, row_bytes(plan)) +
                   slc_buffer_footprint(sizes.columns, SLC_PAGES_SMALL) +
                   slc_buffer_footprint(sizes.staging, SLC_PAGES_SMALL) +
                   slc_buffer_footprint(sizes.split, SLC_PAGES_SMALL) +
                   sizeof(struct slc_cpu_groups) + plan->cpu_groups * sizeof(struct slc_cpu_group) +
                   plan->threads * sizeof(struct slc_cpu_group_worker);
    for (unsigned n = 0; n < info->order; n++) {
        if (is_computed(plan, n)) {
            sum += slc_group_division_memory_bytes(layouts->reader[plan->mode_layout[n]],
                                                   plan->cpu_groups, info->dims[n],
                                                   unit_rows(plan, info->dims[n]));
        }
    }
    return sum;
}

/* Allocates the memory of group `d`; group 0 uses the caller's factors and output. */
static enum slc_status make_group(struct slc_cpu_groups *groups, unsigned d, struct slc_error *err)
{
    struct slc_cpu_group *group = &groups->group[d];
    enum slc_status status = SLC_OK;

    group->backend = groups->base.setup.parts.groups[d];
    group->factors = d == 0 ? groups->base.setup.factors : group->copies;
    for (unsigned n = 0; d > 0 && n < groups->order && status == SLC_OK; n++) {
        const struct slc_matrix *first = &groups->base.setup.factors[n];

        /* If the MTTKRP of only one mode is computed, this mode has no factor. */
        if (first->buffer.data != NULL) {
            status =
                slc_matrix_create(&group->copies[n], first->type, first->rows, first->cols, err);
        }
    }
    if (d > 0 && status == SLC_OK) {
        struct slc_matrix output = {0};
        uint64_t rows = 0;

        for (unsigned n = 0; n < groups->order; n++) {
            rows = is_computed(groups->base.setup.plan, n)
                       ? slc_max_u64(rows, info_of(groups)->dims[n])
                       : rows;
        }
        status = slc_matrix_create(&output, groups->base.setup.plan->request.precision, rows,
                                   groups->base.setup.plan->request.rank, err);
        group->output = output.buffer;
    }
    return status;
}

static enum slc_status divide_modes(struct slc_cpu_groups *groups, struct slc_error *err)
{
    const struct slc_plan *plan = groups->base.setup.plan;
    const uint64_t *dims = info_of(groups)->dims;

    for (unsigned n = 0; n < groups->order; n++) {
        if (is_computed(plan, n) && plan->request.split == SLC_SPLIT_NNZ &&
            plan->partitions[n] > 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the split 'nnz' needs the layout 'blco', but the plan reads mode %u "
                            "from a sorted layout",
                            n + 1);
        }
        if (is_computed(plan, n)) {
            SLC_TRY(slc_group_division_create(
                groups->base.setup.parts.layouts->reader[plan->mode_layout[n]], plan->request.split,
                groups->count, dims[n], unit_rows(plan, dims[n]), &groups->division[n], err));
        }
    }
    return SLC_OK;
}

static enum slc_status make_buffers(struct slc_cpu_groups *groups, struct slc_error *err)
{
    const struct slc_plan *plan = groups->base.setup.plan;
    struct buffer_sizes sizes;

    if (!sizes_of(groups->base.setup.parts.layouts, plan, &sizes)) {
        return slc_fail(err, SLC_ERR_MEMORY, "the buffers for sums of rows do not fit in memory");
    }
    SLC_TRY(slc_buffer_create(&groups->columns, (size_t)sizes.columns, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_buffer_create(&groups->staging, (size_t)sizes.staging, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_buffer_create(&groups->split, (size_t)sizes.split, SLC_PAGES_SMALL, err));
    return slc_exchange_create(groups->count, row_bytes(plan), &groups->exchange, err);
}

static void destroy_groups(struct slc_executor *executor)
{
    struct slc_cpu_groups *groups = (struct slc_cpu_groups *)executor;

    for (unsigned d = 0; d < groups->count; d++) {
        for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
            slc_matrix_destroy(&groups->group[d].copies[n]);
        }
        slc_buffer_destroy(&groups->group[d].output);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_group_division_destroy(&groups->division[n]);
    }
    slc_exchange_destroy(groups->exchange);
    slc_buffer_destroy(&groups->columns);
    slc_buffer_destroy(&groups->staging);
    slc_buffer_destroy(&groups->split);
    slc_free(groups->group);
    slc_free(groups->workers);
    slc_free(groups);
}

enum slc_status slc_cpu_groups_run(struct slc_cpu_groups *groups,
                                   unsigned workers,
                                   slc_team_fn *phase,
                                   struct slc_error *err)
{
    for (unsigned w = 0; w < workers; w++) {
        slc_error_clear(&groups->workers[w].fault);
    }
    enum slc_status status = slc_team_run(workers, phase, groups, err);
    for (unsigned w = 0; w < workers && status == SLC_OK; w++) {
        status = groups->workers[w].fault.status;
        slc_error_pass(err, &groups->workers[w].fault);
    }
    return status;
}

static void load_group(void *context, unsigned d, unsigned count)
{
    struct slc_cpu_groups *groups = context;
    struct slc_cpu_group *group = &groups->group[d];
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;

    (void)count;
    for (unsigned n = 0; d > 0 && n < groups->order && status == SLC_OK; n++) {
        const struct slc_matrix *first = &groups->base.setup.factors[n];

        if (group->copies[n].buffer.data != NULL) {
            status =
                group->backend->ops->rows_write(group->backend, &group->copies[n], 0, first->rows,
                                                first->buffer.data, &groups->workers[d].fault);
            group->stats.copied_bytes += first->rows * slc_matrix_row_bytes(first);
        }
    }
    group->stats.copy_seconds += d > 0 ? slc_seconds_since(start_ns) : 0.0;
}

static enum slc_status load_factors(struct slc_executor *executor, struct slc_error *err)
{
    struct slc_cpu_groups *groups = (struct slc_cpu_groups *)executor;

    return slc_cpu_groups_run(groups, groups->count, load_group, err);
}

/* Sets the view of the group's output to the shape for `mode`, and returns this view. */
static struct slc_matrix *output_of(struct slc_cpu_groups *groups, unsigned d, unsigned mode)
{
    const enum slc_value_type type = groups->base.setup.plan->request.precision;
    struct slc_cpu_group *group = &groups->group[d];

    group->view =
        (struct slc_matrix){.type = type,
                            .rows = info_of(groups)->dims[mode],
                            .cols = groups->base.setup.plan->request.rank,
                            .pitch = slc_matrix_pitch(type, groups->base.setup.plan->request.rank),
                            .buffer = d == 0 ? *groups->base.setup.output : group->output};
    return &group->view;
}

static enum slc_status begin_job(struct slc_cpu_groups *groups, unsigned d, struct slc_error *err)
{
    const struct slc_plan *plan = groups->base.setup.plan;
    struct slc_cpu_group *group = &groups->group[d];
    struct slc_mttkrp_job job = {.order = groups->order,
                                 .mode = groups->mode,
                                 .rank = groups->base.setup.plan->request.rank,
                                 .nnz = info_of(groups)->nnz,
                                 .workers = groups->threads,
                                 .deterministic = plan->request.deterministic,
                                 .partitions = plan->partitions[groups->mode],
                                 .conflict = plan->choices[groups->mode].chosen,
                                 .output = output_of(groups, d, groups->mode)};
    const uint64_t start_ns = slc_clock_ns();

    for (unsigned n = 0; n < groups->order; n++) {
        job.factors[n] = &group->factors[n];
    }
    enum slc_status status = group->backend->ops->mttkrp_begin(group->backend, &job, err);
    group->stats.compute_seconds += slc_seconds_since(start_ns);
    return status;
}

static void begin_group(void *context, unsigned d, unsigned count)
{
    struct slc_cpu_groups *groups = context;

    (void)count;
    groups->group[d].begun = begin_job(groups, d, &groups->workers[d].fault) == SLC_OK;
}

static void end_group(void *context, unsigned d, unsigned count)
{
    struct slc_cpu_groups *groups = context;
    struct slc_cpu_group *group = &groups->group[d];
    const uint64_t start_ns = slc_clock_ns();

    (void)count;
    if (group->begun) {
        /* The error is reported through the worker's fault, so the returned status is not
         * needed. */
        (void)group->backend->ops->mttkrp_end(group->backend, &groups->workers[d].fault);
        group->begun = false;
        group->stats.compute_seconds += slc_seconds_since(start_ns);
    }
}

static enum slc_status
add_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_cpu_groups *groups = context;
    struct slc_backend *backend = groups->group[worker / groups->threads].backend;
    const uint64_t start_ns = slc_clock_ns();
    const enum slc_status status =
        backend->ops->mttkrp_tile(backend, worker % groups->threads, tile, err);

    groups->workers[worker].compute_ns += slc_clock_ns() - start_ns;
    return status;
}

static void abort_jobs(void *context)
{
    struct slc_cpu_groups *groups = context;

    for (unsigned d = 0; d < groups->count; d++) {
        groups->group[d].backend->ops->mttkrp_abort(groups->group[d].backend);
    }
}

/* If a partition continues the last row of the previous partition, adds its sum of this row to the
 * output of the group that owns the row's first partition. */
static void join_split_rows(struct slc_cpu_groups *groups)
{
    const unsigned mode = groups->mode;
    const struct slc_reader *reader =
        groups->base.setup.parts.layouts->reader[groups->base.setup.plan->mode_layout[mode]];
    struct slc_backend *first_owner = NULL;

    for (uint64_t p = 0; p < groups->base.setup.plan->partitions[mode]; p++) {
        struct slc_partition partition;
        uint64_t row;

        slc_reader_partition(reader, p, &partition);
        struct slc_backend *owner =
            groups->group[groups->division[mode].owner[partition.first_block]].backend;
        if (!partition.continued) {
            first_owner = owner;
        } else if (owner->ops->mttkrp_split_take(owner, p, &row, groups->split.data)) {
            assert(first_owner != NULL);
            first_owner->ops->mttkrp_split_add(first_owner, row, groups->split.data);
        }
    }
}

/* Adds the measurements of a pass to the statistics of groups. */
static void record_pass(struct slc_cpu_groups *groups, double pass_seconds)
{
    for (unsigned d = 0; d < groups->count; d++) {
        struct slc_member_stats *stats = &groups->group[d].stats;
        double busy_seconds = 0.0;

        for (unsigned t = 0; t < groups->threads; t++) {
            struct slc_cpu_group_worker *worker = &groups->workers[d * groups->threads + t];

            busy_seconds += (double)worker->compute_ns * 1e-9 / groups->threads;
            worker->compute_ns = 0;
        }
        stats->nnz += groups->division[groups->mode].nnz[d];
        stats->bytes += groups->division[groups->mode].bytes[d];
        stats->compute_seconds += busy_seconds;
        stats->wait_seconds += pass_seconds > busy_seconds ? pass_seconds - busy_seconds : 0.0;
    }
}

static enum slc_status compute_mttkrp(struct slc_executor *executor,
                                      const struct slc_executor_pass *wanted,
                                      struct slc_error *err)
{
    struct slc_cpu_groups *groups = (struct slc_cpu_groups *)executor;
    const struct slc_plan *plan = executor->setup.plan;
    const unsigned mode = wanted->mode;
    const struct slc_pass_division division = {.owner = groups->division[mode].owner,
                                               .order = groups->division[mode].order,
                                               .group_workers = groups->threads};
    const struct slc_pass pass = {
        .kind = SLC_PASS_GROUPS,
        .layout = plan->mode_layout[mode],
        .groups = {.consumer = {.tile = add_tile, .wake = abort_jobs, .context = groups},
                   .division = &division,
                   .by_partition = plan->partitions[mode] > 0},
        .stop = wanted->stop,
        .progress = wanted->progress,
        .progress_context = wanted->progress_context};
    uint64_t start_ns;

    assert(is_computed(plan, mode));
    groups->mode = mode;
    enum slc_status status = slc_cpu_groups_run(groups, groups->count, begin_group, err);
    if (status == SLC_OK) {
        start_ns = slc_clock_ns();
        status = slc_stream_pass(executor->setup.stream, &pass, err);
        record_pass(groups, slc_seconds_since(start_ns));
    }
    if (status == SLC_OK) {
        join_split_rows(groups);
    }
    /* If the pass failed, its error is reported; errors of end_group are then ignored, because the
     * outputs are incomplete in any case. */
    enum slc_status ended =
        slc_cpu_groups_run(groups, groups->count, end_group, status == SLC_OK ? err : NULL);
    return status == SLC_OK ? ended : status;
}

const struct slc_matrix *
slc_cpu_groups_factor(const struct slc_executor *executor, unsigned group, unsigned mode)
{
    return &((const struct slc_cpu_groups *)executor)->group[group].factors[mode];
}

static void read_stats(const struct slc_executor *executor, struct slc_executor_stats *stats)
{
    const struct slc_cpu_groups *groups = (const struct slc_cpu_groups *)executor;

    memset(stats, 0, sizeof *stats);
    stats->members = groups->count;
    for (unsigned d = 0; d < groups->count; d++) {
        stats->member[d] = groups->group[d].stats;
    }
}

static const struct slc_executor_ops groups_ops = {.load = load_factors,
                                                   .mttkrp = compute_mttkrp,
                                                   .read_output = slc_cpu_groups_gather,
                                                   .update_rows = slc_cpu_groups_update,
                                                   .scale = slc_cpu_groups_scale,
                                                   .read_factor = slc_executor_read_nothing,
                                                   .stats = read_stats,
                                                   .destroy = destroy_groups};

static enum slc_status create_groups(struct slc_cpu_groups *groups, struct slc_error *err)
{
    const struct slc_plan *plan = groups->base.setup.plan;
    const struct slc_layouts *layouts = groups->base.setup.parts.layouts;

    groups->order = slc_reader_info(layouts->reader[0])->order;
    groups->threads = plan->group_threads;
    groups->unit_bytes = most_unit_bytes(layouts, plan);
    groups->group = slc_calloc(plan->cpu_groups, sizeof *groups->group);
    groups->workers = slc_calloc(plan->threads, sizeof *groups->workers);
    SLC_TRY(slc_check_memory(groups->group != NULL && groups->workers != NULL, err,
                             "for %u devices", plan->cpu_groups));
    groups->count = plan->cpu_groups;
    SLC_TRY(divide_modes(groups, err));
    SLC_TRY(make_buffers(groups, err));
    for (unsigned d = 0; d < groups->count; d++) {
        SLC_TRY(make_group(groups, d, err));
    }
    return SLC_OK;
}

enum slc_status slc_cpu_groups_executor_create(const struct slc_executor_setup *setup,
                                               struct slc_executor **executor,
                                               struct slc_error *err)
{
    const struct slc_plan *plan = setup->plan;
    struct slc_cpu_groups *groups;

    if (setup->parts.groups == NULL || setup->parts.layouts == NULL) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "the plan needs %u groups of workers and the layouts of the store: the caller must "
            "pass both",
            plan->cpu_groups);
    }
    if (plan->threads != plan->cpu_groups * plan->group_threads) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "the plan's threads must be divided equally between its devices (%u devices, %u "
            "threads each)",
            plan->cpu_groups, plan->group_threads);
    }
    SLC_TRY(slc_executor_allocate(&groups_ops, setup, sizeof *groups, &groups, err));
    enum slc_status status = create_groups(groups, err);
    if (status != SLC_OK) {
        destroy_groups(&groups->base);
        return status;
    }
    *executor = &groups->base;
    return SLC_OK;
}
