/* Gathers nonzeros of ranges. A worker decodes a tile, drops nonzeros outside the ranges, forms
 * keys and finds the range of each nonzero. This needs 24 to 36 bytes of scratch per nonzero of one
 * tile. When the turn of the tile comes, the worker reserves places in the ranges; then it copies
 * the nonzeros to these places. The nonzeros of a tile are usually in few ranges of rows, because
 * the order of the input layout traverses all modes together.
 *
 * Cost per nonzero and scan: decoding, forming a key, one table look-up, and copying 16 or 24
 * bytes. */
#include "convert/layout/sorted_gather.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/sort/key_tables.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    CHUNK_NNZ = 1024,
    /* Entries of the table that maps rows to ranges: 16 KiB, which fit the level-1 cache. */
    TABLE_SIZE = 4096
};

/* Scratch of a worker for the tile that it processes. */
struct scratch {
    uint64_t *lo, *hi; /* key words; hi is NULL unless keys are wide */
    double *values;
    uint32_t *range; /* range of each nonzero, relative to `first` */
    uint32_t count;
    uint64_t first, last; /* ranges that may contain nonzeros of the tile */
    uint32_t *counts;     /* per range: number of the tile's nonzeros */
    uint64_t *places;     /* per range: first place reserved for the tile's nonzeros */
    uint64_t *columns;    /* SLC_KEY_BATCH coordinates of each mode */
};

struct slc_gather {
    struct slc_tile_scan_options scan; /* options of the scan, with the rows of the current call */
    uint64_t ranges_max;
    const struct slc_layout_info *info;
    bool wide;
    struct slc_key_tables tables;
    struct slc_buffer memory;
    struct scratch *scratch;
    uint64_t *next; /* per range: place for the next tile */
    uint64_t *end;  /* per range: end of its places */

    /* Arguments of the current call. */
    const struct slc_gather_range *ranges;
    uint64_t count;
    const struct slc_key_columns *out; /* NULL: nothing is copied */
    unsigned shift;                    /* the table is indexed by (row - first row) >> shift */
    /* A cell's entry is the range of its first row, or an earlier range. */
    uint32_t table[TABLE_SIZE + 1];
    bool by_key;     /* some ranges include only some keys of their rows */
    bool bounded;    /* report an error if a range has more nonzeros than its nnz */
    bool overflow;   /* a range had more nonzeros than its nnz */
    uint64_t chance; /* probability of sampling, if a sample is drawn */
    struct slc_gather_sample *samples;
    uint64_t capacity, drawn;
    struct slc_tile_progress progress; /* nonzeros of all calls */
};

static uint64_t scratch_bytes(const struct slc_layout_info *info, uint64_t ranges_max)
{
    uint64_t words = info->keys.bits > 64 ? 3 : 2;

    return SLC_TILE_NNZ * (words * sizeof(uint64_t) + sizeof(uint32_t)) +
           ranges_max * sizeof(uint64_t) + (ranges_max + ranges_max % 2) * sizeof(uint32_t) +
           (uint64_t)info->order * SLC_KEY_BATCH * sizeof(uint64_t);
}

uint64_t
slc_gather_memory_bytes(const struct slc_layout_info *info, unsigned workers, uint64_t ranges_max)
{
    return sizeof(struct slc_gather) + SLC_KEY_TABLES_BYTES_MAX +
           slc_buffer_footprint(workers * scratch_bytes(info, ranges_max) +
                                    2 * ranges_max * sizeof(uint64_t),
                                SLC_PAGES_SMALL);
}

static void *carve_array(uint8_t **memory, uint64_t bytes)
{
    void *part = *memory;

    *memory += bytes;
    return part;
}

