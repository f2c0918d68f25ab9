/*
 * Several devices with memory of their own: what follows an MTTKRP. Each solves for the units of
 * rows it owns, and a ring makes all copies of the factor equal: in step s device d takes from
 * device d - 1 the rows that device d - s owns (all modulo D), which that one has had since the
 * step before (AMPED section 4.9).
 */
#include "engine/accelerators_impl.h"

#include "base/clock.h"
#include "engine/assert.h"

#include <math.h>
#include <string.h>

static void solve_rows(void *context, unsigned d, unsigned count)
{
    struct slc_accelerators *group = context;
    struct slc_accelerator_member *member = &group->member[d];
    const struct slc_device_shares *shares = &group->shares[group->mode];
    const struct slc_row_piece *piece = &shares->pieces[d];
    const struct slc_device_units units = {piece->ranges, (uint32_t)piece->count,
                                           group->unit_rows[group->mode]};
    const uint64_t before = (uint64_t)(piece->ranges - shares->units);
    const uint64_t start_ns = slc_clock_ns();

    (void)count;
    (void)member->device->ops->update_units(
        member->device, group->mode, group->solver, &units,
        (double *)group->columns.data + before * 2 * group->solver->rank, &member->fault);
    member->stats.solve_seconds += slc_seconds_since(start_ns);
}

static void take_rows(void *context, unsigned d, unsigned count)
{
    struct slc_accelerators *group = context;
    struct slc_accelerator_member *member = &group->member[d];
    struct slc_accelerator_member *before = &group->member[(d + count - 1) % count];
    const struct slc_row_piece *rows =
        &group->member[(d + count - group->step) % count].rows[group->mode];
    const uint64_t start_ns = slc_clock_ns();

    (void)member->device->ops->factor_copy(member->device, group->mode, before->device,
                                           rows->ranges, rows->count, &member->fault);
    member->stats.exchange_seconds += slc_seconds_since(start_ns);
}

static uint64_t rows_of(const struct slc_row_piece *piece)
{
    uint64_t rows = 0;

    for (uint64_t i = 0; i < piece->count; i++) {
        rows += piece->ranges[i].end - piece->ranges[i].first;
    }
    return rows;
}

/* All rows go round the ring. */
static enum slc_status exchange_rows(struct slc_accelerators *group, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (group->step = 1; group->step < group->count && status == SLC_OK; group->step++) {
        const uint64_t start_ns = slc_clock_ns();
        double seconds, busy[SLC_MAX_DEVICES] = {0};

        for (unsigned d = 0; d < group->count; d++) {
            busy[d] = group->member[d].stats.exchange_seconds;
        }
        status = slc_accelerators_run(group, take_rows, err);
        seconds = slc_seconds_since(start_ns);
        for (unsigned d = 0; d < group->count; d++) {
            struct slc_devices_stats *stats = &group->member[d].stats;
            /* What device d sends goes to d + 1. */
            const unsigned sent = (d + 1 + group->count - group->step) % group->count;

            stats->exchange_wait_seconds += seconds - (stats->exchange_seconds - busy[d]);
            stats->sent_bytes += rows_of(&group->member[sent].rows[group->mode]) *
                                 slc_accelerators_row_bytes(group->plan);
        }
    }
    return status;
}

/* Sums over columns from those of the units, by rows. */
static void join_columns(struct slc_accelerators *group, const struct slc_update_sums *sums)
{
    const struct slc_device_shares *shares = &group->shares[group->mode];
    const uint64_t rank = group->solver->rank;
    uint64_t *places = group->places.data;

    memset(sums->largest, 0, rank * sizeof *sums->largest);
    memset(sums->inner, 0, rank * sizeof *sums->inner);
    for (uint64_t u = 0; u < shares->unit_count; u++) {
        places[shares->ordinal[u]] = u;
    }
    for (uint64_t u = 0; u < shares->unit_count; u++) {
        const double *columns = (const double *)group->columns.data + places[u] * 2 * rank;

        for (uint64_t r = 0; r < rank; r++) {
            sums->largest[r] = fmax(sums->largest[r], columns[r]);
            sums->inner[r] += columns[rank + r];
        }
    }
}

enum slc_status slc_accelerators_update(struct slc_accelerators *group,
                                        unsigned mode,
                                        const struct slc_solver *solver,
                                        const struct slc_update_sums *sums,
                                        struct slc_error *err)
{
    struct slc_device *first = group->member[0].device;
    enum slc_status status;

    SLC_ASSERT(mode == group->mode);
    group->solver = solver;
    status = slc_accelerators_run(group, solve_rows, err);
    if (status == SLC_OK) {
        join_columns(group, sums);
        status = exchange_rows(group, err);
    }
    /* All copies are equal. */
    return status == SLC_OK ? first->ops->gram(first, mode, sums->gram, err) : status;
}

static void scale_device(void *context, unsigned d, unsigned count)
{
    struct slc_accelerators *group = context;
    struct slc_accelerator_member *member = &group->member[d];

    (void)count;
    (void)member->device->ops->scale(member->device, group->mode, group->scale, &member->fault);
}

enum slc_status slc_accelerators_scale(struct slc_accelerators *group,
                                       unsigned mode,
                                       const double *scale,
                                       struct slc_error *err)
{
    group->mode = mode;
    group->scale = scale;
    return slc_accelerators_run(group, scale_device, err);
}
