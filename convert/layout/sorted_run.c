/* Chooses the fiber run of a sorted layout. The number of the partition is treated as the index of
 * an additional mode, so that pieces of a fiber in two partitions are distinct. */
#include "convert/layout/sorted_run.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/sort/fibers.h"
#include "convert/build/sort/key_tables.h"

#include <assert.h>

enum { CHUNK_NNZ = 1024 };

/* The layout keeps the fiber run of the input file if the best run has more than this fraction of
 * the pieces of the input file's run, because then no sort is needed. */
static const double keep_share = 0.9;

struct worker {
    struct slc_fiber_counts counts;
    uint64_t columns[SLC_MAX_ORDER][SLC_KEY_BATCH];
};

struct choice {
    const struct slc_tile_scan_options *scan;
    const struct slc_sorted_cuts *cuts;
    const struct slc_layout_info *info;
    /* Number of counted modes: the order, plus 1 for the partition unless the order is already the
     * limit. */
    unsigned modes;
    struct worker *workers;
    struct slc_tile_progress progress;
};

static unsigned modes_counted(const struct slc_layout_info *info)
{
    return info->order < SLC_MAX_ORDER ? info->order + 1 : info->order;
}

static uint64_t counts_bytes(const struct slc_layout_info *info)
{
    return slc_fiber_counts_bytes(modes_counted(info));
}

uint64_t slc_sorted_run_memory_bytes(const struct slc_layout_info *info, unsigned workers)
{
    return workers * sizeof(struct worker) +
           slc_buffer_footprint(workers * counts_bytes(info), SLC_PAGES_SMALL) +
           slc_tile_scan_memory_bytes(info, workers);
}

/* Returns the last partition whose first row is at most `row`. */
static uint64_t partition_of(const struct slc_sorted_cuts *cuts, uint64_t row)
{
    uint64_t low = 0, high = cuts->count - 1;

    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;

        if (cuts->parts[middle].first_row <= row) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

static void count_batch(const struct choice *choice,
                        struct worker *worker,
                        const struct slc_tile_view *tile,
                        const struct slc_chunk_view *chunk,
                        uint32_t begin,
                        uint32_t count)
{
    const unsigned mode = choice->scan->mode;
    const uint64_t *columns[SLC_MAX_ORDER];

    for (unsigned n = 0; n < choice->modes; n++) {
        columns[n] = worker->columns[n];
    }
    for (unsigned n = 0; n < tile->order; n++) {
        for (uint32_t i = 0; i < count; i++) {
            worker->columns[n][i] = tile->corner[n] + chunk->offset[n][begin + i];
        }
    }
    for (uint32_t i = 0; choice->modes > tile->order && i < count; i++) {
        worker->columns[tile->order][i] = partition_of(choice->cuts, worker->columns[mode][i]);
    }
    slc_fiber_counts_add(&worker->counts, columns, 0, count, 0);
}

static enum slc_status
count_tile(void *context, unsigned number, struct slc_tile_view *tile, struct slc_error *err)
{
    struct choice *choice = context;
    struct slc_chunk_view chunk = {.nnz = 1};
    enum slc_status status = SLC_OK;

    while (chunk.nnz > 0 && status == SLC_OK) {
        status = tile->next(tile, CHUNK_NNZ, &chunk, err);
        for (uint32_t begin = 0; begin < chunk.nnz && status == SLC_OK; begin += SLC_KEY_BATCH) {
            count_batch(choice, &choice->workers[number], tile, &chunk, begin,
                        (uint32_t)slc_min_u64(SLC_KEY_BATCH, chunk.nnz - begin));
        }
    }
    slc_tile_progress_add(&choice->progress, choice->scan, "counting fibers", tile->nnz,
                          choice->info->nnz);
    return status;
}

/* Chooses the fiber run from the counts of all workers, after they were added to worker 0's. */
static struct slc_fiber_run choose_run(const struct choice *choice)
{
    const struct slc_fiber_counts *counts = &choice->workers[0].counts;
    const struct slc_fiber_run own = choice->info->keys.run;
    uint64_t pieces[SLC_MAX_ORDER];
    unsigned best = 0;

    assert(choice->info->order > 0);
    for (unsigned n = 0; n < choice->info->order; n++) {
        /* Pieces of the sorted mode are known only if the partition is counted as a mode. */
        const bool known = choice->modes > choice->info->order || n != choice->scan->mode;

        pieces[n] = known ? slc_distinct_count(&counts->pieces[n]) : UINT64_MAX;
        best = pieces[n] < pieces[best] ? n : best;
    }
    if (!slc_fiber_pieces_gain(choice->info->nnz, pieces[best])) {
        return (struct slc_fiber_run){0, 0};
    }
    if (own.bits > 0 && (double)pieces[best] > keep_share * (double)pieces[own.mode]) {
        return own;
    }
    return (struct slc_fiber_run){best, SLC_FIBER_BITS};
}

enum slc_status slc_sorted_run_choose(const struct slc_tile_scan_options *scan,
                                      const struct slc_sorted_cuts *cuts,
                                      struct slc_fiber_run *run,
                                      unsigned *scans,
                                      struct slc_error *err)
{
    struct choice choice = {.scan = scan, .cuts = cuts, .info = slc_reader_info(scan->reader)};
    struct slc_tile_scan_options all = *scan;
    struct slc_buffer memory = SLC_BUFFER_INIT;
    enum slc_status status = SLC_OK;

    if (choice.info->order == 1 || choice.info->nnz < SLC_FIBER_NNZ_MIN) {
        *run = choice.info->keys.run;
        return SLC_OK;
    }
    *scans += 1;
    choice.modes = modes_counted(choice.info);
    choice.workers = slc_calloc(scan->workers, sizeof *choice.workers);
    SLC_TRY(slc_check_memory(choice.workers != NULL, err, "to count fibers"));
    status =
        slc_buffer_create(&memory, scan->workers * counts_bytes(choice.info), SLC_PAGES_SMALL, err);
    for (unsigned w = 0; status == SLC_OK && w < scan->workers; w++) {
        slc_fiber_counts_init(&choice.workers[w].counts, choice.modes,
                              (char *)memory.data + w * counts_bytes(choice.info));
    }
    all.first_row = 0;
    all.last_row = UINT64_MAX;
    SLC_THEN(status,
             slc_tile_scan(&all, &(struct slc_tile_steps){.context = &choice, .decode = count_tile},
                           err));
    for (unsigned w = 1; status == SLC_OK && w < scan->workers; w++) {
        slc_fiber_counts_join(&choice.workers[0].counts, &choice.workers[w].counts);
    }
    if (status == SLC_OK) {
        *run = choose_run(&choice);
    }
    slc_buffer_destroy(&memory);
    slc_free(choice.workers);
    return status;
}
