/* Computes MTTKRP from a copy: a worker selects an item, zeroes its rows and adds its chunks.
 *
 * A range with one item is written directly to the output. The items of a larger range have
 * windows; the worker that finishes the last item of the range adds up the windows in order. The
 * sums therefore do not depend on which worker computed which item. An f32 output is rounded once
 * from f64 sums, which are in a window of the worker. */
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "cpu/mttkrp/mttkrp.h"
#include "cpu/replica/replica.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* State of an MTTKRP from a copy. */
struct replica_run {
    const struct slc_cpu_backend *cpu;
    struct slc_replica_mode *copy;
    unsigned char *windows;        /* windows of the ranges with several items */
    unsigned char *worker_windows; /* with an f32 output: rows_max rows of sums per worker */
};

static bool needs_worker_windows(enum slc_value_type type)
{
    return type == SLC_F32;
}

static uint64_t worker_window_bytes(const struct slc_replica_mode *copy, uint64_t sum_stride)
{
    return copy->rows_max * sum_stride;
}

uint64_t slc_replica_scratch_bytes(const struct slc_cpu_backend *cpu)
{
    const struct slc_replica_mode *copy = &cpu->replica->modes[cpu->job.mode];
    const uint64_t own =
        needs_worker_windows(cpu->type) ? worker_window_bytes(copy, cpu->sum_stride) : 0;

    return copy->window_rows * cpu->sum_stride + own * cpu->job.workers;
}

/* The arrays of a chunk. */
struct parts {
    const void *values;
    const uint32_t *begin;                 /* NULL if there are no runs */
    const uint32_t *offset[SLC_MAX_ORDER]; /* indexed by mode */
};

static void chunk_parts(const struct slc_replica *replica,
                        uint32_t varying,
                        const struct slc_replica_chunk *chunk,
                        struct parts *parts)
{
    const unsigned order = replica->shape.order;
    const unsigned char *values = (const unsigned char *)(chunk + 1);
    const uint32_t *next =
        (const uint32_t *)(const void *)(values +
                                         (uint64_t)chunk->nnz * slc_value_bytes(replica->type));
    const uint32_t each = chunk->runs > 0 ? varying : UINT32_MAX;

    parts->values = values;
    parts->begin = NULL;
    for (unsigned m = 0; m < order; m++) {
        if (slc_replica_varies(each, m)) {
            parts->offset[m] = next;
            next += chunk->nnz;
        }
    }
    if (chunk->runs > 0) {
        parts->begin = next;
        next += chunk->runs + 1;
    }
    for (unsigned m = 0; m < order; m++) {
        if (!slc_replica_varies(each, m)) {
            parts->offset[m] = next;
            next += chunk->runs;
        }
    }
}

static const unsigned char *factor_rows(const struct slc_cpu_backend *cpu, unsigned mode)
{
    return cpu->job.factors[mode]->buffer.data;
}

/* Adds the products of a chunk whose runs are fibers of the output's mode to the output. */
static void add_fibers(const struct slc_cpu_backend *cpu,
                       const struct slc_replica_chunk *chunk,
                       const struct parts *parts,
                       unsigned char *output)
{
    const unsigned output_mode = cpu->job.mode;
    struct slc_fiber_span span = {.runs = chunk->runs,
                                  .stride = cpu->stride,
                                  .row_bytes = cpu->stride,
                                  .begin = parts->begin,
                                  .values = parts->values,
                                  .run_offset = parts->offset[output_mode],
                                  .output = output};

    for (unsigned m = 0; m < cpu->replica->shape.order; m++) {
        if (m != output_mode) {
            span.offset[span.factor_count] = parts->offset[m];
            span.factor[span.factor_count++] = factor_rows(cpu, m);
        }
    }
    slc_mttkrp_accumulate_fibers(cpu, &span);
}

/* Adds the products of a chunk, each of whose runs has a single output row, to the output. */
static void add_groups(const struct slc_cpu_backend *cpu,
                       uint32_t varying,
                       const struct slc_replica_chunk *chunk,
                       const struct parts *parts,
                       unsigned char *output)
{
    const unsigned order = cpu->replica->shape.order;
    struct slc_group_span span = {.groups = chunk->runs,
                                  .long_groups = slc_mttkrp_long_runs(chunk->nnz, chunk->runs),
                                  .stride = cpu->stride,
                                  .begin = parts->begin,
                                  .values = parts->values,
                                  .rows = parts->offset[cpu->job.mode],
                                  .output = output};

    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned m = 0; m < order; m++) {
            if (slc_replica_varies(varying, m) == (pass == 0) && m != cpu->job.mode) {
                span.offset[span.factor_count] = parts->offset[m];
                span.factor[span.factor_count++] = factor_rows(cpu, m);
            }
        }
        span.varying = pass == 0 ? span.factor_count : span.varying;
    }
    slc_mttkrp_accumulate_groups(cpu, &span);
}

