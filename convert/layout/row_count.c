/* Counts nonzeros per row or per run of rows. The mode is cut into at most 65,536 runs with equal
 * numbers of rows, and a scan counts the nonzeros of each run. Runs with too many nonzeros are cut
 * into 256 runs each and counted in further scans, as many per scan as there is memory for
 * counters. This repeats until each run with too many nonzeros is a single row. Every worker has
 * its own counters. */
#include "convert/layout/sorted_cuts.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <assert.h>
#include <string.h>

enum {
    /* The first cut makes 2^16 runs. Their counters, 512 KiB per worker, stay in the level-2 cache,
     * and a mode with at most 2^16 rows needs only one scan. */
    FIRST_BITS = 16,
    /* Each further cut divides a run into 2^8 runs. The counters for all large runs of a level (at
     * most nnz / run_nnz runs) need no more memory than a few blocks, and a mode with 2^24 rows
     * needs only two scans. */
    FURTHER_BITS = 8,
    CHUNK_NNZ = 1024
};

/* Data of one scan, which cuts the `count` runs at `large`. */
struct level {
    const struct slc_row_run *large; /* runs of at most 2^(shift + bits) rows each */
    uint64_t count;
    unsigned bits;         /* a run is cut into 2^bits runs */
    unsigned shift;        /* each of the resulting runs has 2^shift rows */
    uint64_t *counters;    /* counters of all workers */
    uint64_t worker_count; /* number of counters per worker */
    unsigned mode;
    const struct slc_tile_scan_options *options;
    uint64_t run_nnz;
    uint64_t total;
    struct slc_tile_progress progress;
};

uint64_t
slc_row_count_memory_bytes(const struct slc_layout_info *info, uint64_t run_nnz, unsigned workers)
{
    uint64_t large = info->nnz / run_nnz;
    uint64_t runs = (UINT64_C(1) << FIRST_BITS) + (large << FURTHER_BITS);

    return slc_tile_scan_memory_bytes(info, workers) + 2 * runs * sizeof(struct slc_row_run) +
           slc_buffer_footprint((workers * sizeof(uint64_t)) << FIRST_BITS, SLC_PAGES_SMALL);
}

/* Returns the first run of the level that ends after `row`. */
static uint64_t find_run(const struct level *level, uint64_t row)
{
    uint64_t low = 0, high = level->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (level->large[middle].first_row + level->large[middle].rows <= row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Counts the nonzeros of a tile whose rows are all in run `at`. */
static enum slc_status count_within(const struct level *level,
                                    uint64_t *counters,
                                    struct slc_tile_view *tile,
                                    uint64_t at,
                                    struct slc_error *err)
{
    uint64_t *bins = counters + (at << level->bits);
    uint64_t base = tile->corner[level->mode] - level->large[at].first_row;
    struct slc_chunk_view chunk = {.nnz = 1};

    if (base >> level->shift == (base + tile->extent[level->mode]) >> level->shift) {
        bins[base >> level->shift] += tile->nnz;
        return SLC_OK;
    }
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        const uint32_t *offset = chunk.offset[level->mode];
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            bins[(base + offset[i]) >> level->shift]++;
        }
    }
    return SLC_OK;
}

/* Counts the nonzeros of a tile whose rows are in several runs, or partly in no run. */
static enum slc_status count_across(const struct level *level,
                                    uint64_t *counters,
                                    struct slc_tile_view *tile,
                                    struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};
    uint64_t at = 0;

    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        const uint32_t *offset = chunk.offset[level->mode];
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            uint64_t row = tile->corner[level->mode] + offset[i];

            /* Neighbouring nonzeros are usually in the same run. */
            if (at == level->count || row < level->large[at].first_row ||
                row - level->large[at].first_row >= level->large[at].rows) {
                at = find_run(level, row);
            }
            if (at < level->count && row >= level->large[at].first_row) {
                counters[(at << level->bits) +
                         ((row - level->large[at].first_row) >> level->shift)]++;
            }
        }
    }
    return SLC_OK;
}

static enum slc_status
count_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct level *level = context;
    uint64_t *counters = level->counters + worker * level->worker_count;
    uint64_t first = tile->corner[level->mode];
    uint64_t last = first + tile->extent[level->mode];
    uint64_t at = find_run(level, first);
    enum slc_status status = SLC_OK;

    if (at < level->count && level->large[at].first_row <= last) {
        const struct slc_row_run *run = &level->large[at];

        status = run->first_row <= first && last - run->first_row < run->rows
                     ? count_within(level, counters, tile, at, err)
                     : count_across(level, counters, tile, err);
    }
    slc_tile_progress_add(&level->progress, level->options, "counting", tile->nnz, level->total);
    return status;
}

/* Scans the file once: zeroes the counters, counts nonzeros, and adds the counters of all workers
 * to the counters of the first worker. */
static enum slc_status scan_level(struct level *level, struct slc_error *err)
{
    const struct slc_row_run *last = &level->large[level->count - 1];
    struct slc_tile_scan_options scan = *level->options;

    scan.first_row = level->large[0].first_row;
    scan.last_row = last->first_row + last->rows - 1;
    SLC_TRY(slc_tile_scan(&scan, &(struct slc_tile_steps){.context = level, .decode = count_tile},
                          err));
    for (unsigned w = 1; w < scan.workers; w++) {
        for (uint64_t i = 0; i < level->worker_count; i++) {
            level->counters[i] += level->counters[w * level->worker_count + i];
        }
    }
    return SLC_OK;
}

