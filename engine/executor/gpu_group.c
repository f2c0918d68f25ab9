/* Opens groups of GPUs, and computes their MTTKRPs.
 *
 * A phase runs on one thread per device and ends before the next phase begins, so no device writes
 * memory that another device reads. The sums of a row may be split between devices. They are added
 * after every MTTKRP, before any output is used. */
#include "engine/executor/gpu_group_impl.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "engine/executor/gpu_executor.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool is_computed(const struct slc_plan *plan, unsigned mode)
{
    return plan->request.operation == SLC_OP_CPD || plan->request.mode == mode;
}

uint64_t slc_gpu_group_units_most(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    const uint64_t row_bytes = slc_gpu_group_row_bytes(plan);
    uint64_t most = 0;

    for (unsigned n = 0; n < info->order; n++) {
        if (is_computed(plan, n)) {
            most = slc_max_u64(most,
                               slc_group_units_max(layouts->reader[plan->mode_layout[n]],
                                                   plan->request.gpu_count, info->dims[n],
                                                   slc_group_unit_rows(row_bytes, info->dims[n])));
        }
    }
    return most;
}

uint64_t slc_gpu_group_memory_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    const uint64_t units = slc_gpu_group_units_most(layouts, plan);
    const uint64_t row_bytes = slc_gpu_group_row_bytes(plan);
    uint64_t columns, sum = sizeof(struct slc_gpu_group);

    if (!slc_mul_u64(units, 2 * (uint64_t)plan->request.rank * sizeof(double), &columns)) {
        return UINT64_MAX;
    }
    sum += slc_buffer_footprint(columns, SLC_PAGES_SMALL) +
           slc_buffer_footprint(units * sizeof(uint64_t), SLC_PAGES_SMALL);
    for (unsigned n = 0; n < info->order; n++) {
        if (is_computed(plan, n)) {
            sum += slc_group_division_memory_bytes(layouts->reader[plan->mode_layout[n]],
                                                   plan->request.gpu_count, info->dims[n],
                                                   slc_group_unit_rows(row_bytes, info->dims[n])) +
                   slc_buffer_footprint(units * sizeof(struct slc_row_span), SLC_PAGES_SMALL);
        }
    }
    return sum;
}

/* ---- opening */

/* Lists the rows that each device owns, in as few ranges as possible. */
static enum slc_status join_units(struct slc_gpu_group *group, unsigned mode, struct slc_error *err)
{
    const struct slc_group_division *division = &group->division[mode];

    SLC_TRY(slc_buffer_create(&group->spans[mode],
                              division->unit_count * sizeof(struct slc_row_span), SLC_PAGES_SMALL,
                              err));
    struct slc_row_span *next = group->spans[mode].data;
    for (unsigned d = 0; d < group->count; d++) {
        const struct slc_device_rows *units = &division->pieces[d];
        struct slc_device_rows *rows = &group->member[d].rows[mode];

        rows->ranges = next;
        for (uint64_t u = 0; u < units->count; u++) {
            if (rows->count > 0 && next[-1].end == units->ranges[u].first) {
                next[-1].end = units->ranges[u].end;
            } else {
                *next++ = units->ranges[u];
                rows->count++;
            }
        }
    }
    return SLC_OK;
}

static enum slc_status divide_modes(struct slc_gpu_group *group, struct slc_error *err)
{
    const struct slc_plan *plan = group->plan;
    const uint64_t *dims = slc_reader_info(group->layouts->reader[0])->dims;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < group->order && status == SLC_OK; n++) {
        group->unit_rows[n] = slc_group_unit_rows(slc_gpu_group_row_bytes(plan), dims[n]);
        if (is_computed(plan, n)) {
            status = slc_group_division_create(group->layouts->reader[plan->mode_layout[n]],
                                               plan->request.split, group->count, dims[n],
                                               group->unit_rows[n], &group->division[n], err);
            SLC_THEN(status, join_units(group, n, err));
        }
    }
    return status;
}

static enum slc_status open_devices(struct slc_gpu_group *group, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned d = 0; d < group->count && status == SLC_OK; d++) {
        struct slc_gpu_member *member = &group->member[d];

        member->device = group->plan->request.gpus[d];
        status = slc_gpu_executor_open_device(member->device, group->layouts, group->plan, err);
        member->open = status == SLC_OK;
    }
    return status;
}