static void lay_out_memory(struct slc_gather *gather)
{
    uint8_t *memory = gather->memory.data;
    uint64_t ranges = gather->ranges_max;

    gather->next = carve_array(&memory, ranges * sizeof(uint64_t));
    gather->end = carve_array(&memory, ranges * sizeof(uint64_t));
    for (unsigned w = 0; w < gather->scan.workers; w++) {
        struct scratch *scratch = &gather->scratch[w];

        scratch->lo = carve_array(&memory, SLC_TILE_NNZ * sizeof(uint64_t));
        scratch->hi = gather->wide ? carve_array(&memory, SLC_TILE_NNZ * sizeof(uint64_t)) : NULL;
        scratch->values = carve_array(&memory, SLC_TILE_NNZ * sizeof(double));
        scratch->places = carve_array(&memory, ranges * sizeof(uint64_t));
        scratch->columns =
            carve_array(&memory, gather->info->order * SLC_KEY_BATCH * sizeof(uint64_t));
        scratch->range = carve_array(&memory, SLC_TILE_NNZ * sizeof(uint32_t));
        scratch->counts = carve_array(&memory, (ranges + ranges % 2) * sizeof(uint32_t));
    }
}

enum slc_status slc_gather_create(const struct slc_tile_scan_options *scan,
                                  const struct slc_key_layout *keys,
                                  uint64_t ranges_max,
                                  struct slc_gather **gather,
                                  struct slc_error *err)
{
    struct slc_gather *made = slc_calloc(1, sizeof *made);

    SLC_TRY(slc_check_memory(made != NULL, err, "to gather nonzeros"));
    made->scan = *scan;
    made->ranges_max = ranges_max;
    made->info = slc_reader_info(scan->reader);
    made->wide = made->info->keys.bits > 64;
    made->scratch = slc_calloc(scan->workers, sizeof *made->scratch);
    enum slc_status status = made->scratch == NULL
                                 ? slc_fail(err, SLC_ERR_MEMORY, "no memory to gather nonzeros")
                                 : slc_key_tables_init(&made->tables, keys, err);
    SLC_THEN(status, slc_buffer_create(&made->memory,
                                       scan->workers * scratch_bytes(made->info, ranges_max) +
                                           2 * ranges_max * sizeof(uint64_t),
                                       SLC_PAGES_SMALL, err));
    if (status != SLC_OK) {
        slc_gather_destroy(made);
        return status;
    }
    lay_out_memory(made);
    *gather = made;
    return SLC_OK;
}

void slc_gather_destroy(struct slc_gather *gather)
{
    if (gather == NULL) {
        return;
    }
    slc_key_tables_destroy(&gather->tables);
    slc_buffer_destroy(&gather->memory);
    slc_free(gather->scratch);
    slc_free(gather);
}

