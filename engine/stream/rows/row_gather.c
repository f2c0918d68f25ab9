/* Gathers rows of a layout that is not sorted by their mode.
 *
 * A pass reads the blocks whose index entries meet an interval of rows. Workers decode tiles, keep
 * the nonzeros of the interval, and copy them, one worker after the other in the order of tiles, to
 * the places of their rows, which follow from the counts of nonzeros. So the nonzeros of a row are
 * in key order. Then the workers compute the rows.
 *
 * All workers compute a very long row together. If it does not fit in the memory for gathered
 * nonzeros, every traversal gathers it in batches. The first batch of the first traversal reads all
 * blocks of the row and finds the blocks of the other batches.
 *
 * A mode that keeps its nonzeros (slc_plan_rows.gather_kept) gathers all of them in its first
 * update. */
#include "engine/stream/rows/row_pass_impl.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* A worker claims rows until it has this many nonzeros or rows. */
enum { SHARE_NNZ = 8192, SHARE_ROWS = 256 };

/* One worker updates a row alone if all nonzeros make at least this many such rows per worker. */
enum { SHARES_LEAST = 4 };

/* The place of a nonzero that is not in the current batch. */
#define NO_PLACE UINT32_MAX

/* Returns the bytes of an area. */
static uint64_t area_bytes(const struct slc_row_passes *passes)
{
    return passes->gather.capacity == 0
               ? 0
               : slc_row_gather_bytes(passes->order, passes->gather.capacity);
}

/* Assigns an area to each gathered mode, and returns their number. `kept` has the modes that have
 * their own. */
static unsigned assign_areas(struct slc_row_passes *passes, uint32_t kept)
{
    unsigned areas = 0, shared = SLC_MAX_ORDER;

    for (unsigned n = 0; n < passes->order; n++) {
        struct row_table *table = &passes->tables[n];

        table->keeps = !table->sorted && (kept >> n & 1U) != 0;
        if (table->keeps) {
            table->area = areas++;
        } else if (!table->sorted) {
            shared = shared < SLC_MAX_ORDER ? shared : areas++;
            table->area = shared;
        }
    }
    return areas;
}

enum slc_status slc_row_gather_open(struct slc_row_passes *passes,
                                    const struct slc_plan *plan,
                                    struct slc_error *err)
{
    struct row_gathering *gather = &passes->gather;
    uint64_t blocks = 0, rows = 0;

    gather->capacity = slc_min_u64(plan->rows.gather_nnz, NO_PLACE);
    for (unsigned n = 0; n < passes->order; n++) {
        if (!passes->tables[n].sorted) {
            blocks = slc_max_u64(blocks, slc_reader_info(passes->tables[n].reader)->block_count);
            rows = slc_max_u64(rows, passes->tables[n].rows);
            for (uint64_t i = 0; gather->capacity > 0 && i < passes->tables[n].rows; i++) {
                gather->batch_most =
                    slc_max_u64(gather->batch_most,
                                slc_div_up_u64(passes->tables[n].counts[i], gather->capacity));
            }
        }
    }
    const unsigned areas = assign_areas(passes, plan->rows.gather_kept);
    SLC_TRY(slc_buffer_create(&gather->buffer, plan->rows.gather_bytes, SLC_PAGES_MIXED, err));
    if (areas * area_bytes(passes) > gather->buffer.bytes) {
        return slc_fail(err, SLC_ERR_USAGE, "the plan has too little memory for gathered rows");
    }
    gather->cursors = slc_calloc(rows, sizeof *gather->cursors);
    gather->blocks = slc_calloc(blocks, sizeof *gather->blocks);
    gather->tiles_before = slc_calloc(blocks, sizeof *gather->tiles_before);
    gather->batch_block = slc_calloc(gather->batch_most, sizeof *gather->batch_block);
    gather->batch_nnz = slc_calloc(gather->batch_most, sizeof *gather->batch_nnz);
    return slc_check_memory(
        gather->cursors != NULL && gather->blocks != NULL && gather->tiles_before != NULL &&
            gather->batch_block != NULL && gather->batch_nnz != NULL,
        err, "for tables of %" PRIu64 " blocks and %" PRIu64 " rows", blocks, rows);
}

void slc_row_gather_close(struct slc_row_passes *passes)
{
    struct row_gathering *gather = &passes->gather;

    slc_buffer_destroy(&gather->buffer);
    slc_free(gather->cursors);
    slc_free(gather->blocks);
    slc_free(gather->tiles_before);
    slc_free(gather->batch_block);
    slc_free(gather->batch_nnz);
}

