/*
 * Several devices: their memory, and MTTKRPs; see engine/executor/cpu_groups.h.
 *
 * Worker w of the stream is thread w % T of device w / T. A pass calls the backend of its worker's
 * device; no device touches another one's memory in it. Rows that are split over partitions are
 * put together between the last tile and the end of the jobs, in the order of the partitions, so
 * that it does not matter who had which.
 */
#include "engine/executor/cpu_groups_impl.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"

#include <assert.h>

static const struct slc_layout_info *info_of(const struct slc_devices *devices)
{
    return slc_reader_info(devices->setup.layouts->reader[0]);
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
    return slc_device_unit_rows(row_bytes(plan), rows);
}

/* Of a unit of any mode that is computed. */
static uint64_t most_unit_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    uint64_t rows = 0;

    for (unsigned n = 0; n < info->order; n++) {
        rows = is_computed(plan, n) ? slc_max_u64(rows, info->dims[n]) : rows;
    }
    return unit_rows(plan, rows) * row_bytes(plan);
}

/* The most units of a mode that is computed. */
static uint64_t most_units(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    uint64_t units = 0;

    for (unsigned n = 0; n < info->order; n++) {
        if (is_computed(plan, n)) {
            units = slc_max_u64(units, slc_device_units_max(layouts->reader[plan->mode_layout[n]],
                                                            plan->devices, info->dims[n],
                                                            unit_rows(plan, info->dims[n])));
        }
    }
    return units;
}

/* Sizes of the buffers that all devices share. */
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

uint64_t slc_devices_memory_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    struct buffer_sizes sizes;
    uint64_t sum;

    if (!sizes_of(layouts, plan, &sizes)) {
        return UINT64_MAX;
    }
    sum = slc_exchange_memory_bytes(plan->devices, row_bytes(plan)) +
          slc_buffer_footprint(sizes.columns, SLC_PAGES_SMALL) +
          slc_buffer_footprint(sizes.staging, SLC_PAGES_SMALL) +
          slc_buffer_footprint(sizes.split, SLC_PAGES_SMALL) + sizeof(struct slc_devices) +
          plan->devices * sizeof(struct slc_devices_member) +
          plan->threads * sizeof(struct slc_device_worker);
    for (unsigned n = 0; n < info->order; n++) {
        if (is_computed(plan, n)) {
            sum +=
                slc_device_shares_memory_bytes(layouts->reader[plan->mode_layout[n]], plan->devices,
                                               info->dims[n], unit_rows(plan, info->dims[n]));
        }
    }
    return sum;
}

/* The memory of device `d`; the first one works on the caller's. */
static enum slc_status make_device(struct slc_devices *devices, unsigned d, struct slc_error *err)
{
    struct slc_devices_member *device = &devices->device[d];
    enum slc_status status = SLC_OK;

    device->backend = devices->setup.backends[d];
    device->factors = d == 0 ? devices->setup.factors : device->copies;
    for (unsigned n = 0; d > 0 && n < devices->order && status == SLC_OK; n++) {
        const struct slc_matrix *first = &devices->setup.factors[n];

        /* MTTKRPs of one mode alone have no factor of it. */
        if (first->buffer.data != NULL) {
            status =
                slc_matrix_create(&device->copies[n], first->type, first->rows, first->cols, err);
        }
    }
    if (d > 0 && status == SLC_OK) {
        struct slc_matrix output = {0};
        uint64_t rows = 0;

        for (unsigned n = 0; n < devices->order; n++) {
            rows = is_computed(devices->setup.plan, n)
                       ? slc_max_u64(rows, info_of(devices)->dims[n])
                       : rows;
        }
        status = slc_matrix_create(&output, devices->setup.plan->request.precision, rows,
                                   devices->setup.rank, err);
        device->output = output.buffer;
    }
    return status;
}

