/* Divides the rows of a mode's copy into ranges, divides ranges into items, and groups the nonzeros
 * by range.
 *
 * Nonzeros are counted in at most SLC_REPLICA_BUCKETS buckets of rows, and consecutive buckets are
 * joined to ranges of about nnz / (16 T) nonzeros for T workers. Then the records move to their
 * ranges in key order. The result depends only on the tensor and the number of workers.
 *
 * Cost: two sweeps over the records, about 10 ns per nonzero. */
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "cpu/replica/replica_build.h"

#include <assert.h>

/* State that the steps of a split share. */
struct split {
    struct slc_replica *replica;
    struct slc_replica_mode *copy;
    unsigned mode;
    unsigned shift; /* row >> shift is the bucket of a row */
    uint32_t bucket_count;
    uint64_t target; /* target number of nonzeros per range */
    /* Number of nonzeros per worker and bucket; later, per worker and range, the index of the next
     * record (place_records). */
    uint64_t *counts;
    uint32_t *range_of; /* range of each bucket */
};

static uint64_t rows_of(const struct split *split)
{
    return split->replica->shape.dims[split->mode];
}

static uint64_t *worker_counts(const struct split *split, unsigned worker)
{
    return split->counts + (uint64_t)worker * split->bucket_count;
}

static uint32_t bucket_of(const struct split *split, const unsigned char *record)
{
    return slc_replica_coordinate(record, split->mode) >> split->shift;
}

/* Sets *begin and *end to the records that worker `w` counts and later moves. */
static void worker_records(const struct split *split, unsigned w, uint64_t *begin, uint64_t *end)
{
    const uint64_t nnz = split->replica->shape.nnz;
    const uint64_t each = slc_div_up_u64(nnz, split->replica->workers);

    *begin = slc_min_u64(w * each, nnz);
    *end = slc_min_u64(*begin + each, nnz);
}

static void count_records(void *context, unsigned worker, unsigned workers)
{
    const struct split *split = context;
    const unsigned char *records = split->replica->records.data;
    uint64_t *counts = worker_counts(split, worker);
    uint64_t begin, end;

    (void)workers;
    worker_records(split, worker, &begin, &end);
    memset(counts, 0, split->bucket_count * sizeof *counts);
    for (uint64_t i = begin; i < end; i++) {
        counts[bucket_of(split, records + i * split->replica->record_bytes)]++;
    }
}

static uint64_t bucket_nnz(const struct split *split, uint32_t bucket)
{
    uint64_t nnz = 0;

    for (unsigned w = 0; w < split->replica->workers; w++) {
        nnz += worker_counts(split, w)[bucket];
    }
    return nnz;
}

/* Joins buckets to ranges, up to the target number of nonzeros and to SLC_REPLICA_ROWS rows. */
static void cut_ranges(struct split *split)
{
    struct slc_replica_mode *copy = split->copy;
    const uint64_t rows = rows_of(split);
    const uint64_t bucket_rows = UINT64_C(1) << split->shift;
    const bool whole =
        slc_replica_is_short(&split->replica->shape, split->mode, split->replica->workers);
    struct slc_replica_range *range = copy->ranges;
    uint64_t first_nnz = 0;

    memset(range, 0, sizeof *range);
    for (uint32_t b = 0; b < split->bucket_count; b++) {
        const uint64_t nnz = bucket_nnz(split, b);
        const uint64_t row = b * bucket_rows;
        const uint64_t row_end = slc_min_u64(row + bucket_rows, rows);
        const bool full = range->nnz >= split->target || range->nnz + nnz > 2 * split->target ||
                          row_end - range->row_begin > SLC_REPLICA_ROWS;

        if (b > 0 && !whole && full) {
            range++;
            memset(range, 0, sizeof *range);
            range->row_begin = row;
            range->first_nnz = first_nnz;
        }
        range->row_end = row_end;
        range->nnz += nnz;
        first_nnz += nnz;
        split->range_of[b] = (uint32_t)(range - copy->ranges);
    }
    copy->range_count = (uint64_t)(range - copy->ranges) + 1;
}

/* Replaces counts with the index in replica->sorted of each worker's next record of each range. */
static void place_records(struct split *split)
{
    uint64_t at = 0;

    for (uint32_t b = 0; b < split->bucket_count;) {
        const uint32_t range = split->range_of[b];
        uint32_t end = b;

        while (end < split->bucket_count && split->range_of[end] == range) {
            end++;
        }
        /* The buckets of a range are consecutive, so each worker needs only one index per range,
         * which is stored in the count of bucket number `range`. */
        for (unsigned w = 0; w < split->replica->workers; w++) {
            uint64_t *counts = worker_counts(split, w);
            uint64_t nnz = 0;

            for (uint32_t i = b; i < end; i++) {
                nnz += counts[i];
            }
            counts[range] = at; /* range <= b, so the count in this element is no longer needed */
            at += nnz;
        }
        b = end;
    }
}

static void move_records(void *context, unsigned worker, unsigned workers)
{
    const struct split *split = context;
    const uint32_t bytes = split->replica->record_bytes;
    const unsigned char *records = split->replica->records.data;
    unsigned char *sorted = split->replica->sorted.data;
    uint64_t *places = worker_counts(split, worker);
    uint64_t begin, end;

    (void)workers;
    worker_records(split, worker, &begin, &end);
    for (uint64_t i = begin; i < end; i++) {
        const unsigned char *record = records + i * bytes;
        const uint32_t range = split->range_of[bucket_of(split, record)];

        memcpy(sorted + places[range]++ * bytes, record, bytes);
    }
}