/* Returns the position in gather->blocks of a block of the pass. */
static uint64_t find_block(const struct row_gathering *gather, uint64_t block)
{
    uint64_t first = 0, end = gather->block_count;

    while (end - first > 1) {
        const uint64_t middle = first + (end - first) / 2;

        if (gather->blocks[middle] <= block) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return first;
}

/* Records the batches that begin among the next `nnz` nonzeros of the row, which are in the block
 * at `position` of the list. Called in the order of tiles. */
static void
find_batches(struct row_gathering *gather, uint64_t position, bool first_tile, uint64_t nnz)
{
    const uint64_t before = gather->cursors[0];

    if (first_tile) {
        gather->block_nnz = before;
    }
    while (gather->batch_count < gather->batch_most &&
           gather->batch_count * gather->capacity < before + nnz) {
        gather->batch_block[gather->batch_count] = position;
        gather->batch_nnz[gather->batch_count] = gather->block_nnz;
        gather->batch_count++;
    }
}

/* Assigns the nonzeros of the worker's buffer to places, in the order of tiles. */
static void assign_places(const struct slc_row_passes *passes, const struct row_worker *worker)
{
    const struct row_gathering *gather = &passes->gather;
    const uint32_t *rows = worker->arrays.coords[passes->mode];
    uint32_t *places = worker->order[0];

    for (uint32_t i = 0; i < worker->nnz; i++) {
        const uint64_t to = gather->cursors[rows[i] - gather->first_row]++ - gather->skip;

        places[i] = to < gather->capacity ? (uint32_t)to : NO_PLACE;
    }
}

/* Copies the nonzeros of the worker's buffer to their places. */
static void copy_nonzeros(const struct slc_row_passes *passes, const struct row_worker *worker)
{
    const struct row_arrays *from = &worker->arrays, *to = &passes->gather.arrays;
    const uint32_t *places = worker->order[0];

    for (uint32_t i = 0; i < worker->nnz; i++) {
        if (places[i] != NO_PLACE) {
            to->values[places[i]] = from->values[i];
        }
    }
    for (unsigned m = 0; m < passes->order; m++) {
        for (uint32_t i = 0; m != passes->mode && i < worker->nnz; i++) {
            if (places[i] != NO_PLACE) {
                to->coords[m][places[i]] = from->coords[m][i];
            }
        }
    }
}

static enum slc_status
gather_tile(void *context, unsigned number, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_row_passes *passes = context;
    struct row_gathering *gather = &passes->gather;
    struct row_worker *worker = &passes->worker[number];
    const uint64_t position = find_block(gather, tile->block);
    struct slc_block_entry entry;

    slc_reader_entry(passes->table->reader, tile->block, &entry);
    const uint64_t in_block = tile->ordinal - entry.first_tile;
    slc_row_worker_clear(worker);
    SLC_TRY(slc_row_append(passes, worker, tile, gather->first_row, gather->end_row, err));
    if (!slc_turns_wait(&passes->turns,
                        gather->tiles_before[position] + in_block - gather->first_tile)) {
        return slc_fail(err, SLC_ERR_INTERRUPTED, "the pass ended before the tile's turn");
    }
    if (gather->end_row == gather->first_row + 1) {
        find_batches(gather, position, in_block == 0, worker->nnz);
    }
    assign_places(passes, worker);
    /* Copied before the turn ends, because two tiles can have the same places: if rows have more
     * nonzeros than were counted. This error is detected after the pass. */
    copy_nonzeros(passes, worker);
    slc_turns_done(&passes->turns);
    return SLC_OK;
}

static void wake_turns(void *context)
{
    slc_turns_stop(&((struct slc_row_passes *)context)->turns);
}

/* Places the arrays in the area of the mode. */
static void place_arrays(struct slc_row_passes *passes)
{
    struct row_gathering *gather = &passes->gather;
    const uint64_t capacity = gather->capacity;
    char *at = (char *)gather->buffer.data + passes->table->area * area_bytes(passes);

    gather->arrays.values = (double *)(void *)at;
    at += capacity * sizeof(double) + SLC_ROW_SLACK_BYTES;
    for (unsigned m = 0; m < passes->order; m++) {
        gather->arrays.coords[m] = m == passes->mode ? NULL : (uint32_t *)(void *)at;
        at += m == passes->mode ? 0 : capacity * sizeof(uint32_t) + SLC_ROW_SLACK_BYTES;
    }
}

/* Lists the blocks that may have nonzeros of the interval. */
static void list_blocks(struct slc_row_passes *passes)
{
    struct row_gathering *gather = &passes->gather;
    const struct slc_reader *reader = passes->table->reader;
    const uint64_t count = slc_reader_info(reader)->block_count;
    struct slc_block_entry entry;
    uint64_t tiles = 0;

    gather->block_count = 0;
    for (uint64_t b = 0; b < count; b++) {
        slc_reader_entry(reader, b, &entry);
        if (slc_row_block_meets(&entry, passes->mode, gather->first_row, gather->end_row)) {
            gather->tiles_before[gather->block_count] = tiles;
            gather->blocks[gather->block_count++] = b;
            tiles += entry.tile_count;
        }
    }
}

/* Makes a pass over the blocks first .. end - 1 of the list. */
static enum slc_status
gather_blocks(struct slc_row_passes *passes, uint64_t first, uint64_t end, struct slc_error *err)
{
    struct row_gathering *gather = &passes->gather;
    struct slc_pass pass = {
        .kind = SLC_PASS_TILES,
        .tiles = {.consumer = {.tile = gather_tile, .wake = wake_turns, .context = passes},
                  .blocks = gather->blocks,
                  .block_count = gather->block_count,
                  .part = {first, end}}};

    /* This pass overwrites the gathered nonzeros, so products that workers hold become invalid. */
    for (unsigned w = 0; w < passes->workers; w++) {
        slc_row_worker_clear(&passes->worker[w]);
    }
    if (first == end) {
        return SLC_OK;
    }
    gather->first_tile = gather->tiles_before[first];
    return slc_row_stream(passes, &pass, err);
}

static enum slc_status fail_changed(const struct slc_row_passes *passes, struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_USAGE,
                    "the rows %" PRIu64 " to %" PRIu64
                    " of mode %u do not have as many nonzeros as were counted",
                    passes->gather.first_row + 1, passes->gather.end_row, passes->mode + 1);
}

