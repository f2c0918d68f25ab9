/* Computes the rows of a range of a sorted layout: decodes its tiles in order, and computes
 * complete rows from the buffer of a worker. */
#include "engine/stream/row_pass_impl.h"

#include "base/memory/checked.h"

#include <string.h>

/* Place of a tile in a layout. */
struct tile_place {
    uint64_t block;
    uint32_t tile;
};

/* A range of rows that one worker computes. */
struct range_state {
    struct slc_row_passes *passes;
    unsigned number; /* of the worker */
    struct row_worker *worker;
    uint64_t range;
    struct tile_place last; /* the last tile that was appended */
    uint64_t next_row;      /* all rows before are done */
    uint32_t first_run;     /* the runs of the buffer before are done */
    /* The row of the last run, and the tile in which it begins. */
    uint64_t tail_row;
    struct tile_place tail;
    /* A row that exceeds the buffer, and its tiles so far. */
    bool has_long;
    uint64_t long_row, long_nnz;
    struct tile_place long_first, long_last;
};

static double *range_measures(const struct range_state *state)
{
    return state->passes->table->measures[state->range];
}

static enum slc_status traverse_runs(struct slc_row_passes *passes,
                                     unsigned worker,
                                     struct row_job *job,
                                     void *how,
                                     struct slc_error *err)
{
    const struct row_run *run = how;

    (void)err;
    for (uint64_t done = 0; done < job->row.nnz; run++) {
        slc_row_segment(passes, worker, job, job->arrays, run->begin, run[1].begin);
        done += run[1].begin - run->begin;
    }
    return SLC_OK;
}

/* Decodes the tiles of the long row again. `how` is the state of the range. */
static enum slc_status traverse_tiles(struct slc_row_passes *passes,
                                      unsigned number,
                                      struct row_job *job,
                                      void *how,
                                      struct slc_error *err)
{
    const struct range_state *state = how;
    struct row_worker *worker = state->worker;
    const uint32_t nnz = worker->nnz, runs = worker->run_count;
    struct slc_block_entry entry;

    for (uint64_t b = state->long_first.block; b <= state->long_last.block; b++) {
        slc_reader_entry(passes->table->reader, b, &entry);
        const uint32_t first = b == state->long_first.block ? state->long_first.tile : 0;
        const uint32_t end =
            b == state->long_last.block ? state->long_last.tile + 1 : entry.tile_count;

        for (uint32_t t = first; t < end; t++) {
            SLC_TRY(slc_stream_range_tile(passes->stream, number, state->range, b, t,
                                          slc_row_append_again, err));
            for (uint32_t r = runs; r < worker->run_count; r++) {
                if (worker->runs[r].row == job->row.index) {
                    worker->ahead_end = worker->runs[r + 1].begin;
                    slc_row_segment(passes, number, job, &worker->arrays, worker->runs[r].begin,
                                    worker->runs[r + 1].begin);
                }
            }
            slc_row_worker_cut(worker, nnz, runs);
        }
    }
    return SLC_OK;
}

/* Computes the rows without nonzeros from state->next_row to `end` - 1. */
static enum slc_status solve_empty(struct range_state *state, uint64_t end, struct slc_error *err)
{
    for (; state->next_row < end; state->next_row++) {
        struct row_job job = {.row = {.index = state->next_row}};

        SLC_TRY(slc_row_solve(state->passes, state->number, &job, NULL, NULL, range_measures(state),
                              err));
    }
    return SLC_OK;
}

/* Computes the rows of the runs of the buffer before run `end`. */
static enum slc_status solve_runs(struct range_state *state, uint32_t end, struct slc_error *err)
{
    struct row_run *runs = state->worker->runs;

    state->worker->ahead_end = runs[end].begin;
    while (state->first_run < end) {
        struct row_run *first = &runs[state->first_run];
        struct row_run *next = first + 1;

        while (next < runs + end && next->row == first->row) {
            next++;
        }
        struct row_job job = {.row = {.index = first->row, .nnz = next->begin - first->begin},
                              .arrays = &state->worker->arrays,
                              .begin = first->begin,
                              .single = next == first + 1};

        SLC_TRY(solve_empty(state, first->row, err));
        SLC_TRY(slc_row_solve(state->passes, state->number, &job, traverse_runs, first,
                              range_measures(state), err));
        state->next_row = first->row + UINT64_C(1);
        state->first_run = (uint32_t)(next - runs);
    }
    return SLC_OK;
}

static enum slc_status solve_long(struct range_state *state, struct slc_error *err)
{
    struct row_job job = {.row = {.index = state->long_row, .nnz = state->long_nnz}};

    state->has_long = false;
    SLC_TRY(solve_empty(state, state->long_row, err));
    state->next_row = state->long_row + 1;
    return slc_row_solve(state->passes, state->number, &job, traverse_tiles, state,
                         range_measures(state), err);
}