/* Finds the last of ranges low .. high that begins at or before `row`; `low` if no range does. */
static uint64_t
find_between(const struct slc_gather *gather, uint64_t row, uint64_t low, uint64_t high)
{
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;

        if (gather->ranges[middle].first_row <= row) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Finds the range of a row that is between the first and the last row of all ranges. If several
 * ranges have the same rows, finds the last of them. */
static inline uint64_t find_rows(const struct slc_gather *gather, uint64_t row)
{
    uint64_t cell = (row - gather->ranges[0].first_row) >> gather->shift;

    return find_between(gather, row, gather->table[cell], gather->table[cell + 1]);
}

/* Returns the first range in this call that has the same rows as range `last`. */
static inline uint64_t first_sibling(const struct slc_gather *gather, uint64_t last)
{
    return last - slc_min_u64(last, gather->ranges[last].sibling);
}

/* Finds the range of a nonzero. Returns false if the nonzero is outside all ranges, which may have
 * rows between them that are in none. */
static bool find_range(const struct slc_gather *gather, uint64_t row, slc_u128 key, uint64_t *range)
{
    uint64_t high = find_rows(gather, row);
    uint64_t low = first_sibling(gather, high);

    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;

        if (gather->ranges[middle].first_key <= key) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    *range = low;
    return row <= gather->ranges[low].last_row && key >= gather->ranges[low].first_key &&
           key <= gather->ranges[low].last_key;
}

/* Sets table[c] to the last range that begins in a cell before c, or to the first range. */
static void fill_table(struct slc_gather *gather)
{
    uint64_t first = gather->ranges[0].first_row;
    uint64_t span = gather->ranges[gather->count - 1].last_row - first;
    uint64_t at = 0;

    for (gather->shift = 0; span >> gather->shift >= TABLE_SIZE;) {
        gather->shift++;
    }
    for (uint64_t cell = 0; cell <= TABLE_SIZE; cell++) {
        while (at + 1 < gather->count &&
               (gather->ranges[at + 1].first_row - first) >> gather->shift < cell) {
            at++;
        }
        gather->table[cell] = (uint32_t)at;
    }
}

/* Finds the range of each of `count` nonzeros, starting at `at`, by its row, and counts the
 * nonzeros of each range. Every range must include all keys of its rows. */
static void count_by_row(const struct slc_gather *gather,
                         struct scratch *scratch,
                         const uint64_t *rows,
                         uint32_t at,
                         uint32_t count)
{
    if (scratch->first == scratch->last) {
        memset(scratch->range + at, 0, count * sizeof *scratch->range);
        scratch->counts[0] += count;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t range = (uint32_t)(find_rows(gather, rows[i]) - scratch->first);

        scratch->range[at + i] = range;
        scratch->counts[range]++;
    }
}

/* Finds the range of each nonzero by row and key, counts the nonzeros of each range, and drops
 * nonzeros that are outside all ranges or not sampled. Returns the number of remaining nonzeros. */
static uint32_t count_by_key(const struct slc_gather *gather,
                             struct scratch *scratch,
                             const uint64_t *rows,
                             uint32_t at,
                             uint32_t count)
{
    uint32_t left = at;

    for (uint32_t i = at; i < at + count; i++) {
        const uint64_t lo = scratch->lo[i], hi = gather->wide ? scratch->hi[i] : 0;
        uint64_t range;

        if (!find_range(gather, rows[i - at], slc_key_join(lo, hi), &range) ||
            (gather->samples != NULL && slc_content_term(lo, hi, 0) > gather->chance)) {
            continue;
        }
        range -= scratch->first;
        scratch->lo[left] = lo;
        if (gather->wide) {
            scratch->hi[left] = hi;
        }
        scratch->values[left] = scratch->values[i];
        scratch->range[left++] = (uint32_t)range;
        scratch->counts[range]++;
    }
    return left - at;
}

/* Keeps those nonzeros among begin .. begin + count - 1 of a chunk that are in the ranges. */
static void keep_rows(const struct slc_gather *gather,
                      struct scratch *scratch,
                      const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      uint32_t begin,
                      uint32_t count)
{
    const unsigned mode = gather->scan.mode;
    const uint64_t first_row = gather->ranges[0].first_row;
    const uint64_t span = gather->ranges[gather->count - 1].last_row - first_row;
    const double *values = chunk->values;
    const uint64_t *columns[SLC_MAX_ORDER];
    uint32_t kept[SLC_KEY_BATCH], kept_count = 0;
    uint32_t at = scratch->count;

    for (uint32_t i = begin; i < begin + count; i++) {
        /* For a row before the first row, the difference wraps around and exceeds the span. */
        kept[kept_count] = i;
        kept_count += tile->corner[mode] + chunk->offset[mode][i] - first_row <= span;
    }
    for (unsigned n = 0; n < tile->order; n++) {
        uint64_t *column = scratch->columns + (size_t)n * SLC_KEY_BATCH;

        for (uint32_t i = 0; i < kept_count; i++) {
            /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): these are set */
            column[i] = tile->corner[n] + chunk->offset[n][kept[i]];
        }
        columns[n] = column;
    }
    slc_key_tables_form(&gather->tables, columns, 0, kept_count, 0, scratch->lo + at,
                        gather->wide ? scratch->hi + at : NULL);
    for (uint32_t i = 0; i < kept_count; i++) {
        /* As above: NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript) */
        scratch->values[at + i] = values[kept[i]];
    }
    if (gather->by_key) {
        kept_count = count_by_key(gather, scratch, columns[mode], at, kept_count);
    } else {
        count_by_row(gather, scratch, columns[mode], at, kept_count);
    }
    scratch->count += kept_count;
}