static uint32_t items_of(const struct split *split, const struct slc_replica_range *range)
{
    const unsigned workers = split->replica->workers;

    if (workers == 1 || range->nnz <= 2 * split->target) {
        return 1;
    }
    return (uint32_t)slc_min_u64(slc_div_up_u64(range->nnz, split->target),
                                 (uint64_t)workers * SLC_REPLICA_SHARES_PER_WORKER);
}

static uint64_t pieces_of(uint64_t nnz)
{
    return slc_div_up_u64(nnz, SLC_REPLICA_PIECE_NNZ);
}

/* Returns the number of nonzeros of an item of a range. */
static uint64_t share_nnz(const struct slc_replica_range *range, uint32_t share)
{
    return range->nnz / range->items + (share < range->nnz % range->items);
}

static void count_items(struct split *split)
{
    struct slc_replica_mode *copy = split->copy;

    for (uint64_t r = 0; r < copy->range_count; r++) {
        struct slc_replica_range *range = &copy->ranges[r];
        const uint64_t rows = range->row_end - range->row_begin;

        range->items = items_of(split, range);
        range->first_piece = copy->piece_count;
        for (uint32_t s = 0; s < range->items; s++) {
            copy->piece_count += pieces_of(share_nnz(range, s));
        }
        range->piece_count = copy->piece_count - range->first_piece;
        copy->item_count += range->items;
        copy->rows_max = slc_max_u64(copy->rows_max, rows);
        if (range->items > 1) {
            range->window_rows = copy->window_rows;
            copy->window_rows += rows * range->items;
        }
    }
}

static void fill_items(struct slc_replica_mode *copy)
{
    struct slc_replica_item *item = copy->items;
    struct slc_replica_piece *piece = copy->pieces;

    for (uint64_t r = 0; r < copy->range_count; r++) {
        const struct slc_replica_range *range = &copy->ranges[r];
        uint64_t at = range->first_nnz;

        for (uint32_t s = 0; s < range->items; s++) {
            const uint64_t nnz = share_nnz(range, s);
            const uint64_t end = at + nnz;

            *item++ = (struct slc_replica_item){(uint32_t)r, s, (uint64_t)(piece - copy->pieces),
                                                pieces_of(nnz)};
            while (at < end) {
                const uint64_t piece_nnz = slc_min_u64(end - at, SLC_REPLICA_PIECE_NNZ);

                *piece++ = (struct slc_replica_piece){
                    .row_begin = range->row_begin, .first_nnz = at, .nnz = (uint32_t)piece_nnz};
                at += piece_nnz;
            }
        }
    }
    assert((uint64_t)(item - copy->items) == copy->item_count);
    assert((uint64_t)(piece - copy->pieces) == copy->piece_count);
}

static enum slc_status make_items(struct split *split, struct slc_error *err)
{
    struct slc_replica_mode *copy = split->copy;

    count_items(split);
    copy->items = slc_calloc(copy->item_count, sizeof *copy->items);
    copy->pieces = slc_calloc(copy->piece_count + 1, sizeof *copy->pieces);
    SLC_TRY(slc_check_memory(copy->items != NULL && copy->pieces != NULL, err,
                             "for %llu pieces of mode %u's copy",
                             (unsigned long long)copy->piece_count, split->mode + 1));
    fill_items(copy);
    return SLC_OK;
}

static enum slc_status split_steps(struct split *split, struct slc_error *err)
{
    const unsigned workers = split->replica->workers;

    SLC_TRY(slc_check_memory(split->copy->ranges != NULL && split->counts != NULL &&
                                 split->range_of != NULL,
                             err, "for counting the rows of mode %u", split->mode + 1));
    SLC_TRY(slc_team_run(workers, count_records, split, err));
    cut_ranges(split);
    place_records(split);
    SLC_TRY(slc_team_run(workers, move_records, split, err));
    return make_items(split, err);
}

enum slc_status slc_replica_split(struct slc_replica *replica, unsigned mode, struct slc_error *err)
{
    const uint64_t ranges = (uint64_t)replica->workers * SLC_REPLICA_RANGES_PER_WORKER;
    struct split split = {.replica = replica, .copy = &replica->modes[mode], .mode = mode};
    const uint64_t last_row = replica->shape.dims[mode] - 1;

    while (last_row >> split.shift >= SLC_REPLICA_BUCKETS) {
        split.shift++;
    }
    split.bucket_count = (uint32_t)(last_row >> split.shift) + 1;
    split.target = slc_max_u64(replica->shape.nnz / ranges, 1);
    split.copy->ranges = slc_calloc(split.bucket_count, sizeof *split.copy->ranges);
    split.counts =
        slc_calloc((uint64_t)replica->workers * split.bucket_count, sizeof *split.counts);
    split.range_of = slc_calloc(split.bucket_count, sizeof *split.range_of);
    enum slc_status status = split_steps(&split, err);
    slc_free(split.counts);
    slc_free(split.range_of);
    return status;
}