static enum slc_status divide_modes(struct slc_devices *devices, struct slc_error *err)
{
    const struct slc_plan *plan = devices->setup.plan;
    const uint64_t *dims = info_of(devices)->dims;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < devices->order && status == SLC_OK; n++) {
        if (is_computed(plan, n) && plan->request.split == SLC_SPLIT_NNZ &&
            plan->partitions[n] > 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "equal shares of nonzeros are of the layout blco, but mode %u is "
                            "planned to be read from one in partitions",
                            n + 1);
        }
        if (is_computed(plan, n)) {
            status = slc_device_shares_create(devices->setup.layouts->reader[plan->mode_layout[n]],
                                              plan->request.split, devices->count, dims[n],
                                              unit_rows(plan, dims[n]), &devices->shares[n], err);
        }
    }
    return status;
}

static enum slc_status make_buffers(struct slc_devices *devices, struct slc_error *err)
{
    const struct slc_plan *plan = devices->setup.plan;
    struct buffer_sizes sizes;
    enum slc_status status;

    if (!sizes_of(devices->setup.layouts, plan, &sizes)) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the sums of so many rows");
    }
    status = slc_buffer_create(&devices->columns, (size_t)sizes.columns, SLC_PAGES_SMALL, err);
    if (status == SLC_OK) {
        status = slc_buffer_create(&devices->staging, (size_t)sizes.staging, SLC_PAGES_SMALL, err);
    }
    if (status == SLC_OK) {
        status = slc_buffer_create(&devices->split, (size_t)sizes.split, SLC_PAGES_SMALL, err);
    }
    if (status == SLC_OK) {
        status = slc_exchange_create(devices->count, row_bytes(plan), &devices->exchange, err);
    }
    return status;
}

enum slc_status slc_devices_create(const struct slc_devices_setup *setup,
                                   struct slc_devices **result,
                                   struct slc_error *err)
{
    const struct slc_plan *plan = setup->plan;
    struct slc_devices *devices;
    enum slc_status status;

    if (plan->devices == 0 || plan->threads != plan->devices * plan->device_threads) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the plan, of %u devices with %u threads, is not one "
                        "for several",
                        plan->devices, plan->device_threads);
    }
    devices = slc_calloc(1, sizeof *devices);
    if (devices == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for devices");
    }
    devices->setup = *setup;
    devices->order = slc_reader_info(setup->layouts->reader[0])->order;
    devices->threads = plan->device_threads;
    devices->unit_bytes = most_unit_bytes(setup->layouts, plan);
    devices->device = slc_calloc(plan->devices, sizeof *devices->device);
    devices->workers = slc_calloc(plan->threads, sizeof *devices->workers);
    if (devices->device == NULL || devices->workers == NULL) {
        slc_devices_destroy(devices);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u devices", plan->devices);
    }
    devices->count = plan->devices;
    status = divide_modes(devices, err);
    if (status == SLC_OK) {
        status = make_buffers(devices, err);
    }
    for (unsigned d = 0; d < devices->count && status == SLC_OK; d++) {
        status = make_device(devices, d, err);
    }
    if (status != SLC_OK) {
        slc_devices_destroy(devices);
        return status;
    }
    *result = devices;
    return SLC_OK;
}

void slc_devices_destroy(struct slc_devices *devices)
{
    if (devices == NULL) {
        return;
    }
    for (unsigned d = 0; d < devices->count; d++) {
        for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
            slc_matrix_destroy(&devices->device[d].copies[n]);
        }
        slc_buffer_destroy(&devices->device[d].output);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_device_shares_destroy(&devices->shares[n]);
    }
    slc_exchange_destroy(devices->exchange);
    slc_buffer_destroy(&devices->columns);
    slc_buffer_destroy(&devices->staging);
    slc_buffer_destroy(&devices->split);
    slc_free(devices->device);
    slc_free(devices->workers);
    slc_free(devices);
}

enum slc_status slc_devices_run(struct slc_devices *devices,
                                unsigned workers,
                                slc_team_fn *phase,
                                struct slc_error *err)
{
    enum slc_status status;