/* Finds the ranges that may contain nonzeros of the tile. Returns false if there are none. */
static bool meets_ranges(const struct slc_gather *gather,
                         const struct slc_tile_view *tile,
                         struct scratch *scratch)
{
    const struct slc_gather_range *ranges = gather->ranges;
    const unsigned mode = gather->scan.mode;
    uint64_t first = slc_max_u64(tile->corner[mode], ranges[0].first_row);
    uint64_t last =
        slc_min_u64(tile->corner[mode] + tile->extent[mode], ranges[gather->count - 1].last_row);

    scratch->count = 0;
    scratch->first = 0;
    scratch->last = 0;
    if (first > last) {
        scratch->counts[0] = 0;
        return false;
    }
    scratch->first = first_sibling(gather, find_rows(gather, first));
    scratch->last = find_rows(gather, last);
    memset(scratch->counts, 0, (scratch->last - scratch->first + 1) * sizeof *scratch->counts);
    return true;
}

static enum slc_status
decode_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_gather *gather = context;
    struct scratch *scratch = &gather->scratch[worker];
    struct slc_chunk_view chunk = {.nnz = 1};

    if (!meets_ranges(gather, tile, scratch)) {
        return SLC_OK;
    }
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        for (uint32_t begin = 0; begin < chunk.nnz; begin += SLC_KEY_BATCH) {
            keep_rows(gather, scratch, tile, &chunk, begin,
                      (uint32_t)slc_min_u64(SLC_KEY_BATCH, chunk.nnz - begin));
        }
    }
    return SLC_OK;
}

/* Adds the remaining nonzeros of a tile to the sample. */
static void add_samples(struct slc_gather *gather, const struct scratch *scratch)
{
    for (uint32_t i = 0; i < scratch->count && gather->drawn < gather->capacity; i++) {
        gather->samples[gather->drawn++] = (struct slc_gather_sample){
            slc_key_join(scratch->lo[i], gather->wide ? scratch->hi[i] : 0),
            scratch->first + scratch->range[i]};
    }
}

static bool reserve_places(void *context, unsigned worker)
{
    struct slc_gather *gather = context;
    struct scratch *scratch = &gather->scratch[worker];

    for (uint64_t r = scratch->first; r <= scratch->last; r++) {
        scratch->places[r - scratch->first] = gather->next[r];
        gather->next[r] += scratch->counts[r - scratch->first];
        /* After an overflow, no nonzeros are copied; the error is reported after the scan. */
        gather->overflow |= gather->bounded && gather->next[r] > gather->end[r];
    }
    if (gather->samples != NULL) {
        add_samples(gather, scratch);
    }
    if (gather->overflow) {
        scratch->count = 0;
    }
    return !gather->overflow;
}

static void copy_run(const struct slc_gather *gather, const struct scratch *scratch)
{
    const struct slc_key_columns *out = gather->out;
    uint64_t to = scratch->places[0];

    memcpy(out->lo + to, scratch->lo, scratch->count * sizeof *out->lo);
    memcpy(out->values + to, scratch->values, scratch->count * sizeof *out->values);
    if (gather->wide) {
        memcpy(out->hi + to, scratch->hi, scratch->count * sizeof *out->hi);
    }
}

static void scatter_rows(const struct slc_gather *gather, const struct scratch *scratch)
{
    const struct slc_key_columns *out = gather->out;

    for (uint32_t i = 0; i < scratch->count; i++) {
        uint64_t to = scratch->places[scratch->range[i]]++;

        out->lo[to] = scratch->lo[i];
        out->values[to] = scratch->values[i];
        if (gather->wide) {
            out->hi[to] = scratch->hi[i];
        }
    }
}