static enum slc_status gather_interval(struct slc_row_passes *passes, struct slc_error *err)
{
    struct row_gathering *gather = &passes->gather;
    const uint64_t *counts = passes->table->counts + gather->first_row;
    const uint64_t rows = gather->end_row - gather->first_row;
    uint64_t nnz = 0;

    for (uint64_t i = 0; i < rows; i++) {
        gather->cursors[i] = nnz;
        nnz += counts[i];
    }
    gather->skip = 0;
    gather->batch = 0;
    gather->batch_count = 0;
    if (nnz > 0) {
        list_blocks(passes);
        SLC_TRY(gather_blocks(passes, 0, gather->block_count, err));
    }
    nnz = 0;
    for (uint64_t i = 0; i < rows; i++) {
        nnz += counts[i];
        if (gather->cursors[i] != nnz) {
            return fail_changed(passes, err);
        }
    }
    return SLC_OK;
}

/* Gathers number `batch` of the batches of a row that does not fit. */
static enum slc_status
gather_batch(struct slc_row_passes *passes, uint64_t batch, struct slc_error *err)
{
    struct row_gathering *gather = &passes->gather;
    const uint64_t nnz = passes->table->counts[gather->first_row];
    const bool last = batch + 1 == gather->batch_count;

    gather->skip = batch * gather->capacity;
    gather->cursors[0] = gather->batch_nnz[batch];
    gather->batch = batch;
    SLC_TRY(gather_blocks(passes, gather->batch_block[batch],
                          last ? gather->block_count : gather->batch_block[batch + 1] + 1, err));
    return gather->cursors[0] >= slc_min_u64(gather->skip + gather->capacity, nnz)
               ? SLC_OK
               : fail_changed(passes, err);
}

/* Segments of a row that all workers compute. */
struct segments {
    struct slc_row_passes *passes;
    uint64_t begin, end; /* nonzeros in the gathered arrays */
    atomic_uint_fast64_t next;
};

static void compute_segments(void *context, unsigned worker, unsigned workers)
{
    struct segments *segments = context;
    struct slc_row_passes *passes = segments->passes;
    const uint64_t segment = passes->segment_nnz;
    const uint64_t count = slc_div_up_u64(segments->end - segments->begin, segment);

    (void)workers;
    for (;;) {
        const uint64_t number = atomic_fetch_add(&segments->next, 1);
        const uint64_t begin = segments->begin + number * segment;
        const uint64_t end = slc_min_u64(begin + segment, segments->end);

        if (number >= count) {
            return;
        }
        passes->worker[worker].ahead_end = end;
        (void)slc_row_shared_segment(passes, worker, &passes->gather.arrays, begin, end, number);
    }
}

