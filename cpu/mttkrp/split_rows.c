/* Implements rows that several partitions of a sorted layout share.
 *
 * The rows of a partition have one owner, which adds directly to the output. A row with more
 * nonzeros than a partition should have is split over several partitions, possibly with different
 * owners. The first of these partitions adds to the output, and each other partition adds to
 * separate sums. The separate sums are added to the row after all tiles, in the order of the
 * partitions, so the bits of the result do not depend on timing.
 *
 * Cost: memory for a row of sums per partition; only the sums of partitions that continue a row are
 * touched. */
#include "cpu/mttkrp/mttkrp.h"

#include <string.h>

/* Value for a partition that continues no row or has not started. */
#define NO_ROW UINT64_MAX

/* Returns an array with one element per partition: the output row that it continues, or NO_ROW. */
static uint64_t *rows_of(const struct slc_cpu_backend *cpu)
{
    return (uint64_t *)(void *)((unsigned char *)cpu->scratch.data + cpu->layout.split_rows_at);
}

static unsigned char *sums_of(const struct slc_cpu_backend *cpu, uint64_t partition)
{
    return (unsigned char *)cpu->scratch.data + cpu->layout.split_sums_at +
           partition * cpu->sum_stride;
}

void slc_split_rows_begin(struct slc_cpu_backend *cpu)
{
    for (uint64_t p = 0; p < cpu->job.partitions; p++) {
        rows_of(cpu)[p] = NO_ROW;
    }
}

unsigned char *slc_split_rows_sums(struct slc_cpu_backend *cpu, const struct slc_tile_view *tile)
{
    const uint64_t row = tile->corner[cpu->job.mode];
    unsigned char *sums = sums_of(cpu, tile->partition);
    uint64_t *continues = &rows_of(cpu)[tile->partition];

    if (!tile->continued) {
        return cpu->sums + row * cpu->sum_stride;
    }
    if (*continues == NO_ROW) {
        *continues = row;
        memset(sums, 0, cpu->sum_stride);
    }
    return sums;
}

void slc_split_rows_finish(struct slc_cpu_backend *cpu)
{
    for (uint64_t p = 0; p < cpu->job.partitions; p++) {
        const uint64_t row = rows_of(cpu)[p];

        if (row != NO_ROW) {
            cpu->kernels->add_f64(cpu->sums + row * cpu->sum_stride, sums_of(cpu, p),
                                  cpu->sum_stride / sizeof(double));
        }
    }
}

static void add_region(struct slc_mttkrp_state *state, void *data, uint64_t bytes)
{
    state->region[state->count].data = data;
    state->region[state->count].bytes = bytes;
    state->region[state->count++].word_bytes = sizeof(uint64_t);
}

void slc_split_rows_state(struct slc_cpu_backend *cpu, struct slc_mttkrp_state *state)
{
    /* Zero the sums of partitions that have not started, because these sums are uninitialized. */
    for (uint64_t p = 0; p < cpu->job.partitions; p++) {
        if (rows_of(cpu)[p] == NO_ROW) {
            memset(sums_of(cpu, p), 0, cpu->sum_stride);
        }
    }
    add_region(state, rows_of(cpu), cpu->job.partitions * sizeof(uint64_t));
    add_region(state, sums_of(cpu, 0), cpu->job.partitions * cpu->sum_stride);
}

enum slc_status slc_split_rows_check(const struct slc_cpu_backend *cpu, struct slc_error *err)
{
    for (uint64_t p = 0; p < cpu->job.partitions; p++) {
        const uint64_t row = rows_of(cpu)[p];

        if (row != NO_ROW && row >= cpu->job.output->rows) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "partition %llu continues row %llu, but the output has %llu rows",
                            (unsigned long long)p, (unsigned long long)row,
                            (unsigned long long)cpu->job.output->rows);
        }
    }
    return SLC_OK;
}

bool slc_split_rows_take(struct slc_backend *backend,
                         uint64_t partition,
                         uint64_t *row,
                         double *sums)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    if (!cpu->running || cpu->conflict != SLC_CONFLICT_ROWS || partition >= cpu->job.partitions ||
        rows_of(cpu)[partition] == NO_ROW) {
        return false;
    }
    *row = rows_of(cpu)[partition];
    rows_of(cpu)[partition] = NO_ROW;
    memcpy(sums, sums_of(cpu, partition), cpu->sum_stride);
    return true;
}

void slc_split_rows_add(struct slc_backend *backend, uint64_t row, const double *sums)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    cpu->kernels->add_f64(cpu->sums + row * cpu->sum_stride, sums,
                          cpu->sum_stride / sizeof(double));
}
