/*
 * Several devices: what follows an MTTKRP. Each completes the rows of its output (with
 * SLC_SPLIT_NNZ by adding up what the others have of them), solves for its rows of the factor, and
 * the ring makes all copies equal.
 *
 * Rows are worked on in units, which a device's threads take one by one. The sums over a unit have
 * a place of their own and are added up by rows, so that they depend neither on who computed them
 * nor, with SLC_SPLIT_PARTITIONS, on how many devices there are.
 */
#include "engine/executor/cpu_groups_impl.h"

#include "base/error/clock.h"

/* to += from, as numbers of either type. */
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

/* Adds the other devices' parts of some rows to the output of their owner. */
static enum slc_status
reduce_rows(struct slc_devices *devices, unsigned number, const struct slc_row_span *rows)
{
    const unsigned owner = number / devices->threads;
    struct slc_devices_member *own = &devices->device[owner];
    unsigned char *sums = (unsigned char *)devices->staging.data + 2 * number * devices->unit_bytes;
    unsigned char *part = sums + devices->unit_bytes;
    const uint64_t count = rows->end - rows->first;
    struct slc_error *fault = &devices->workers[number].fault;
    enum slc_status status =
        own->backend->ops->rows_read(own->backend, &own->view, rows->first, count, sums, fault);

    for (unsigned d = 0; d < devices->count && status == SLC_OK; d++) {
        struct slc_devices_member *other = &devices->device[d];

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

/* Completes the outputs of units of the worker's device, and solves for them. */
static void finish_units(void *context, unsigned number, unsigned workers)
{
    struct slc_devices *devices = context;
    const unsigned d = number / devices->threads;
    const struct slc_device_shares *shares = &devices->shares[devices->mode];
    const struct slc_row_piece *piece = &shares->pieces[d];
    const uint64_t elements = slc_dense_columns_elements(devices->setup.rank);
    struct slc_devices_member *device = &devices->device[d];
    struct slc_device_worker *worker = &devices->workers[number];
    enum slc_status status = SLC_OK;

    (void)workers;
    while (status == SLC_OK) {
        const uint64_t unit = atomic_fetch_add(&device->next_unit, 1);
        uint64_t start_ns = slc_clock_ns();

        if (unit >= piece->count) {
            return;
        }
        if (devices->setup.plan->request.split == SLC_SPLIT_NNZ && devices->count > 1) {
            status = reduce_rows(devices, number, &piece->ranges[unit]);
            worker->reduce_ns += slc_clock_ns() - start_ns;
            start_ns = slc_clock_ns();
        }
        if (status == SLC_OK && devices->solver != NULL) {
            const uint64_t at = (uint64_t)(piece->ranges - shares->units) + unit;

            status = slc_dense_update_part(
                devices->setup.dense, devices->solver, &device->view,
                &device->factors[devices->mode], piece->ranges[unit].first, piece->ranges[unit].end,
                number, (double *)devices->columns.data + shares->ordinal[at] * elements,
                &worker->fault);
            worker->solve_ns += slc_clock_ns() - start_ns;
        }
    }
}

/* Completes and solves for all rows, and sends them round: those of the outputs, or of a factor. */
static enum slc_status finish_rows(struct slc_devices *devices,
                                   const struct slc_solver *solver,
                                   unsigned mode,
                                   struct slc_error *err)
{
    struct slc_matrix *copies[SLC_MAX_DEVICES];
    struct slc_exchange_stats exchanged[SLC_MAX_DEVICES];
    const struct slc_exchange_job job = {devices->setup.backends, copies,
                                         devices->shares[mode].pieces};
    enum slc_status status;

    devices->mode = mode;
    devices->solver = solver;
    for (unsigned d = 0; d < devices->count; d++) {
        copies[d] = solver != NULL ? &devices->device[d].factors[mode] : &devices->device[d].view;
        atomic_store(&devices->device[d].next_unit, 0);
    }
    status = slc_devices_run(devices, devices->count * devices->threads, finish_units, err);
    if (status == SLC_OK) {
        status = slc_exchange_run(devices->exchange, &job, exchanged, err);
    }
    for (unsigned w = 0; w < devices->count * devices->threads; w++) {
        struct slc_device_worker *worker = &devices->workers[w];
        struct slc_devices_stats *stats = &devices->device[w / devices->threads].stats;

        stats->reduce_seconds += (double)worker->reduce_ns * 1e-9 / devices->threads;
        stats->solve_seconds += (double)worker->solve_ns * 1e-9 / devices->threads;
        worker->reduce_ns = 0;
        worker->solve_ns = 0;
    }
    for (unsigned d = 0; d < devices->count && status == SLC_OK; d++) {
        devices->device[d].stats.sent_bytes += exchanged[d].bytes_sent;
        devices->device[d].stats.exchange_seconds += exchanged[d].copy_seconds;
        devices->device[d].stats.exchange_wait_seconds += exchanged[d].wait_seconds;
    }
    return status;
}

enum slc_status slc_devices_update(struct slc_devices *devices,
                                   const struct slc_solver *solver,
                                   unsigned mode,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err)
{
    enum slc_status status = finish_rows(devices, solver, mode, err);

    if (status != SLC_OK) {
        return status;
    }
    slc_dense_columns_join(devices->setup.rank, devices->columns.data,
                           devices->shares[mode].unit_count, sums);
    /* All copies are equal: it takes all threads to one of them. */
    return slc_dense_update_gram(devices->setup.dense, &devices->setup.factors[mode], sums->gram,
                                 err);
}

enum slc_status
slc_devices_gather(struct slc_devices *devices, unsigned mode, struct slc_error *err)
{
    return finish_rows(devices, NULL, mode, err);
}

enum slc_status slc_devices_scale(struct slc_devices *devices,
                                  unsigned mode,
                                  const double *scale,
                                  struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned d = 0; d < devices->count && status == SLC_OK; d++) {
        status =
            slc_dense_scale(devices->setup.dense, &devices->device[d].factors[mode], scale, err);
    }
    return status;
}