/* Appends the nonempty parts of run `at` to `out`. */
static void append_parts(const struct level *level, uint64_t at, struct slc_row_counts *out)
{
    const struct slc_row_run *run = &level->large[at];

    for (uint64_t i = 0; i < UINT64_C(1) << level->bits; i++) {
        uint64_t nnz = level->counters[(at << level->bits) + i];
        uint64_t begin = i << level->shift;

        if (nnz > 0) {
            out->runs[out->count++] = (struct slc_row_run){
                .first_row = run->first_row + begin,
                .rows = slc_min_u64(UINT64_C(1) << level->shift, run->rows - begin),
                .nnz = nnz};
        }
    }
}

static bool is_large(const struct slc_row_run *run, uint64_t run_nnz)
{
    return run->nnz > run_nnz && run->rows > 1;
}

/* Copies the runs with more than `run_nnz` nonzeros (and several rows) to `large`, which may be
 * NULL. Returns their number. */
static uint64_t
find_large(const struct slc_row_counts *counts, uint64_t run_nnz, struct slc_row_run *large)
{
    uint64_t found = 0;

    for (uint64_t i = 0; i < counts->count; i++) {
        if (is_large(&counts->runs[i], run_nnz)) {
            if (large != NULL) {
                large[found] = counts->runs[i];
            }
            found++;
        }
    }
    return found;
}

/* Cuts the `found` runs of `large`, `group` runs per scan. Copies all runs from `before` to
 * `after`, which has enough space; each large run is replaced with its parts. */
static enum slc_status refine_runs(struct level *level,
                                   const struct slc_row_run *large,
                                   uint64_t found,
                                   uint64_t group,
                                   const struct slc_row_counts *before,
                                   struct slc_row_counts *after,
                                   struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint64_t next = 0;

    for (uint64_t begin = 0; begin < found && status == SLC_OK; begin += group) {
        level->large = large + begin;
        level->count = slc_min_u64(group, found - begin);
        level->worker_count = level->count << level->bits;
        memset(level->counters, 0,
               level->options->workers * level->worker_count * sizeof *level->counters);
        atomic_store(&level->progress.done, 0);
        status = scan_level(level, err);
        after->scans++;
        for (uint64_t at = 0; at < level->count && status == SLC_OK; next++) {
            if (is_large(&before->runs[next], level->run_nnz)) {
                append_parts(level, at++, after);
            } else {
                after->runs[after->count++] = before->runs[next];
            }
        }
    }
    for (; next < before->count && status == SLC_OK; next++) {
        after->runs[after->count++] = before->runs[next];
    }
    return status;
}

/* Cuts each run with too many nonzeros once. Sets *done if there was no such run. */
static enum slc_status cut_level(const struct slc_tile_scan_options *options,
                                 uint64_t run_nnz,
                                 unsigned *row_bits,
                                 struct slc_row_counts *counts,
                                 bool *done,
                                 struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(options->reader);
    uint64_t found = find_large(counts, run_nnz, NULL);
    unsigned bits = counts->scans == 0 ? FIRST_BITS : FURTHER_BITS;
    struct level level = {
        .options = options, .run_nnz = run_nnz, .mode = options->mode, .total = info->nnz};
    struct slc_row_counts after = {.scans = counts->scans};
    struct slc_buffer counters = SLC_BUFFER_INIT;

    *done = found == 0;
    if (found == 0) {
        return SLC_OK;
    }
    level.bits = *row_bits < bits ? *row_bits : bits;
    level.shift = *row_bits - level.bits;
    /* Use no more memory than the counters of the first level, for which memory was planned. */
    uint64_t group = slc_min_u64(found, UINT64_C(1) << (FIRST_BITS - level.bits));
    after.runs = slc_calloc(counts->count + (found << level.bits), sizeof *after.runs);
    struct slc_row_run *large = slc_calloc(found, sizeof *large);
    enum slc_status status = slc_check_memory(after.runs != NULL && large != NULL, err,
                                              "for the counts of a mode's rows");
    SLC_THEN(status, slc_buffer_create(&counters,
                                       (options->workers * group * sizeof(uint64_t)) << level.bits,
                                       SLC_PAGES_SMALL, err));
    if (status == SLC_OK) {
        (void)find_large(counts, run_nnz, large);
        level.counters = counters.data;
        status = refine_runs(&level, large, found, group, counts, &after, err);
    }
    if (status == SLC_OK) {
        struct slc_row_run *exchanged = counts->runs;

        *counts = after;
        after.runs = exchanged;
        *row_bits = level.shift;
    }
    slc_buffer_destroy(&counters);
    slc_free(large);
    slc_free(after.runs);
    return status;
}

enum slc_status slc_row_count(const struct slc_tile_scan_options *options,
                              uint64_t run_nnz,
                              struct slc_row_counts *counts,
                              struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(options->reader);
    unsigned row_bits = slc_bits_for_length(info->dims[options->mode]);
    struct slc_row_counts found = {.runs = slc_calloc(1, sizeof *found.runs)};
    enum slc_status status = SLC_OK;
    bool done = false;

    assert(run_nnz >= 1);
    SLC_TRY(slc_check_memory(found.runs != NULL, err, "for the counts of a mode's rows"));
    if (info->nnz > 0) {
        found.runs[0] = (struct slc_row_run){0, info->dims[options->mode], info->nnz};
        found.count = 1;
    }
    while (status == SLC_OK && !done) {
        status = cut_level(options, run_nnz, &row_bits, &found, &done, err);
    }
    if (status != SLC_OK) {
        slc_row_counts_destroy(&found);
        return status;
    }
    *counts = found;
    return SLC_OK;
}

void slc_row_counts_destroy(struct slc_row_counts *counts)
{
    slc_free(counts->runs);
    counts->runs = NULL;
}
