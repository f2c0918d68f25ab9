/* Decodes all tiles of a block file, or only the tiles of the blocks that hold a range of rows, on
 * several threads. Tiles are processed in file order, from a few blocks in memory at a time, so
 * that blocks with many tiles occupy all threads and order-dependent work can be done tile by
 * tile. */
#ifndef SLC_STORAGE_TILE_SCAN_H
#define SLC_STORAGE_TILE_SCAN_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/error/stop.h"
#include "storage/block/reader.h"
#include "storage/file/files.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Steps that workers 0 .. workers-1 perform on each tile, in this order. */
struct slc_tile_steps {
    void *context;
    /* Called for many tiles at the same time. The tile's memory is invalid after the call. */
    enum slc_status (*decode)(void *context,
                              unsigned worker,
                              struct slc_tile_view *tile,
                              struct slc_error *err);
    /* May be NULL. Called for one tile at a time, in file order. Returning false ends the scan
     * without an error; in_turn may still be called for tiles that other workers have already
     * started. */
    bool (*in_turn)(void *context, unsigned worker);
    /* May be NULL. Called for many tiles at the same time, for each tile after its in_turn, even if
     * other tiles fail. */
    void (*deliver)(void *context, unsigned worker);
};

struct slc_tile_scan_options {
    const struct slc_files *files;
    const struct slc_reader *reader;
    unsigned workers;
    /* Blocks that have no nonzeros in rows first_row .. last_row of `mode` are skipped. */
    unsigned mode;
    uint64_t first_row, last_row;
    uint64_t first_tile;         /* tiles before this tile are skipped */
    const struct slc_stop *stop; /* may be NULL; polled between tiles */
    /* Called by slc_tile_progress_add, which steps may call; may be NULL. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context; /* first argument of `progress` */
};

/* Number of nonzeros that the workers of a scan have processed. */
struct slc_tile_progress {
    atomic_uint_fast64_t done;
    atomic_bool reporting; /* a thread is in the callback */
};

/* Returns the bytes that a scan maps: a block and a decoder per worker. */
uint64_t slc_tile_scan_memory_bytes(const struct slc_layout_info *info, unsigned workers);

/* Performs `steps` on every tile that `options` selects.
 * Errors: the first error of a step or of reading; SLC_ERR_DAMAGED with file, block and offset;
 * SLC_ERR_INTERRUPTED if `stop` was requested. */
enum slc_status slc_tile_scan(const struct slc_tile_scan_options *options,
                              const struct slc_tile_steps *steps,
                              struct slc_error *err) SLC_NODISCARD;

/* Adds `nnz` nonzeros. Calls options->progress unless another worker is calling it. */
void slc_tile_progress_add(struct slc_tile_progress *progress,
                           const struct slc_tile_scan_options *options,
                           const char *phase,
                           uint64_t nnz,
                           uint64_t total);

#endif