enum slc_status slc_gpu_group_open(const struct slc_layouts *layouts,
                                   const struct slc_plan *plan,
                                   struct slc_stream *stream,
                                   struct slc_gpu_group **result,
                                   struct slc_error *err)
{
    const uint64_t units = plan->gpu.unit_most;

    if (plan->request.gpu_count == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "the plan was not made for several devices");
    }
    struct slc_gpu_group *group = slc_calloc(1, sizeof *group);
    SLC_TRY(slc_check_memory(group != NULL, err, "for %u devices", plan->request.gpu_count));
    group->layouts = layouts;
    group->plan = plan;
    group->order = slc_reader_info(layouts->reader[0])->order;
    group->count = plan->request.gpu_count;
    enum slc_status status = divide_modes(group, err);
    SLC_THEN(status,
             slc_buffer_create(&group->columns, units * 2 * plan->request.rank * sizeof(double),
                               SLC_PAGES_SMALL, err));
    SLC_THEN(status,
             slc_buffer_create(&group->places, units * sizeof(uint64_t), SLC_PAGES_SMALL, err));
    SLC_THEN(status, open_devices(group, err));
    SLC_THEN(status, slc_stream_attach(stream, plan->request.gpus, group->count, err));
    if (status != SLC_OK) {
        slc_gpu_group_close(group);
        return status;
    }
    group->stream = stream;
    *result = group;
    return SLC_OK;
}

void slc_gpu_group_close(struct slc_gpu_group *group)
{
    if (group == NULL) {
        return;
    }
    if (group->stream != NULL) {
        slc_stream_detach(group->stream);
    }
    for (unsigned d = 0; d < group->count; d++) {
        if (group->member[d].open) {
            group->member[d].device->ops->memory.close(group->member[d].device);
        }
    }
    for (unsigned n = 0; n < group->order; n++) {
        slc_group_division_destroy(&group->division[n]);
        slc_buffer_destroy(&group->spans[n]);
    }
    slc_buffer_destroy(&group->columns);
    slc_buffer_destroy(&group->places);
    slc_free(group);
}

/* ---- phases */

enum slc_status
slc_gpu_group_run(struct slc_gpu_group *group, slc_team_fn *phase, struct slc_error *err)
{
    for (unsigned d = 0; d < group->count; d++) {
        slc_error_clear(&group->member[d].fault);
    }
    enum slc_status status = slc_team_run(group->count, phase, group, err);
    for (unsigned d = 0; d < group->count && status == SLC_OK; d++) {
        status = group->member[d].fault.status;
        slc_error_pass(err, &group->member[d].fault);
    }
    return status;
}

static void load_device(void *context, unsigned d, unsigned count)
{
    struct slc_gpu_group *group = context;
    struct slc_gpu_member *member = &group->member[d];
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;

    (void)count;
    for (unsigned n = 0; n < group->order && status == SLC_OK; n++) {
        const struct slc_matrix *factor = &group->factors[n];

        if (factor->buffer.data != NULL) {
            status =
                member->device->ops->memory.factor_write(member->device, n, factor, &member->fault);
            member->stats.copied_bytes += factor->rows * slc_matrix_row_bytes(factor);
        }
    }
    member->stats.copy_seconds += slc_seconds_since(start_ns);
}

enum slc_status slc_gpu_group_load(struct slc_gpu_group *group,
                                   const struct slc_matrix *factors,
                                   struct slc_error *err)
{
    group->factors = factors;
    return slc_gpu_group_run(group, load_device, err);
}

/* ---- MTTKRP */

static void begin_device(void *context, unsigned d, unsigned count)
{
    struct slc_gpu_group *group = context;
    struct slc_gpu_member *member = &group->member[d];

    (void)count;
    member->begun =
        member->device->ops->job.begin(member->device, group->job, &member->fault) == SLC_OK;
}

static void end_device(void *context, unsigned d, unsigned count)
{
    struct slc_gpu_group *group = context;
    struct slc_gpu_member *member = &group->member[d];

    (void)count;
    if (member->begun) {
        /* The error is reported through the member's fault, so the returned status is not
         * needed. */
        (void)member->device->ops->job.end(member->device, &member->fault);
        member->begun = false;
    }
}

