/* Scans a store: a worker decodes a tile and passes its nonzeros to the callback. */
#include "storage/scan/store_scan.h"

#include "base/memory/memory.h"
#include "storage/scan/tile_scan.h"

#include <assert.h>
#include <string.h>

enum {
    ROWS = 8192,
    /* Upper bound on calls per tile: every call except the last passes more than half of ROWS
     * nonzeros. */
    CALLS_PER_TILE = 2 * SLC_TILE_NNZ / ROWS
};

struct scan {
    slc_scan_fn *fn;
    void *context;
    struct slc_buffer rows; /* per worker: a column for each mode, and values */
    uint64_t worker_bytes;
};

static uint64_t rows_bytes(const struct slc_layout_info *info)
{
    return (info->order + UINT64_C(1)) * ROWS * sizeof(uint64_t);
}

uint64_t slc_store_scan_memory_bytes(const struct slc_layout_info *info, unsigned workers)
{
    return slc_tile_scan_memory_bytes(info, workers) +
           slc_buffer_footprint(workers * rows_bytes(info), SLC_PAGES_SMALL);
}

uint64_t slc_store_scan_sequences(const struct slc_layout_info *info)
{
    return info->tile_count * CALLS_PER_TILE;
}

/* Appends a decoded chunk to the worker's rows. */
static void fill_rows(const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      struct slc_scan_rows *rows)
{
    for (unsigned mode = 0; mode < tile->order; mode++) {
        const uint32_t *offset = chunk->offset[mode];
        uint64_t *coords = rows->coords[mode];

        assert(coords != NULL);
        coords += rows->count;
        for (uint32_t i = 0; i < chunk->nnz; i++) {
            coords[i] = tile->corner[mode] + offset[i];
        }
    }
    memcpy(rows->values + rows->count, chunk->values, chunk->nnz * sizeof *rows->values);
    rows->count += chunk->nnz;
}

/* Fills the rows with the next nonzeros of the tile, as far as they fit. If no nonzeros are left,
 * sets rows->count to 0. */
static enum slc_status
next_rows(struct slc_tile_view *tile, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};

    rows->count = 0;
    while (chunk.nnz > 0 && ROWS - rows->count >= SLC_GROUP_NNZ) {
        uint32_t capacity = (ROWS - rows->count) / SLC_GROUP_NNZ * SLC_GROUP_NNZ;

        SLC_TRY(tile->next(tile, capacity, &chunk, err));
        fill_rows(tile, &chunk, rows);
    }
    return SLC_OK;
}

static enum slc_status
scan_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct scan *scan = context;
    uint64_t *columns = scan->rows.data;
    struct slc_scan_rows rows = {.sequence = tile->ordinal * CALLS_PER_TILE};
    enum slc_status status;

    columns += worker * scan->worker_bytes / sizeof *columns;
    for (unsigned mode = 0; mode < tile->order; mode++) {
        rows.coords[mode] = columns + (size_t)mode * ROWS;
    }
    rows.values = (double *)(void *)(columns + (size_t)tile->order * ROWS);
    do {
        status = next_rows(tile, &rows, err);
        if (status == SLC_OK && rows.count > 0) {
            status = scan->fn(scan->context, worker, &rows, err);
            rows.sequence++;
        }
    } while (status == SLC_OK && rows.count > 0);
    return status;
}

enum slc_status slc_store_scan(const struct slc_store *store,
                               unsigned workers,
                               const struct slc_stop *stop,
                               slc_scan_fn *fn,
                               void *context,
                               struct slc_error *err)
{
    struct scan scan = {.fn = fn,
                        .context = context,
                        .rows = SLC_BUFFER_INIT,
                        .worker_bytes = rows_bytes(slc_reader_info(store->reader))};
    enum slc_status status =
        slc_buffer_create(&scan.rows, workers * scan.worker_bytes, SLC_PAGES_SMALL, err);

    if (status == SLC_OK) {
        status =
            slc_tile_scan(&(struct slc_tile_scan_options){.files = store->files,
                                                          .reader = store->reader,
                                                          .workers = workers,
                                                          .last_row = UINT64_MAX,
                                                          .stop = stop},
                          &(struct slc_tile_steps){.context = &scan, .decode = scan_tile}, err);
    }
    slc_buffer_destroy(&scan.rows);
    return status;
}