    for (unsigned w = 0; w < workers; w++) {
        slc_error_clear(&devices->workers[w].fault);
    }
    status = slc_team_run(workers, phase, devices, err);
    for (unsigned w = 0; w < workers && status == SLC_OK; w++) {
        status = devices->workers[w].fault.status;
        if (status != SLC_OK && err != NULL && err->status == SLC_OK) {
            *err = devices->workers[w].fault;
        }
    }
    return status;
}

static void load_device(void *context, unsigned d, unsigned count)
{
    struct slc_devices *devices = context;
    struct slc_devices_member *device = &devices->device[d];
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;

    (void)count;
    for (unsigned n = 0; d > 0 && n < devices->order && status == SLC_OK; n++) {
        const struct slc_matrix *first = &devices->setup.factors[n];

        if (device->copies[n].buffer.data != NULL) {
            status = device->backend->ops->rows_write(device->backend, &device->copies[n], 0,
                                                      first->rows, first->buffer.data,
                                                      &devices->workers[d].fault);
            device->stats.copied_bytes += first->rows * slc_matrix_row_bytes(first);
        }
    }
    device->stats.copy_seconds += d > 0 ? slc_seconds_since(start_ns) : 0.0;
}

enum slc_status slc_devices_load(struct slc_devices *devices, struct slc_error *err)
{
    return slc_devices_run(devices, devices->count, load_device, err);
}

/* Points a device's view at its output of the mode. */
static struct slc_matrix *output_of(struct slc_devices *devices, unsigned d, unsigned mode)
{
    const enum slc_value_type type = devices->setup.plan->request.precision;
    struct slc_devices_member *device = &devices->device[d];

    device->view = (struct slc_matrix){.type = type,
                                       .rows = info_of(devices)->dims[mode],
                                       .cols = devices->setup.rank,
                                       .pitch = slc_matrix_pitch(type, devices->setup.rank),
                                       .buffer = d == 0 ? *devices->setup.output : device->output};
    return &device->view;
}

static enum slc_status begin_job(struct slc_devices *devices, unsigned d, struct slc_error *err)
{
    const struct slc_plan *plan = devices->setup.plan;
    struct slc_devices_member *device = &devices->device[d];
    struct slc_mttkrp_job job = {.order = devices->order,
                                 .mode = devices->mode,
                                 .rank = devices->setup.rank,
                                 .nnz = info_of(devices)->nnz,
                                 .workers = devices->threads,
                                 .deterministic = plan->request.deterministic,
                                 .partitions = plan->partitions[devices->mode],
                                 .conflict = plan->choices[devices->mode].chosen,
                                 .output = output_of(devices, d, devices->mode)};
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status;

    for (unsigned n = 0; n < devices->order; n++) {
        job.factors[n] = &device->factors[n];
    }
    status = device->backend->ops->mttkrp_begin(device->backend, &job, err);
    device->stats.compute_seconds += slc_seconds_since(start_ns);
    return status;
}

static void begin_device(void *context, unsigned d, unsigned count)
{
    struct slc_devices *devices = context;

    (void)count;
    devices->device[d].begun = begin_job(devices, d, &devices->workers[d].fault) == SLC_OK;
}

static void end_device(void *context, unsigned d, unsigned count)
{
    struct slc_devices *devices = context;
    struct slc_devices_member *device = &devices->device[d];
    const uint64_t start_ns = slc_clock_ns();

    (void)count;
    if (device->begun) {
        /* Its fault is kept with its message. */
        (void)device->backend->ops->mttkrp_end(device->backend, &devices->workers[d].fault);
        device->begun = false;
        device->stats.compute_seconds += slc_seconds_since(start_ns);
    }
}

static enum slc_status
add_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_devices *devices = context;
    struct slc_backend *backend = devices->device[worker / devices->threads].backend;
    const uint64_t start_ns = slc_clock_ns();
    const enum slc_status status =
        backend->ops->mttkrp_tile(backend, worker % devices->threads, tile, err);

    devices->workers[worker].compute_ns += slc_clock_ns() - start_ns;
    return status;
}

