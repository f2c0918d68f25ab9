/* Computes the rows of a range of a sorted layout.
 *
 * Within a partition, nonzeros are in key order, which is not row order. A worker therefore decodes
 * the nonzeros of a range and sorts them by row. If the range has more nonzeros than fit in its
 * buffer, it counts the nonzeros of intervals of rows, and decodes the range once per interval that
 * fits. */
#include "engine/stream/rows/row_pass_impl.h"

#include "base/memory/checked.h"

#include <string.h>

/* Intervals of rows whose nonzeros are counted at once. */
enum { BUCKETS = 1024 };

/* What happens to the tiles of a range: their nonzeros in the rows first .. end - 1 are appended to
 * the buffer, or counted per `step` rows. */
struct row_filter {
    uint64_t first, end;
    uint64_t step; /* 0: append */
    uint64_t counts[BUCKETS];
};

/* A range of rows that one worker computes. */
struct range_state {
    struct slc_row_passes *passes;
    unsigned number; /* number of the worker */
    struct row_worker *worker;
    uint64_t number_of_range;
    const struct slc_row_range *range;
    double *measures;
    uint64_t next_row; /* all rows before are done */
    struct row_filter filter;
};

/* Adds the nonzeros of a tile to the counts of the filter. */
static enum slc_status count_tile(const struct slc_row_passes *passes,
                                  struct row_filter *filter,
                                  struct slc_tile_view *tile,
                                  struct slc_error *err)
{
    const uint64_t corner = tile->corner[passes->mode];
    struct slc_chunk_view chunk;

    for (;;) {
        SLC_TRY(tile->next(tile, SLC_ROW_PIECE, &chunk, err));
        if (chunk.nnz == 0) {
            return SLC_OK;
        }
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            const uint64_t row = corner + chunk.offset[passes->mode][i];

            if (row >= filter->first && row < filter->end) {
                filter->counts[(row - filter->first) / filter->step]++;
            }
        }
    }
}

static enum slc_status
filter_tile(void *context, unsigned number, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_row_passes *passes = context;
    struct row_worker *worker = &passes->worker[number];
    struct row_filter *filter = worker->filter;

    return filter->step > 0 ? count_tile(passes, filter, tile, err)
                            : slc_row_append(passes, worker, tile, filter->first, filter->end, err);
}

enum slc_status slc_row_range_tile(void *context,
                                   unsigned worker,
                                   struct slc_tile_view *tile,
                                   struct slc_error *err)
{
    return filter_tile(context, worker, tile, err);
}

typedef enum slc_status
tile_done_fn(struct range_state *state, struct row_job *job, struct slc_error *err);

/* Passes all tiles of the range through the filter, and calls `done`, which may be NULL, after each
 * tile. Only the first visit of the tiles counts in the statistics of the stream. */
static enum slc_status visit_tiles(struct range_state *state,
                                   bool first_visit,
                                   tile_done_fn *done,
                                   struct row_job *job,
                                   struct slc_error *err)
{
    const struct slc_row_passes *passes = state->passes;
    const struct slc_row_range *range = state->range;
    slc_tile_fn *fn = first_visit ? slc_row_range_tile : filter_tile;
    struct slc_block_entry entry;

    for (uint64_t b = range->first_block; b < range->first_block + range->block_count; b++) {
        slc_reader_entry(passes->table->reader, b, &entry);
        for (uint32_t t = 0; t < entry.tile_count; t++) {
            SLC_TRY(slc_stream_range_tile(passes->stream, state->number, state->number_of_range, b,
                                          t, fn, err));
            if (done != NULL) {
                SLC_TRY(done(state, job, err));
            }
        }
    }
    return SLC_OK;
}

/* Computes the rows from state->next_row to `end` - 1, which have no nonzeros. */
static enum slc_status solve_empty(struct range_state *state, uint64_t end, struct slc_error *err)
{
    for (; state->next_row < end; state->next_row++) {
        struct row_job job = {.row = {.index = state->next_row}};

        SLC_TRY(
            slc_row_solve(state->passes, state->number, &job, NULL, NULL, state->measures, err));
    }
    return SLC_OK;
}

/* Traverses a row whose nonzeros are in memory. */
static enum slc_status traverse_segments(struct slc_row_passes *passes,
                                         unsigned worker,
                                         struct row_job *job,
                                         void *how,
                                         struct slc_error *err)
{
    const uint64_t end = job->begin + job->row.nnz;

    (void)how;
    (void)err;
    for (uint64_t at = job->begin; at < end; at += passes->segment_nnz) {
        slc_row_segment(passes, worker, job, job->arrays, at,
                        slc_min_u64(at + passes->segment_nnz, end));
    }
    return SLC_OK;
}

