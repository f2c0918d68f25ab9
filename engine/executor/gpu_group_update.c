/* Implements the steps of groups of GPUs after an MTTKRP. Each device solves the units of rows that
 * it owns. Then an exchange in a ring of D devices makes all copies of the factor equal: in step s,
 * device d copies the rows that device d - s owns from device d - 1 (all modulo D). Device d - 1
 * received these rows in the previous step ([Wijeratne2025] section 4.8). */
#include "engine/executor/gpu_group_impl.h"

#include "base/error/clock.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void solve_rows(void *context, unsigned d, unsigned count)
{
    struct slc_gpu_group *group = context;
    struct slc_gpu_member *member = &group->member[d];
    const struct slc_group_division *division = &group->division[group->mode];
    const struct slc_device_rows *piece = &division->pieces[d];
    const struct slc_device_units units = {piece->ranges, (uint32_t)piece->count,
                                           group->unit_rows[group->mode]};
    const uint64_t before = (uint64_t)(piece->ranges - division->units);
    const uint64_t start_ns = slc_clock_ns();

    (void)count;
    (void)member->device->ops->algebra.update_units(
        member->device, group->mode, group->solver, &units,
        (double *)group->columns.data + before * 2 * group->solver->rank, &member->fault);
    member->stats.solve_seconds += slc_seconds_since(start_ns);
}

struct ring_run {
    struct slc_gpu_group_ring *ring;
    unsigned step;
    struct slc_error *faults; /* one per device */
};

static void receive_rows(void *context, unsigned d, unsigned count)
{
    struct ring_run *run = context;
    struct slc_gpu_group_ring *ring = run->ring;
    const struct slc_device_rows *rows = &ring->rows[(d + count - run->step) % count];
    struct slc_device *device = ring->device[d];
    const uint64_t start_ns = slc_clock_ns();

    (void)device->ops->algebra.factor_copy(device, ring->mode,
                                           ring->device[(d + count - 1) % count], rows->ranges,
                                           rows->count, &run->faults[d]);
    ring->stats[d].copy_seconds += slc_seconds_since(start_ns);
}

static uint64_t rows_of(const struct slc_device_rows *piece)
{
    uint64_t rows = 0;

    for (uint64_t i = 0; i < piece->count; i++) {
        rows += piece->ranges[i].end - piece->ranges[i].first;
    }
    return rows;
}

static enum slc_status run_step(struct ring_run *run, struct slc_error *err)
{
    struct slc_gpu_group_ring *ring = run->ring;
    const uint64_t start_ns = slc_clock_ns();
    double copied[SLC_MAX_DEVICES] = {0};

    for (unsigned d = 0; d < ring->count; d++) {
        copied[d] = ring->stats[d].copy_seconds;
    }
    enum slc_status status = slc_team_run(ring->count, receive_rows, run, err);
    for (unsigned d = 0; d < ring->count && status == SLC_OK; d++) {
        /* Device d sends rows to device d + 1. */
        const unsigned sent = (d + 1 + ring->count - run->step) % ring->count;
        struct slc_exchange_stats *stats = &ring->stats[d];

        stats->wait_seconds += slc_seconds_since(start_ns) - (stats->copy_seconds - copied[d]);
        stats->bytes_sent += rows_of(&ring->rows[sent]) * ring->row_bytes;
        status = run->faults[d].status;
        slc_error_pass(err, &run->faults[d]);
    }
    return status;
}

enum slc_status slc_gpu_group_exchange(struct slc_gpu_group_ring *ring, struct slc_error *err)
{
    struct ring_run run = {.ring = ring, .step = 1};
    enum slc_status status = SLC_OK;

    memset(ring->stats, 0, sizeof ring->stats);
    run.faults = slc_calloc(ring->count, sizeof *run.faults);
    SLC_TRY(slc_check_memory(run.faults != NULL, err, "for a ring of %u devices", ring->count));
    for (; run.step < ring->count && status == SLC_OK; run.step++) {
        status = run_step(&run, err);
    }
    slc_free(run.faults);
    return status;
}

/* Exchanges all rows of the group's factor. */
static enum slc_status exchange_rows(struct slc_gpu_group *group, struct slc_error *err)
{
    struct slc_gpu_group_ring ring = {.count = group->count,
                                      .mode = group->mode,
                                      .row_bytes = slc_gpu_group_row_bytes(group->plan)};

    for (unsigned d = 0; d < group->count; d++) {
        ring.device[d] = group->member[d].device;
        ring.rows[d] = group->member[d].rows[group->mode];
    }
    enum slc_status status = slc_gpu_group_exchange(&ring, err);
    for (unsigned d = 0; d < group->count; d++) {
        struct slc_member_stats *stats = &group->member[d].stats;

        stats->exchange_seconds += ring.stats[d].copy_seconds;
        stats->exchange_wait_seconds += ring.stats[d].wait_seconds;
        stats->sent_bytes += ring.stats[d].bytes_sent;
    }
    return status;
}

/* Adds the column sums of all units of rows, in row order. */
static void join_columns(struct slc_gpu_group *group, const struct slc_update_sums *sums)
{
    const struct slc_group_division *division = &group->division[group->mode];
    const uint64_t rank = group->solver->rank;
    uint64_t *places = group->places.data;

    memset(sums->largest, 0, rank * sizeof *sums->largest);
    memset(sums->inner, 0, rank * sizeof *sums->inner);
    for (uint64_t u = 0; u < division->unit_count; u++) {
        places[division->ordinal[u]] = u;
    }
    for (uint64_t u = 0; u < division->unit_count; u++) {
        const double *columns = (const double *)group->columns.data + places[u] * 2 * rank;

        for (uint64_t r = 0; r < rank; r++) {
            sums->largest[r] = fmax(sums->largest[r], columns[r]);
            sums->inner[r] += columns[rank + r];
        }
    }
}

enum slc_status slc_gpu_group_update(struct slc_executor *executor,
                                     unsigned mode,
                                     const struct slc_matrix *mttkrp,
                                     const struct slc_solver *solver,
                                     const struct slc_update_sums *sums,
                                     struct slc_error *err)
{
    struct slc_gpu_group *group = executor->setup.parts.gpus;
    struct slc_device *first = group->member[0].device;

    (void)mttkrp;
    assert(mode == group->mode);
    group->solver = solver;
    SLC_TRY(slc_gpu_group_run(group, solve_rows, err));
    join_columns(group, sums);
    SLC_TRY(exchange_rows(group, err));
    /* All copies are equal, so the first device computes the Gram matrix. */
    return first->ops->algebra.gram(first, mode, sums->gram, err);
}

static void scale_device(void *context, unsigned d, unsigned count)
{
    struct slc_gpu_group *group = context;
    struct slc_gpu_member *member = &group->member[d];

    (void)count;
    (void)member->device->ops->algebra.scale(member->device, group->mode, group->scale,
                                             &member->fault);
}

enum slc_status slc_gpu_group_scale(struct slc_executor *executor,
                                    unsigned mode,
                                    const double *scale,
                                    struct slc_error *err)
{
    struct slc_gpu_group *group = executor->setup.parts.gpus;

    group->mode = mode;
    group->scale = scale;
    return slc_gpu_group_run(group, scale_device, err);
}