/* Adds the other devices' sums of split rows to the output of device `to`, which owns these
 * rows. */
static enum slc_status add_split_rows(struct slc_gpu_group *group, unsigned to)
{
    const struct slc_reader *reader = group->layouts->reader[group->plan->mode_layout[group->mode]];
    const uint64_t partitions = slc_reader_info(reader)->partition_count;
    const uint32_t *owners = group->division[group->mode].owner;
    struct slc_gpu_member *member = &group->member[to];
    uint64_t added[SLC_MAX_DEVICES]; /* per device: last row to which its sums were added */
    uint32_t first_owner = 0;

    memset(added, 0xff, sizeof added);
    for (uint64_t p = 0; p < partitions; p++) {
        struct slc_partition partition;

        slc_reader_partition(reader, p, &partition);
        uint32_t owner = owners[partition.first_block];
        if (!partition.continued) {
            first_owner = owner;
        } else if (first_owner == to && owner != to && added[owner] != partition.first_row) {
            /* Each owner is added once, because its output already has the sum over all its
             * partitions with this row. */
            const struct slc_row_span row = {partition.first_row, partition.first_row + 1};

            added[owner] = partition.first_row;
            SLC_TRY(member->device->ops->algebra.output_add(
                member->device, group->member[owner].device, &row, 1, &member->fault));
        }
    }
    return SLC_OK;
}

/* Adds the sums of all other devices to the rows that device `d` owns. */
static void complete_rows(void *context, unsigned d, unsigned count)
{
    struct slc_gpu_group *group = context;
    struct slc_gpu_member *member = &group->member[d];
    const bool all_rows = group->plan->request.split == SLC_SPLIT_NNZ;
    const struct slc_device_rows none = {NULL, 0};
    const struct slc_device_rows *rows = all_rows ? &member->rows[group->mode] : &none;
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;

    for (unsigned e = 0; e < count && status == SLC_OK; e++) {
        /* In deterministic runs output_add is called even without rows, because it also reports
         * columns that overflowed. */
        if (e != d && (all_rows || group->plan->request.deterministic)) {
            status = member->device->ops->algebra.output_add(
                member->device, group->member[e].device, rows->ranges, rows->count, &member->fault);
        }
    }
    if (status == SLC_OK && !all_rows) {
        (void)add_split_rows(group, d);
    }
    member->stats.reduce_seconds += slc_seconds_since(start_ns);
}

/* Adds the measurements of a pass to the statistics. */
static void record_pass(struct slc_gpu_group *group, double pass_seconds)
{
    const struct slc_group_division *division = &group->division[group->mode];

    for (unsigned d = 0; d < group->count; d++) {
        struct slc_gpu_member *member = &group->member[d];
        struct slc_device_stats now;

        member->device->ops->stats(member->device, &now);
        double busy_seconds = now.compute_seconds - member->stats.compute_seconds;
        member->stats.nnz += division->nnz[d];
        member->stats.bytes += division->bytes[d];
        member->stats.compute_seconds = now.compute_seconds;
        member->stats.wait_seconds += fmax(pass_seconds - busy_seconds, 0.0);
    }
}

static enum slc_status
run_pass(struct slc_gpu_group *group, const struct slc_pass *pass, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = slc_gpu_group_run(group, begin_device, err);

    SLC_THEN(status, slc_stream_pass(group->stream, pass, err));
    /* If the pass failed, its error is reported; errors of end_device are then ignored, because the
     * outputs are incomplete in any case. */
    enum slc_status ended = slc_gpu_group_run(group, end_device, status == SLC_OK ? err : NULL);
    if (status == SLC_OK && ended == SLC_ERR_DAMAGED) {
        slc_error_locate_file(err, slc_reader_path(group->layouts->reader[pass->layout]));
    }
    record_pass(group, slc_seconds_since(start_ns));
    status = status == SLC_OK ? ended : status;
    SLC_TRY(status);
    if (group->plan->request.deterministic) {
        struct slc_device_stats sum;

        slc_gpu_group_sum(group, &sum);
        SLC_TRY(
            slc_gpu_executor_check_squares(group->layouts->reader[pass->layout], sum.squares, err));
    }
    return SLC_OK;
}