/* Computes the rows first .. end - 1, whose nonzeros fit in the buffer. */
static enum slc_status solve_interval(struct range_state *state,
                                      bool first_visit,
                                      uint64_t first,
                                      uint64_t end,
                                      struct slc_error *err)
{
    struct slc_row_passes *passes = state->passes;
    struct row_worker *worker = state->worker;
    const struct row_arrays *arrays = &worker->arrays;
    const uint32_t *rows = arrays->coords[passes->mode];

    slc_row_worker_clear(worker);
    state->filter = (struct row_filter){.first = first, .end = end};
    SLC_TRY(visit_tiles(state, first_visit, NULL, NULL, err));
    slc_row_sort(passes, worker, first, end);
    worker->ahead_end = worker->nnz;
    for (uint32_t begin = 0, next; begin < worker->nnz; begin = next) {
        const uint32_t row = rows[arrays->order != NULL ? arrays->order[begin] : begin];

        next = begin + 1;
        while (next < worker->nnz &&
               rows[arrays->order != NULL ? arrays->order[next] : next] == row) {
            next++;
        }
        struct row_job job = {.row = {.index = row, .nnz = next - begin},
                              .arrays = arrays,
                              .begin = begin,
                              .single = next - begin <= passes->segment_nnz};
        SLC_TRY(solve_empty(state, row, err));
        SLC_TRY(slc_row_solve(passes, state->number, &job, traverse_segments, NULL, state->measures,
                              err));
        state->next_row = row + UINT64_C(1);
    }
    return solve_empty(state, end, err);
}

/* Chooses the rows from `first` on whose nonzeros fit in the buffer; *end gets their end. If the
 * first row does not fit, *end is first + 1, and *row_nnz gets its nonzeros, otherwise 0. */
static enum slc_status choose_interval(struct range_state *state,
                                       uint64_t first,
                                       uint64_t *end,
                                       uint64_t *row_nnz,
                                       struct slc_error *err)
{
    struct row_filter *filter = &state->filter;
    uint64_t to = state->range->end_row;

    for (;;) {
        const uint64_t step = slc_div_up_u64(to - first, BUCKETS);
        uint64_t nnz = 0;

        *filter = (struct row_filter){.first = first, .end = to, .step = step};
        SLC_TRY(visit_tiles(state, false, NULL, NULL, err));
        *row_nnz = 0;
        *end = first;
        for (unsigned k = 0; *end < to && nnz + filter->counts[k] <= state->passes->buffer_nnz;
             k++) {
            nnz += filter->counts[k];
            *end = slc_min_u64(*end + step, to);
        }
        if (*end > first) {
            return SLC_OK;
        }
        if (step == 1) {
            *row_nnz = filter->counts[0];
            *end = first + 1;
            return SLC_OK;
        }
        to = slc_min_u64(first + step, to);
    }
}

/* Adds the complete segments in the buffer to the job. */
static enum slc_status
add_segments(struct range_state *state, struct row_job *job, struct slc_error *err)
{
    struct slc_row_passes *passes = state->passes;

    (void)err;
    while (state->worker->nnz >= passes->segment_nnz) {
        state->worker->ahead_end = passes->segment_nnz;
        slc_row_segment(passes, state->number, job, &state->worker->arrays, 0, passes->segment_nnz);
        slc_row_worker_drop(passes, state->worker, passes->segment_nnz);
    }
    return SLC_OK;
}

/* Adds the tile in the buffer, a segment of a row that has all nonzeros of the range. */
static enum slc_status
add_tile(struct range_state *state, struct row_job *job, struct slc_error *err)
{
    (void)err;
    state->worker->ahead_end = state->worker->nnz;
    if (state->worker->nnz > 0) {
        slc_row_segment(state->passes, state->number, job, &state->worker->arrays, 0,
                        state->worker->nnz);
    }
    slc_row_worker_clear(state->worker);
    return SLC_OK;
}

/* Traverses a row that does not fit in the buffer. `how` points to the state of the range. */
static enum slc_status traverse_tiles(struct slc_row_passes *passes,
                                      unsigned worker,
                                      struct row_job *job,
                                      void *how,
                                      struct slc_error *err)
{
    struct range_state *state = how;
    const uint64_t row = job->row.index;
    const bool single = passes->table->streamed[state->number_of_range].single;

    slc_row_worker_clear(state->worker);
    state->filter = (struct row_filter){.first = row, .end = row + 1};
    SLC_TRY(visit_tiles(state, false, single ? add_tile : add_segments, job, err));
    if (state->worker->nnz > 0) {
        state->worker->ahead_end = state->worker->nnz;
        slc_row_segment(passes, worker, job, &state->worker->arrays, 0, state->worker->nnz);
    }
    return SLC_OK;
}