/* Traverses a row that all workers compute. `how` points to the number of its first nonzero. */
static enum slc_status traverse_shared(struct slc_row_passes *passes,
                                       unsigned worker,
                                       struct row_job *job,
                                       void *how,
                                       struct slc_error *err)
{
    struct row_gathering *gather = &passes->gather;
    uint64_t left = job->row.nnz;

    (void)worker;
    passes->shared = job;
    for (uint64_t batch = 0; left > 0; batch++) {
        const uint64_t begin = *(const uint64_t *)how;
        const uint64_t nnz = slc_min_u64(left, gather->capacity);
        struct segments segments = {.passes = passes, .begin = begin, .end = begin + nnz};

        if (gather->batch != batch) {
            SLC_TRY(gather_batch(passes, batch, err));
        }
        SLC_TRY(slc_row_check_stop(passes, err));
        slc_row_turns_reset(passes);
        SLC_TRY(slc_team_run(passes->workers, compute_segments, &segments, err));
        left -= nnz;
    }
    return SLC_OK;
}

/* Updates a row with all workers. Its first nonzero has the number `begin`. */
static enum slc_status
solve_shared(struct slc_row_passes *passes, uint64_t row, uint64_t begin, struct slc_error *err)
{
    struct row_gathering *gather = &passes->gather;
    const uint64_t nnz = passes->table->counts[row];
    struct row_job job = {.row = {.index = row, .nnz = nnz, .streamed = nnz > gather->capacity}};

    passes->pass->streamed_rows += job.row.streamed;
    if (job.row.streamed && gather->batch_count != slc_div_up_u64(nnz, gather->capacity)) {
        return fail_changed(passes, err);
    }
    SLC_TRY(slc_row_solve(passes, 0, &job, traverse_shared, &begin, passes->pass->measures, err));
    (void)atomic_fetch_add(&passes->done, 1);
    return SLC_OK;
}

/* Consecutive rows that a worker computes. */
struct share {
    uint64_t first, end; /* rows */
    uint64_t begin;      /* number of the first nonzero */
    uint64_t ticket;
};

/* Work that is divided between the workers. */
struct shares {
    struct slc_row_passes *passes;
    pthread_mutex_t mutex;
    struct share next; /* the rows that are left */
    bool failed;
    struct slc_error fault; /* the first error */
};

static bool claim_share(struct shares *shares, struct share *share)
{
    const uint64_t *counts = shares->passes->table->counts;
    struct share *next = &shares->next;
    uint64_t nnz = 0;

    pthread_mutex_lock(&shares->mutex);
    *share = *next;
    share->end = share->first;
    while (!shares->failed && share->end < next->end && share->end - share->first < SHARE_ROWS &&
           nnz < SHARE_NNZ) {
        nnz += counts[share->end++];
    }
    next->first = share->end;
    next->begin += nnz;
    next->ticket++;
    pthread_mutex_unlock(&shares->mutex);
    return share->end > share->first;
}

/* Keeps the first error, and wakes all workers. */
static void fail_shares(struct shares *shares, const struct slc_error *fault)
{
    pthread_mutex_lock(&shares->mutex);
    if (!shares->failed) {
        shares->failed = true;
        shares->fault = *fault;
    }
    pthread_mutex_unlock(&shares->mutex);
    slc_turns_stop(&shares->passes->turns);
}

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

static enum slc_status solve_share(struct slc_row_passes *passes,
                                   unsigned worker,
                                   const struct share *share,
                                   double (*measures)[SLC_ROW_MEASURES],
                                   struct slc_error *err)
{
    const uint64_t *counts = passes->table->counts;
    uint64_t begin = share->begin;

    passes->worker[worker].ahead_end = begin;
    for (uint64_t row = share->first; row < share->end; row++) {
        passes->worker[worker].ahead_end += counts[row];
    }
    for (uint64_t row = share->first; row < share->end; row++) {
        struct row_job job = {.row = {.index = row, .nnz = counts[row]},
                              .arrays = &passes->gather.arrays,
                              .begin = begin,
                              .single = counts[row] <= passes->segment_nnz};

        SLC_TRY(slc_row_solve(passes, worker, &job, traverse_segments, NULL,
                              measures[row - share->first], err));
        begin += counts[row];
    }
    return SLC_OK;
}