enum slc_status slc_gpu_group_mttkrp(struct slc_gpu_group *group,
                                     unsigned mode,
                                     const volatile int *stop,
                                     void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                     void *progress_context,
                                     struct slc_error *err)
{
    const struct slc_plan *plan = group->plan;
    const struct slc_pass_division division = {.owner = group->division[mode].owner,
                                               .order = group->division[mode].order,
                                               .group_workers = 1};
    const struct slc_pass pass = {.kind = SLC_PASS_GPU_GROUP,
                                  .layout = plan->mode_layout[mode],
                                  .gpu_group = {.division = &division},
                                  .stop = stop,
                                  .progress = progress,
                                  .progress_context = progress_context};
    const struct slc_device_job job =
        slc_gpu_executor_job(group->layouts->reader[pass.layout], plan, pass.layout, mode);

    assert(is_computed(plan, mode));
    group->mode = mode;
    group->job = &job;
    enum slc_status status = run_pass(group, &pass, err);
    if (status == SLC_OK && group->count > 1) {
        status = slc_gpu_group_run(group, complete_rows, err);
    }
    group->job = NULL;
    return status;
}

/* ---- statistics */

void slc_gpu_group_stats(const struct slc_gpu_group *group,
                         unsigned device,
                         struct slc_member_stats *stats)
{
    *stats = group->member[device].stats;
}

void slc_gpu_group_sum(const struct slc_gpu_group *group, struct slc_device_stats *sum)
{
    memset(sum, 0, sizeof *sum);
    for (unsigned d = 0; d < group->count; d++) {
        struct slc_device_stats one;

        group->member[d].device->ops->stats(group->member[d].device, &one);
        sum->launches += one.launches;
        sum->blocks += one.blocks;
        sum->nnz += one.nnz;
        sum->block_bytes += one.block_bytes;
        sum->resident_bytes += one.resident_bytes;
        sum->transcoded_bytes += one.transcoded_bytes;
        sum->bytes_to_device += one.bytes_to_device;
        sum->bytes_to_host += one.bytes_to_host;
        sum->factor_bytes_to_host += one.factor_bytes_to_host;
        sum->direct_bytes += one.direct_bytes;
        sum->bytes_from_devices += one.bytes_from_devices;
        sum->copy_seconds += one.copy_seconds;
        sum->compute_seconds += one.compute_seconds;
        sum->busy_seconds += one.busy_seconds;
        sum->squares += one.squares;
    }
}

/* ---- the executor: its operations copy neither factors nor outputs through host memory */

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

static void read_rows(void *context, unsigned d, unsigned count)
{
    struct slc_gpu_group *group = context;
    struct slc_gpu_member *member = &group->member[d];
    const struct slc_device_rows *rows = &member->rows[group->mode];

    (void)count;
    (void)member->device->ops->algebra.output_rows(member->device, rows->ranges, rows->count,
                                                   group->output, &member->fault);
}

static enum slc_status
read_output(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    struct slc_gpu_group *group = executor->setup.parts.gpus;
    struct slc_matrix output = slc_executor_output(executor, mode);

    group->output = &output;
    return slc_gpu_group_run(group, read_rows, err);
}

static enum slc_status
read_factor(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    struct slc_device *first = executor->setup.parts.gpus->member[0].device;

    return first->ops->memory.factor_read(first, mode, &executor->setup.factors[mode], err);
}

static void read_stats(const struct slc_executor *executor, struct slc_executor_stats *stats)
{
    const struct slc_gpu_group *gpus = executor->setup.parts.gpus;

    memset(stats, 0, sizeof *stats);
    stats->members = executor->setup.plan->request.gpu_count;
    for (unsigned d = 0; d < stats->members; d++) {
        stats->member[d] = gpus->member[d].stats;
    }
    slc_gpu_group_sum(gpus, &stats->gpu);
}

static const struct slc_executor_ops gpu_group_ops = {.load = load_factors,
                                                      .mttkrp = compute_mttkrp,
                                                      .read_output = read_output,
                                                      .update_rows = slc_gpu_group_update,
                                                      .scale = slc_gpu_group_scale,
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
                        "plan, stream and options must name the same devices (GPUs)");
    }
    return slc_executor_allocate(&gpu_group_ops, setup, sizeof **executor, executor, err);
}