static void abort_jobs(void *context)
{
    struct slc_devices *devices = context;

    for (unsigned d = 0; d < devices->count; d++) {
        devices->device[d].backend->ops->mttkrp_abort(devices->device[d].backend);
    }
}

/* Adds the sums of every partition that continues a row to the row, at the owner of its first. */
static void join_split_rows(struct slc_devices *devices)
{
    const unsigned mode = devices->mode;
    const struct slc_reader *reader =
        devices->setup.layouts->reader[devices->setup.plan->mode_layout[mode]];
    struct slc_backend *first_owner = NULL;

    for (uint64_t p = 0; p < devices->setup.plan->partitions[mode]; p++) {
        struct slc_partition partition;
        struct slc_backend *owner;
        uint64_t row;

        slc_reader_partition(reader, p, &partition);
        owner = devices->device[devices->shares[mode].owner[partition.first_block]].backend;
        if (!partition.continued) {
            first_owner = owner;
        } else if (owner->ops->mttkrp_split_take(owner, p, &row, devices->split.data)) {
            assert(first_owner != NULL);
            first_owner->ops->mttkrp_split_add(first_owner, row, devices->split.data);
        }
    }
}

/* Adds what a pass has measured to the statistics of devices. */
static void settle_pass(struct slc_devices *devices, double pass_seconds)
{
    for (unsigned d = 0; d < devices->count; d++) {
        struct slc_devices_stats *stats = &devices->device[d].stats;
        double busy_seconds = 0.0;

        for (unsigned t = 0; t < devices->threads; t++) {
            struct slc_device_worker *worker = &devices->workers[d * devices->threads + t];

            busy_seconds += (double)worker->compute_ns * 1e-9 / devices->threads;
            worker->compute_ns = 0;
        }
        stats->nnz += devices->shares[devices->mode].nnz[d];
        stats->bytes += devices->shares[devices->mode].bytes[d];
        stats->compute_seconds += busy_seconds;
        stats->wait_seconds += pass_seconds > busy_seconds ? pass_seconds - busy_seconds : 0.0;
    }
}

enum slc_status slc_devices_mttkrp(struct slc_devices *devices,
                                   struct slc_stream *stream,
                                   unsigned mode,
                                   const volatile int *stop,
                                   void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                   void *progress_context,
                                   struct slc_error *err)
{
    const struct slc_plan *plan = devices->setup.plan;
    const struct slc_pass_division division = {.owner = devices->shares[mode].owner,
                                               .order = devices->shares[mode].order,
                                               .group_workers = devices->threads};
    const struct slc_pass pass = {.layout = plan->mode_layout[mode],
                                  .tile = add_tile,
                                  .abort = abort_jobs,
                                  .context = devices,
                                  .by_partition = plan->partitions[mode] > 0,
                                  .division = &division,
                                  .stop = stop,
                                  .progress = progress,
                                  .progress_context = progress_context};
    enum slc_status status, ended;
    uint64_t start_ns;

    assert(is_computed(plan, mode));
    devices->mode = mode;
    status = slc_devices_run(devices, devices->count, begin_device, err);
    if (status == SLC_OK) {
        start_ns = slc_clock_ns();
        status = slc_stream_pass(stream, &pass, err);
        settle_pass(devices, slc_seconds_since(start_ns));
    }
    if (status == SLC_OK) {
        join_split_rows(devices);
    }
    /* After a fault outputs are incomplete whatever the end says, and the fault is reported. */
    ended = slc_devices_run(devices, devices->count, end_device, status == SLC_OK ? err : NULL);
    return status == SLC_OK ? ended : status;
}

const struct slc_matrix *
slc_devices_factor(const struct slc_devices *devices, unsigned device, unsigned mode)
{
    return &devices->device[device].factors[mode];
}

void slc_devices_stats(const struct slc_devices *devices,
                       unsigned device,
                       struct slc_devices_stats *stats)
{
    *stats = devices->device[device].stats;
}