static void run_shares(void *context, unsigned worker, unsigned workers)
{
    struct shares *shares = context;
    struct slc_row_passes *passes = shares->passes;
    struct share share;

    (void)workers;
    while (claim_share(shares, &share)) {
        double measures[SHARE_ROWS][SLC_ROW_MEASURES] = {{0}};
        struct slc_error fault = SLC_ERROR_INIT;

        if (solve_share(passes, worker, &share, measures, &fault) != SLC_OK) {
            fail_shares(shares, &fault);
            return;
        }
        if (!slc_turns_wait(&passes->turns, share.ticket)) {
            return;
        }
        for (uint64_t i = 0; i < share.end - share.first; i++) {
            for (unsigned k = 0; k < SLC_ROW_MEASURES; k++) {
                passes->pass->measures[k] += measures[i][k];
            }
        }
        slc_turns_done(&passes->turns);
        (void)atomic_fetch_add(&passes->done, share.end - share.first);
        if (worker == 0) {
            slc_row_progress(passes, 0, 0, 0);
        }
    }
}

/* Updates the rows first .. end - 1, each with one worker. Their first nonzero has the number
 * `begin`. */
static enum slc_status solve_rows(struct slc_row_passes *passes,
                                  uint64_t first,
                                  uint64_t end,
                                  uint64_t begin,
                                  struct slc_error *err)
{
    struct shares shares = {.passes = passes,
                            .next = {.first = first, .end = end, .begin = begin},
                            .fault = SLC_ERROR_INIT};
    const int code = pthread_mutex_init(&shares.mutex, NULL);

    if (code != 0) {
        return slc_fail(err, SLC_ERR_SYSTEM, "cannot create a mutex (error %d)", code);
    }
    slc_row_turns_reset(passes);
    enum slc_status status = slc_team_run(passes->workers, run_shares, &shares, err);
    pthread_mutex_destroy(&shares.mutex);
    if (status == SLC_OK && shares.failed) {
        status = shares.fault.status;
        slc_error_pass(err, &shares.fault);
    }
    return status;
}

/* Returns the most nonzeros of a row that one worker updates. All workers compute a longer row
 * together, a segment each, because otherwise some of them would have nothing to do. */
static uint64_t own_row_nnz(const struct slc_row_passes *passes)
{
    const struct row_gathering *gather = &passes->gather;
    uint64_t nnz = 0;

    for (uint64_t row = gather->first_row; row < gather->end_row; row++) {
        nnz += passes->table->counts[row];
    }
    return slc_max_u64(passes->segment_nnz,
                       slc_min_u64(nnz / (SHARES_LEAST * passes->workers), gather->capacity));
}

/* Updates the rows first .. end - 1 of the interval. */
static enum slc_status
solve_interval(struct slc_row_passes *passes, uint64_t first, uint64_t end, struct slc_error *err)
{
    const uint64_t *counts = passes->table->counts;
    const uint64_t own_nnz = own_row_nnz(passes);
    uint64_t begin = 0;

    for (uint64_t row = passes->gather.first_row; row < first; row++) {
        begin += counts[row];
    }
    for (uint64_t row = first, next; row < end; row = next) {
        uint64_t nnz = counts[row];

        next = row + 1;
        if (nnz > own_nnz) {
            SLC_TRY(solve_shared(passes, row, begin, err));
        } else {
            while (next < end && counts[next] <= own_nnz) {
                nnz += counts[next++];
            }
            SLC_TRY(solve_rows(passes, row, next, begin, err));
        }
        begin += nnz;
    }
    return SLC_OK;
}

/* Gathers all nonzeros of a mode that keeps them, unless they were kept. */
static enum slc_status gather_kept(struct slc_row_passes *passes, struct slc_error *err)
{
    struct row_table *table = passes->table;

    passes->gather.first_row = 0;
    passes->gather.end_row = table->rows;
    passes->gather.batch = 0;
    if (!table->kept) {
        SLC_TRY(gather_interval(passes, err));
        table->kept = true;
    }
    return SLC_OK;
}

enum slc_status slc_row_gather_part(struct slc_row_passes *passes,
                                    uint64_t first,
                                    uint64_t end,
                                    struct slc_error *err)
{
    struct row_gathering *gather = &passes->gather;

    place_arrays(passes);
    if (passes->table->keeps) {
        SLC_TRY(gather_kept(passes, err));
        return solve_interval(passes, first, end, err);
    }
    for (uint64_t row = first; row < end; row = gather->end_row) {
        gather->first_row = row;
        gather->end_row = slc_row_interval_end(passes, passes->table, row, end);
        SLC_TRY(gather_interval(passes, err));
        SLC_TRY(solve_interval(passes, gather->first_row, gather->end_row, err));
    }
    return SLC_OK;
}