/* Moves the nonzeros from run `first` on to the begin of the buffer. */
static void move_to_front(const struct range_state *state, uint32_t first)
{
    const struct slc_row_passes *passes = state->passes;
    struct row_worker *worker = state->worker;
    const uint32_t begin = worker->runs[first].begin;
    const uint32_t nnz = worker->nnz - begin, runs = worker->run_count - first;

    for (unsigned m = 0; m < passes->order; m++) {
        uint32_t *coords = worker->arrays.coords[m];

        if (m != passes->mode) {
            memmove(coords, coords + begin, nnz * sizeof *coords);
        }
    }
    memmove(worker->arrays.values, worker->arrays.values + begin, nnz * sizeof(double));
    for (uint32_t r = 0; r < runs; r++) {
        worker->runs[r] = worker->runs[first + r];
        worker->runs[r].begin -= begin;
    }
    worker->product_arrays = NULL;
    slc_row_worker_cut(worker, nnz, runs);
}

/* Makes space for `nnz` nonzeros in the buffer: computes the complete rows. If the last row, which
 * may be incomplete, leaves too little space, it becomes the long row. */
static enum slc_status make_space(struct range_state *state, uint64_t nnz, struct slc_error *err)
{
    struct row_worker *worker = state->worker;
    uint32_t last = worker->run_count;

    if (worker->nnz + nnz <= state->passes->buffer_nnz) {
        return SLC_OK;
    }
    while (last > state->first_run && worker->runs[last - 1].row == state->tail_row) {
        last--;
    }
    SLC_TRY(solve_runs(state, last, err));
    move_to_front(state, last);
    state->first_run = 0;
    if (worker->nnz + nnz > state->passes->buffer_nnz) {
        state->has_long = true;
        state->long_row = state->tail_row;
        state->long_nnz = worker->nnz;
        state->long_first = state->tail;
        state->long_last = state->last;
        slc_row_worker_cut(worker, 0, 0);
    }
    return SLC_OK;
}

/* Continues the long row with the first nonzeros of the last tile, with which the buffer begins.
 * Solves the row if it ends in or before this tile. */
static enum slc_status continue_long(struct range_state *state, struct slc_error *err)
{
    struct row_worker *worker = state->worker;

    if (worker->run_count > 0 && worker->runs[0].row == state->long_row) {
        state->long_nnz += worker->runs[1].begin;
        state->long_last = state->last;
        state->first_run = 1;
    }
    if (worker->run_count > state->first_run) {
        return solve_long(state, err);
    }
    slc_row_worker_cut(worker, 0, 0);
    state->first_run = 0;
    return SLC_OK;
}

/* Appends a tile to the buffer. */
static enum slc_status
add_tile(struct range_state *state, uint64_t block, uint32_t tile, struct slc_error *err)
{
    struct slc_row_passes *passes = state->passes;
    const struct row_worker *worker = state->worker;

    SLC_TRY(slc_stream_range_tile(passes->stream, state->number, state->range, block, tile,
                                  slc_row_append, err));
    state->last = (struct tile_place){block, tile};
    if (state->has_long) {
        SLC_TRY(continue_long(state, err));
    }
    if (worker->run_count > state->first_run &&
        worker->runs[worker->run_count - 1].row != state->tail_row) {
        state->tail_row = worker->runs[worker->run_count - 1].row;
        state->tail = state->last;
    }
    return SLC_OK;
}

enum slc_status
slc_row_range(void *context, unsigned number, uint64_t range_number, struct slc_error *err)
{
    struct slc_row_passes *passes = context;
    const struct slc_row_range *range = &passes->table->ranges.ranges[range_number];
    struct range_state state = {.passes = passes,
                                .number = number,
                                .worker = &passes->worker[number],
                                .range = range_number,
                                .next_row = range->first_row,
                                .tail_row = UINT64_MAX};
    struct slc_block_entry entry;

    slc_row_worker_cut(state.worker, 0, 0);
    for (uint64_t b = range->first_block; b < range->first_block + range->block_count; b++) {
        slc_reader_entry(passes->table->reader, b, &entry);
        for (uint32_t t = 0; t < entry.tile_count; t++) {
            SLC_TRY(make_space(&state, slc_min_u64(entry.nnz, SLC_TILE_NNZ), err));
            SLC_TRY(add_tile(&state, b, t, err));
        }
    }
    if (state.has_long) {
        SLC_TRY(solve_long(&state, err));
    }
    SLC_TRY(solve_runs(&state, state.worker->run_count, err));
    SLC_TRY(solve_empty(&state, range->end_row, err));
    (void)atomic_fetch_add(&passes->done, 1);
    return SLC_OK;
}
