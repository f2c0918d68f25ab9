/* Updates the rows of a factor from their nonzeros: makes passes over ranges of rows and over the
 * blocks of rows that exceed the ring, and divides updates into parts. */
#include "engine/stream/rows/row_pass_impl.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Interval between two calls of pass->progress: 100 ms. */
#define PROGRESS_INTERVAL_NS UINT64_C(100000000)

void slc_row_progress(void *context, uint64_t done, uint64_t count, uint64_t bytes_read)
{
    struct slc_row_passes *passes = context;
    const struct slc_row_pass *pass = passes->pass;
    const uint64_t now_ns = slc_clock_ns();

    (void)done;
    (void)count;
    if (pass->progress != NULL && now_ns - passes->progress_ns >= PROGRESS_INTERVAL_NS) {
        passes->progress_ns = now_ns;
        pass->progress(pass->progress_context, atomic_load(&passes->done), passes->table->count,
                       passes->bytes_read + bytes_read);
    }
}

void slc_row_turns_reset(struct slc_row_passes *passes)
{
    passes->turns.turn = 0;
    passes->turns.stopped = false;
}

enum slc_status
slc_row_stream(struct slc_row_passes *passes, struct slc_pass *pass, struct slc_error *err)
{
    struct slc_stream_stats before, after;

    pass->layout = passes->table->layout;
    pass->stop = passes->pass->stop;
    pass->progress = slc_row_progress;
    pass->progress_context = passes;
    slc_row_turns_reset(passes);
    slc_stream_stats(passes->stream, &before);
    const enum slc_status status = slc_stream_pass(passes->stream, pass, err);
    slc_stream_stats(passes->stream, &after);
    passes->bytes_read += after.bytes_read - before.bytes_read;
    passes->pass->repeated_bytes += passes->repeating ? after.bytes_read - before.bytes_read : 0;
    return status;
}

/* Adds a tile to the sums of the streamed row. Callback of the pass of traverse_streamed. */
static enum slc_status
add_tile(void *context, unsigned number, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_row_passes *passes = context;
    struct row_worker *worker = &passes->worker[number];

    slc_row_worker_clear(worker);
    SLC_TRY(slc_row_append(passes, worker, tile, passes->shared->row.index,
                           passes->shared->row.index + 1, err));
    worker->ahead_end = worker->nnz;
    if (!slc_row_shared_segment(passes, number, &worker->arrays, 0, worker->nnz,
                                tile->ordinal - passes->first_tile)) {
        return slc_fail(err, SLC_ERR_INTERRUPTED, "the pass ended before the tile's turn");
    }
    return SLC_OK;
}

static void wake_turns(void *context)
{
    slc_turns_stop(&((struct slc_row_passes *)context)->turns);
}

/* Traverses a row with a pass over its blocks. `how` points to the number of the row's range. */
static enum slc_status traverse_streamed(struct slc_row_passes *passes,
                                         unsigned worker,
                                         struct row_job *job,
                                         void *how,
                                         struct slc_error *err)
{
    const uint64_t range = *(const uint64_t *)how;
    uint64_t first, end;

    (void)worker;
    slc_row_ranges_blocks(&passes->table->ranges, range, range + 1, &first, &end);
    struct slc_pass pass = {
        .kind = SLC_PASS_TILES,
        .tiles = {.consumer = {.tile = add_tile, .wake = wake_turns, .context = passes},
                  .blocks = passes->table->ranges.block_order + first,
                  .block_count = end - first}};
    struct slc_block_entry entry;

    slc_reader_entry(passes->table->reader, pass.tiles.blocks[0], &entry);
    passes->first_tile = entry.first_tile;
    passes->shared = job;
    return slc_row_stream(passes, &pass, err);
}

/* Computes the rows first .. end - 1, which have no nonzeros. */
static enum slc_status solve_empty(struct slc_row_passes *passes,
                                   uint64_t first,
                                   uint64_t end,
                                   double measures[SLC_ROW_MEASURES],
                                   struct slc_error *err)
{
    for (uint64_t row = first; row < end; row++) {
        struct row_job job = {.row = {.index = row}};

        SLC_TRY(slc_row_solve(passes, 0, &job, NULL, NULL, measures, err));
    }
    return SLC_OK;
}