/* Solves a row of `nnz` nonzeros that does not fit in the buffer. */
static enum slc_status
solve_long(struct range_state *state, uint64_t row, uint64_t nnz, struct slc_error *err)
{
    struct row_job job = {.row = {.index = row, .nnz = nnz}};

    SLC_TRY(solve_empty(state, row, err));
    state->next_row = row + 1;
    return slc_row_solve(state->passes, state->number, &job, traverse_tiles, state, state->measures,
                         err);
}

/* Records the end of a tile in the buffer. */
static enum slc_status
end_tile(struct range_state *state, struct row_job *job, struct slc_error *err)
{
    struct row_worker *worker = state->worker;
    const uint64_t tiles = job->begin; /* tiles in the buffer so far */

    (void)err;
    if (worker->nnz > (tiles > 0 ? worker->order[0][tiles - 1] : 0)) {
        worker->order[0][job->begin++] = worker->nnz;
    }
    return SLC_OK;
}

/* Traverses a row whose tiles are in the buffer. `how` points to the state of the range. */
static enum slc_status traverse_buffer(struct slc_row_passes *passes,
                                       unsigned number,
                                       struct row_job *job,
                                       void *how,
                                       struct slc_error *err)
{
    const struct row_worker *worker = &passes->worker[number];
    uint32_t begin = 0;

    (void)how;
    (void)err;
    for (const uint32_t *end = worker->order[0]; begin < worker->nnz; begin = *end++) {
        slc_row_segment(passes, number, job, &worker->arrays, begin, *end);
    }
    return SLC_OK;
}

static bool has_one_tile(const struct range_state *state)
{
    struct slc_block_entry entry;

    slc_reader_entry(state->passes->table->reader, state->range->first_block, &entry);
    return state->range->block_count == 1 && entry.tile_count == 1;
}

/* Computes a range with nonzeros in a single row, of which every tile is a segment. */
static enum slc_status solve_single(struct range_state *state, uint64_t row, struct slc_error *err)
{
    struct slc_row_passes *passes = state->passes;
    struct row_worker *worker = state->worker;
    struct row_job tiles = {.begin = 0};

    if (state->range->nnz > passes->buffer_nnz) {
        SLC_TRY(solve_long(state, row, passes->table->streamed[state->number_of_range].nnz, err));
        return solve_empty(state, state->range->end_row, err);
    }
    slc_row_worker_clear(worker);
    state->filter = (struct row_filter){.first = row, .end = row + 1};
    SLC_TRY(visit_tiles(state, true, end_tile, &tiles, err));
    worker->ahead_end = worker->nnz;
    struct row_job job = {.row = {.index = row, .nnz = worker->nnz},
                          .arrays = &worker->arrays,
                          .single = has_one_tile(state)};
    SLC_TRY(solve_empty(state, row, err));
    SLC_TRY(
        slc_row_solve(passes, state->number, &job, traverse_buffer, NULL, state->measures, err));
    state->next_row = row + 1;
    return solve_empty(state, state->range->end_row, err);
}

enum slc_status
slc_row_range(void *context, unsigned number, uint64_t range_number, struct slc_error *err)
{
    struct slc_row_passes *passes = context;
    const struct slc_row_range *range = &passes->table->ranges.ranges[range_number];
    struct range_state state = {.passes = passes,
                                .number = number,
                                .worker = &passes->worker[number],
                                .number_of_range = range_number,
                                .range = range,
                                .measures = passes->table->measures[range_number],
                                .next_row = range->first_row};
    struct slc_block_entry entry;
    uint64_t end, row_nnz;

    state.worker->filter = &state.filter;
    if (passes->table->streamed[range_number].single) {
        slc_reader_entry(passes->table->reader, range->first_block, &entry);
        SLC_TRY(solve_single(&state, entry.min[passes->mode], err));
    } else if (range->nnz <= passes->buffer_nnz) {
        SLC_TRY(solve_interval(&state, true, range->first_row, range->end_row, err));
    } else {
        for (uint64_t row = range->first_row; row < range->end_row; row = end) {
            SLC_TRY(choose_interval(&state, row, &end, &row_nnz, err));
            SLC_TRY(row_nnz > 0 ? solve_long(&state, row, row_nnz, err)
                                : solve_interval(&state, row == range->first_row, row, end, err));
        }
    }
    (void)atomic_fetch_add(&passes->done, 1);
    return SLC_OK;
}
