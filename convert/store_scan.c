/* See convert/store_scan.h. A worker reads a block, decodes its tiles and hands on their rows. */
#include "convert/store_scan.h"

#include "base/memory.h"
#include "base/team.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>

enum {
    ROWS = 8192,
    /* Most of them of one tile: rows are full but for less than a group. */
    CALLS_PER_TILE = 2 * SLC_TILE_NNZ / ROWS,
    /* Allocator and stack of a thread, the error record. */
    WORKER_BYTES = 256 << 10
};

struct worker {
    struct slc_buffer block;
    struct slc_buffer rows; /* a column per mode, values */
    struct slc_decoder *decoder;
    enum slc_status status;
    struct slc_error err;
};

struct scan {
    const struct slc_store *store;
    int fd;
    slc_scan_fn *fn;
    void *context;
    struct worker *workers;
    atomic_bool stop;
};

static uint64_t rows_bytes(const struct slc_layout_info *info)
{
    return (info->order + UINT64_C(1)) * ROWS * sizeof(uint64_t);
}

uint64_t slc_store_scan_memory_bytes(const struct slc_layout_info *info, unsigned workers)
{
    return workers * (slc_buffer_footprint(info->max_block_bytes, SLC_PAGES_SMALL) +
                      slc_buffer_footprint(rows_bytes(info), SLC_PAGES_SMALL) +
                      slc_decoder_memory_bytes(info, SLC_F64) + WORKER_BYTES);
}

/* Copies a decoded chunk to the worker's rows. */
static void fill_rows(const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      struct slc_scan_rows *rows)
{
    for (unsigned mode = 0; mode < tile->order; mode++) {
        const uint32_t *offset = chunk->offset[mode];
        uint64_t *coords = rows->coords[mode] + rows->count;

        for (uint32_t i = 0; i < chunk->nnz; i++) {
            coords[i] = tile->corner[mode] + offset[i];
        }
    }
    memcpy(rows->values + rows->count, chunk->values, chunk->nnz * sizeof *rows->values);
    rows->count += chunk->nnz;
}

/* The next rows of the tile: as many as there is room for, none at its end. */
static enum slc_status
next_rows(struct slc_tile_view *tile, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};
    enum slc_status status = SLC_OK;

    rows->count = 0;
    while (status == SLC_OK && chunk.nnz > 0 && ROWS - rows->count >= SLC_GROUP_NNZ) {
        uint32_t room = (ROWS - rows->count) / SLC_GROUP_NNZ * SLC_GROUP_NNZ;

        status = tile->next(tile, room, &chunk, err);
        if (status == SLC_OK) {
            fill_rows(tile, &chunk, rows);
        }
    }
    return status;
}

static enum slc_status scan_tile(const struct scan *scan,
                                 unsigned number,
                                 struct slc_tile_view *tile,
                                 struct slc_error *err)
{
    uint64_t *columns = scan->workers[number].rows.data;
    struct slc_scan_rows rows = {.sequence = tile->ordinal * CALLS_PER_TILE};
    enum slc_status status;

    for (unsigned mode = 0; mode < tile->order; mode++) {
        rows.coords[mode] = columns + (size_t)mode * ROWS;
    }
    rows.values = (double *)(void *)(columns + (size_t)tile->order * ROWS);
    do {
        status = next_rows(tile, &rows, err);
        if (status == SLC_OK && rows.count > 0) {
            status = scan->fn(scan->context, number, &rows, err);
            rows.sequence++;
        }
    } while (status == SLC_OK && rows.count > 0);
    return status;
}

static enum slc_status
scan_block(const struct scan *scan, uint64_t block, unsigned number, struct slc_error *err)
{
    const struct slc_reader *reader = scan->store->reader;
    const struct worker *worker = &scan->workers[number];
    struct slc_block_entry entry;
    struct slc_block_view view;
    enum slc_status status;

    slc_reader_entry(reader, block, &entry);
    status = slc_file_read_at(scan->store->files, scan->fd, slc_reader_path(reader),
                              worker->block.data, entry.padded_bytes, entry.offset, err);
    if (status == SLC_OK) {
        status = slc_block_open(reader, block, worker->block.data, false, &view, err);
    }
    for (uint32_t i = 0; i < entry.tile_count && status == SLC_OK; i++) {
        struct slc_tile_view tile;

        status = slc_tile_open(worker->decoder, &view, i, &tile, err);
        if (status == SLC_OK) {
            status = scan_tile(scan, number, &tile, err);
        }
    }
    return status;
}

static void scan_range(void *context, uint64_t begin, uint64_t end, unsigned number)
{
    struct scan *scan = context;
    struct worker *worker = &scan->workers[number];

    for (uint64_t block = begin; block < end && !atomic_load(&scan->stop); block++) {
        worker->status = scan_block(scan, block, number, &worker->err);
        if (worker->status != SLC_OK) {
            atomic_store(&scan->stop, true);
        }
    }
}

static enum slc_status
create_worker(struct worker *worker, const struct slc_layout_info *info, struct slc_error *err)
{
    enum slc_status status =
        slc_buffer_create(&worker->block, info->max_block_bytes, SLC_PAGES_SMALL, err);

    if (status == SLC_OK) {
        status = slc_buffer_create(&worker->rows, rows_bytes(info), SLC_PAGES_SMALL, err);
    }
    if (status == SLC_OK) {
        status = slc_decoder_create(info, SLC_F64, &worker->decoder, err);
    }
    return status;
}

static void destroy_workers(struct worker *workers, unsigned count)
{
    for (unsigned w = 0; workers != NULL && w < count; w++) {
        slc_decoder_destroy(workers[w].decoder);
        slc_buffer_destroy(&workers[w].rows);
        slc_buffer_destroy(&workers[w].block);
    }
    slc_free(workers);
}

enum slc_status slc_store_scan(const struct slc_store *store,
                               unsigned workers,
                               slc_scan_fn *fn,
                               void *context,
                               struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(store->reader);
    const struct slc_files *files = store->files;
    const char *path = slc_reader_path(store->reader);
    struct scan scan = {.store = store, .fd = -1, .fn = fn, .context = context};
    enum slc_status status = SLC_OK;

    scan.workers = slc_calloc(workers, sizeof *scan.workers);
    if (scan.workers == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to read a store with %u threads", workers);
    }
    for (unsigned w = 0; w < workers && status == SLC_OK; w++) {
        slc_error_clear(&scan.workers[w].err);
        status = create_worker(&scan.workers[w], info, err);
    }
    if (status == SLC_OK) {
        scan.fd = files->open(files->self, path, O_RDONLY | O_CLOEXEC, 0);
        if (scan.fd < 0) {
            status = slc_fail_errno(err, -scan.fd, path, "opening the block file");
        }
    }
    if (status == SLC_OK) {
        status = slc_team_for(workers, info->block_count, 1, scan_range, &scan, err);
    }
    for (unsigned w = 0; w < workers && status == SLC_OK; w++) {
        status = scan.workers[w].status;
        if (status != SLC_OK && err != NULL && err->status == SLC_OK) {
            *err = scan.workers[w].err;
        }
    }
    if (scan.fd >= 0) {
        (void)files->close(files->self, scan.fd);
    }
    destroy_workers(scan.workers, workers);
    return status;
}