/* Computes a range with nonzeros in a single row, with all workers. */
static enum slc_status
solve_streamed(struct slc_row_passes *passes, uint64_t number, struct slc_error *err)
{
    struct row_table *table = passes->table;
    const struct slc_row_range *range = &table->ranges.ranges[number];
    double *measures = table->measures[number];
    struct slc_block_entry entry;

    slc_reader_entry(table->reader, range->first_block, &entry);
    const uint64_t row = entry.min[passes->mode];
    struct row_job job = {.row = {.index = row,
                                  .nnz = table->streamed[number].nnz,
                                  .streamed = table->streamed[number].reads}};
    SLC_TRY(solve_empty(passes, range->first_row, row, measures, err));
    SLC_TRY(slc_row_solve(passes, 0, &job, traverse_streamed, &number, measures, err));
    SLC_TRY(solve_empty(passes, row + 1, range->end_row, measures, err));
    passes->repeating = false;
    passes->pass->streamed_rows += job.row.streamed;
    (void)atomic_fetch_add(&passes->done, 1);
    return SLC_OK;
}

/* Computes the ranges first .. end - 1, none of which is streamed. */
static enum slc_status
solve_ranges(struct slc_row_passes *passes, uint64_t first, uint64_t end, struct slc_error *err)
{
    struct slc_pass pass = {.kind = SLC_PASS_RANGES,
                            .ranges = {.consumer = {.tile = slc_row_range_tile, .context = passes},
                                       .ranges = &passes->table->ranges,
                                       .compute = slc_row_range,
                                       .part = {first, end}}};

    return slc_row_stream(passes, &pass, err);
}

/* Computes the ranges first .. end - 1. */
static enum slc_status solve_sorted_part(struct slc_row_passes *passes,
                                         uint64_t first,
                                         uint64_t end,
                                         struct slc_error *err)
{
    struct row_table *table = passes->table;

    memset(table->measures + first, 0, (end - first) * sizeof *table->measures);
    for (uint64_t r = first, next; r < end; r = next) {
        next = r + 1;
        if (table->streamed[r].used) {
            SLC_TRY(solve_streamed(passes, r, err));
            continue;
        }
        while (next < end && !table->streamed[next].used) {
            next++;
        }
        SLC_TRY(solve_ranges(passes, r, next, err));
    }
    for (uint64_t r = first; r < end; r++) {
        for (unsigned k = 0; k < SLC_ROW_MEASURES; k++) {
            passes->pass->measures[k] += table->measures[r][k];
        }
    }
    return SLC_OK;
}

static enum slc_status run_parts(struct slc_row_passes *passes, struct slc_error *err)
{
    const struct slc_pass_cuts *cuts = passes->pass->cuts;
    const uint64_t count = passes->table->count;
    uint64_t first = cuts != NULL ? cuts->first : 0;

    if (first > 0) {
        if (first >= count) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "an update of %" PRIu64 " positions cannot resume at position %" PRIu64,
                            count, first);
        }
        SLC_TRY(cuts->resume(cuts->context, err));
    }
    atomic_store(&passes->done, first);
    while (first < count) {
        const uint64_t end = cuts != NULL ? cuts->end(cuts->context, first, count) : count;

        assert(end > first && end <= count);
        SLC_TRY(passes->table->sorted ? solve_sorted_part(passes, first, end, err)
                                      : slc_row_gather_part(passes, first, end, err));
        if (end < count) {
            SLC_TRY(cuts->between(cuts->context, end, err));
        }
        first = end;
    }
    return SLC_OK;
}

static enum slc_status check_pass(const struct slc_row_passes *passes,
                                  const struct slc_row_pass *pass,
                                  struct slc_error *err)
{
    const struct slc_row_solver *solver = pass->solver;

    if (solver->input != SLC_ROW_NONZEROS || pass->about->mode >= passes->order ||
        pass->about->rank != passes->rank || pass->about->workers < passes->workers ||
        (pass->measure && solver->measure == NULL)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the solver %s does not fit an update of rows of rank %" PRIu32
                        " with %u workers",
                        solver->name, passes->rank, passes->workers);
    }
    if (solver->sums(solver->context, passes->rank) > passes->sum_count ||
        solver->memory(solver->context, passes->rank) > passes->memory_count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the solver %s needs more than %" PRIu64 " sums or %" PRIu64
                        " numbers of memory per row, for which the run was planned",
                        solver->name, passes->sum_count, passes->memory_count);
    }
    for (unsigned n = 0; n < passes->order; n++) {
        const uint64_t rows = passes->tables[n].rows;

        if (pass->factors[n].rows != rows || pass->factors[n].cols != passes->rank) {
            return slc_fail(
                err, SLC_ERR_USAGE,
                "factor %u has %" PRIu64 " x %" PRIu32 " numbers instead of %" PRIu64 " x %" PRIu32,
                n + 1, pass->factors[n].rows, pass->factors[n].cols, rows, passes->rank);
        }
    }
    return SLC_OK;
}