static void deliver_rows(void *context, unsigned worker)
{
    struct slc_gather *gather = context;
    const struct scratch *scratch = &gather->scratch[worker];

    if (gather->out == NULL) {
        return;
    }
    if (scratch->first == scratch->last) {
        copy_run(gather, scratch);
    } else {
        scatter_rows(gather, scratch);
    }
    slc_tile_progress_add(&gather->progress, &gather->scan, "gathering", scratch->count,
                          gather->info->nnz);
}

/* Scans the file once and fills the places next[r] .. end[r] - 1 of each range r. */
static enum slc_status gather_ranges(struct slc_gather *gather,
                                     const struct slc_gather_range *ranges,
                                     uint64_t count,
                                     struct slc_error *err)
{
    assert(count >= 1 && count <= gather->ranges_max);
    gather->ranges = ranges;
    gather->count = count;
    gather->by_key = gather->samples != NULL;
    for (uint64_t r = 0; r < count; r++) {
        gather->by_key |= ranges[r].first_key > 0 || ranges[r].last_key < ~(slc_u128)0;
    }
    fill_table(gather);
    gather->overflow = false;
    gather->scan.first_row = ranges[0].first_row;
    gather->scan.last_row = ranges[count - 1].last_row;
    return slc_tile_scan(
        &gather->scan, &(struct slc_tile_steps){gather, decode_tile, reserve_places, deliver_rows},
        err);
}

enum slc_status slc_gather_ranges(struct slc_gather *gather,
                                  const struct slc_gather_range *ranges,
                                  uint64_t count,
                                  const struct slc_key_columns *out,
                                  struct slc_error *err)
{
    uint64_t place = 0;
    bool whole = true;

    for (uint64_t r = 0; r < count; r++) {
        gather->next[r] = place;
        place += ranges[r].nnz;
        gather->end[r] = place;
    }
    gather->out = out;
    gather->bounded = true;
    gather->samples = NULL;
    enum slc_status status = gather_ranges(gather, ranges, count, err);
    for (uint64_t r = 0; r < count; r++) {
        whole = whole && gather->next[r] == gather->end[r];
    }
    SLC_TRY(status);
    if (!whole) {
        return slc_fail_file(
            err, SLC_ERR_DAMAGED, slc_reader_path(gather->scan.reader),
            "the number of nonzeros in rows %" PRIu64 " to %" PRIu64
            " of mode %u differs from the number counted before: the file has changed",
            ranges[0].first_row + 1, ranges[count - 1].last_row + 1, gather->scan.mode + 1);
    }
    return SLC_OK;
}

enum slc_status slc_gather_count(struct slc_gather *gather,
                                 struct slc_gather_range *ranges,
                                 uint64_t count,
                                 struct slc_error *err)
{
    memset(gather->next, 0, count * sizeof *gather->next);
    gather->out = NULL;
    gather->bounded = false;
    gather->samples = NULL;
    SLC_TRY(gather_ranges(gather, ranges, count, err));
    for (uint64_t r = 0; r < count; r++) {
        ranges[r].nnz = gather->next[r];
    }
    return SLC_OK;
}

enum slc_status slc_gather_sample(struct slc_gather *gather,
                                  const struct slc_gather_range *ranges,
                                  uint64_t count,
                                  uint64_t chance,
                                  struct slc_gather_sample *samples,
                                  uint64_t capacity,
                                  uint64_t *drawn,
                                  struct slc_error *err)
{
    memset(gather->next, 0, count * sizeof *gather->next);
    gather->out = NULL;
    gather->bounded = false;
    gather->chance = chance;
    gather->samples = samples;
    gather->capacity = capacity;
    gather->drawn = 0;
    enum slc_status status = gather_ranges(gather, ranges, count, err);
    *drawn = gather->drawn;
    return status;
}