static void add_plain(const struct slc_cpu_backend *cpu,
                      const struct slc_replica_chunk *chunk,
                      const struct parts *parts,
                      unsigned char *output)
{
    /* all corners are 0, because the offsets of a chunk are not relative to a tile */
    static const struct slc_tile_view origin = {.nnz = 0};
    struct slc_mttkrp_span span;
    unsigned factor = 0;

    slc_mttkrp_span_init(cpu, &origin, output, &span);
    for (unsigned m = 0; m < cpu->replica->shape.order; m++) {
        if (m != cpu->job.mode) {
            /* Each is set: NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
            span.offset[factor++] = parts->offset[m];
        }
    }
    span.nnz = chunk->nnz;
    /* As above: NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
    span.rows = parts->offset[cpu->job.mode];
    span.values = parts->values;
    slc_mttkrp_accumulate_as(cpu, &span);
}

void slc_replica_add_pieces(const struct slc_cpu_backend *cpu,
                            const struct slc_replica_mode *copy,
                            uint64_t first_piece,
                            uint64_t piece_count,
                            unsigned char *output)
{
    for (uint64_t p = 0; p < piece_count; p++) {
        const struct slc_replica_piece *piece = &copy->pieces[first_piece + p];
        const unsigned char *at = piece->chunks;

        for (uint32_t c = 0; c < piece->chunk_count; c++) {
            const struct slc_replica_chunk *chunk =
                (const struct slc_replica_chunk *)(const void *)at;
            struct parts parts;

            chunk_parts(cpu->replica, copy->varying, chunk, &parts);
            if (chunk->runs == 0) {
                add_plain(cpu, chunk, &parts, output);
            } else if (slc_replica_varies(copy->varying, cpu->job.mode)) {
                add_fibers(cpu, chunk, &parts, output);
            } else {
                add_groups(cpu, copy->varying, chunk, &parts, output);
            }
            at += chunk->bytes;
        }
    }
}

/* Rounds a range's f64 sums in `window` to f32 and stores them in the output. */
static void
round_rows(const struct replica_run *run, const struct slc_replica_range *range, const void *window)
{
    const double *sums = window;
    float *output = slc_matrix_row_f32(run->cpu->job.output, range->row_begin);
    const uint64_t count =
        (range->row_end - range->row_begin) * run->cpu->sum_stride / sizeof(double);

    for (uint64_t i = 0; i < count; i++) {
        output[i] = (float)sums[i];
    }
}

static unsigned char *output_rows(const struct replica_run *run,
                                  const struct slc_replica_range *range)
{
    return (unsigned char *)run->cpu->job.output->buffer.data + range->row_begin * run->cpu->stride;
}

static void compute_alone(const struct replica_run *run,
                          const struct slc_replica_range *range,
                          const struct slc_replica_item *item,
                          unsigned worker)
{
    const uint64_t sum_stride = run->cpu->sum_stride;
    const bool rounds = needs_worker_windows(run->cpu->type);
    unsigned char *sums =
        rounds ? run->worker_windows + worker * worker_window_bytes(run->copy, sum_stride)
               : output_rows(run, range);

    memset(sums, 0, (range->row_end - range->row_begin) * sum_stride);
    slc_replica_add_pieces(run->cpu, run->copy, item->first_piece, item->piece_count, sums);
    if (rounds) {
        round_rows(run, range, sums);
    }
}

/* Adds up the windows of a range after all its items are finished. */
static void merge_windows(const struct replica_run *run, const struct slc_replica_range *range)
{
    const uint64_t bytes = (range->row_end - range->row_begin) * run->cpu->sum_stride;
    unsigned char *first = run->windows + range->window_rows * run->cpu->sum_stride;

    for (uint32_t s = 1; s < range->items; s++) {
        run->cpu->kernels->add_f64(first, first + s * bytes, bytes / sizeof(double));
    }
    if (needs_worker_windows(run->cpu->type)) {
        round_rows(run, range, first);
    } else {
        memcpy(output_rows(run, range), first, bytes);
    }
}

static void compute_share(const struct replica_run *run,
                          struct slc_replica_range *range,
                          const struct slc_replica_item *item)
{
    const uint64_t rows = range->row_end - range->row_begin;
    unsigned char *window =
        run->windows + (range->window_rows + item->share * rows) * run->cpu->sum_stride;

    memset(window, 0, rows * run->cpu->sum_stride);
    slc_replica_add_pieces(run->cpu, run->copy, item->first_piece, item->piece_count, window);
    if (atomic_fetch_sub(&range->left, 1) == 1) {
        merge_windows(run, range);
    }
}

/* Computes items. They are divided among workers as the pieces of the replica were when it was
 * written, so most workers read memory of their own NUMA node. */
static void compute_items(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct replica_run *run = context;

    for (uint64_t i = begin; i < end; i++) {
        const struct slc_replica_item *item = &run->copy->items[i];

        if (run->copy->ranges[item->range].items == 1) {
            compute_alone(run, &run->copy->ranges[item->range], item, worker);
        } else {
            compute_share(run, &run->copy->ranges[item->range], item);
        }
    }
}

enum slc_status slc_replica_mttkrp(struct slc_cpu_backend *cpu, struct slc_error *err)
{
    struct replica_run run = {
        .cpu = cpu, .copy = &cpu->replica->modes[cpu->job.mode], .windows = cpu->scratch.data};

    /* If the buffer is empty, there are no windows. */
    run.worker_windows =
        run.windows == NULL ? NULL : run.windows + run.copy->window_rows * cpu->sum_stride;
    for (uint64_t r = 0; r < run.copy->range_count; r++) {
        atomic_store(&run.copy->ranges[r].left, run.copy->ranges[r].items);
    }
    return slc_team_for(cpu->job.workers, run.copy->item_count, 1, compute_items, &run, err);
}