enum slc_status
slc_row_pass_run(struct slc_row_passes *passes, struct slc_row_pass *pass, struct slc_error *err)
{
    const struct slc_row_solver *solver = pass->solver;

    SLC_TRY(check_pass(passes, pass, err));
    passes->pass = pass;
    passes->mode = pass->about->mode;
    passes->table = &passes->tables[passes->mode];
    passes->bytes_read = 0;
    passes->repeating = false;
    passes->progress_ns = slc_clock_ns();
    pass->streamed_rows = 0;
    pass->repeated_bytes = 0;
    for (unsigned w = 0; w < passes->workers; w++) {
        slc_row_worker_begin(passes, &passes->worker[w]);
    }
    enum slc_status status =
        solver->begin != NULL ? solver->begin(solver->context, pass->about, err) : SLC_OK;
    if (status == SLC_OK) {
        status = run_parts(passes, err);
        if (solver->end != NULL) {
            solver->end(solver->context);
        }
    }
    pass->rows = 0;
    pass->traversals = 0;
    pass->most = 0;
    for (unsigned w = 0; w < passes->workers; w++) {
        pass->rows += passes->worker[w].rows;
        pass->traversals += passes->worker[w].traversals;
        pass->most = slc_max_u64(pass->most, passes->worker[w].most);
    }
    passes->pass = NULL;
    return status;
}

/* Divides the memory of the plan between the workers. */
static enum slc_status
make_workers(struct slc_row_passes *passes, const struct slc_plan *plan, struct slc_error *err)
{
    const uint64_t bytes = slc_row_worker_place(passes, NULL, NULL);

    passes->worker = slc_calloc(passes->workers, sizeof *passes->worker);
    SLC_TRY(slc_check_memory(passes->worker != NULL, err, "for the buffers of rows"));
    SLC_TRY(slc_buffer_create(&passes->buffer, plan->rows.worker_bytes, SLC_PAGES_MIXED, err));
    if (bytes * passes->workers > passes->buffer.bytes) {
        return slc_fail(err, SLC_ERR_USAGE, "the plan has too little memory for buffers of rows");
    }
    for (unsigned w = 0; w < passes->workers; w++) {
        (void)slc_row_worker_place(passes, &passes->worker[w],
                                   (char *)passes->buffer.data + w * bytes);
    }
    return SLC_OK;
}

enum slc_status slc_row_passes_open(struct slc_stream *stream,
                                    const struct slc_plan *plan,
                                    const volatile int *stop,
                                    struct slc_row_passes **result,
                                    struct slc_error *err)
{
    struct slc_row_passes *passes = slc_calloc(1, sizeof *passes);

    SLC_TRY(slc_check_memory(passes != NULL, err, "for passes over rows"));
    enum slc_status status = slc_turns_init(&passes->turns, err);
    if (status != SLC_OK) {
        slc_free(passes);
        return status;
    }
    passes->stream = stream;
    passes->order = slc_reader_info(slc_stream_reader(stream, 0))->order;
    passes->workers = plan->threads;
    slc_row_sizes(plan, passes);
    status = make_workers(passes, plan, err);
    for (unsigned n = 0; n < passes->order; n++) {
        SLC_THEN(status, slc_row_table_make(passes, plan, n, err));
    }
    SLC_THEN(status, slc_row_tables_count(passes, stop, err));
    SLC_THEN(status, slc_row_gather_open(passes, plan, err));
    if (status != SLC_OK) {
        slc_row_passes_close(passes);
        return status;
    }
    *result = passes;
    return SLC_OK;
}

void slc_row_passes_close(struct slc_row_passes *passes)
{
    if (passes == NULL) {
        return;
    }
    slc_row_gather_close(passes);
    for (unsigned n = 0; n < passes->order; n++) {
        slc_row_table_destroy(&passes->tables[n]);
    }
    slc_buffer_destroy(&passes->buffer);
    slc_free(passes->worker);
    slc_turns_destroy(&passes->turns);
    slc_free(passes);
}
