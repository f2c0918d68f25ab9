/*
 * All tiles of a block file, or those of a range of rows, decoded by several threads. Tiles are
 * taken in the order of the file, from a few blocks in memory at a time, so that blocks with many
 * tiles occupy all threads, and what depends on the order can be settled tile by tile.
 */
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

/* What workers 0 .. workers-1 do with each tile, one after the other. */
struct slc_tile_steps {
    void *context;
    /* Many tiles at the same time. The tile's memory is not there any more afterwards. */
    enum slc_status (*decode)(void *context,
                              unsigned worker,
                              struct slc_tile_view *tile,
                              struct slc_error *err);
    /*
     * May be NULL. One tile at a time, in the order of the file. False: no further tile is taken,
     * and that is no error; of those that other workers have taken already the turn may still come.
     */
    bool (*in_turn)(void *context, unsigned worker);
    /* May be NULL. Many tiles at the same time, each after its turn, also when others fail. */
    void (*deliver)(void *context, unsigned worker);
};

struct slc_tile_scan_options {
    const struct slc_files *files;
    const struct slc_reader *reader;
    unsigned workers;
    /* Blocks without rows first_row .. last_row of `mode` are not read .. */
    unsigned mode;
    uint64_t first_row, last_row;
    uint64_t first_tile;         /* .. nor is what lies before this tile */
    const struct slc_stop *stop; /* may be NULL; polled between tiles */
    /* For slc_tile_progress_add, which steps may call; NULL: no callback. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context; /* of progress */
};

/* Nonzeros that the workers of a scan have finished. */
struct slc_tile_progress {
    atomic_uint_fast64_t done;
    atomic_bool telling; /* one thread at a time calls back */
};

/* What a scan maps: a block and a decoder per worker. */
uint64_t slc_tile_scan_memory_bytes(const struct slc_layout_info *info, unsigned workers);

/*
 * Takes every tile of the blocks that are asked for through the steps.
 * Errors: the first of a step or of reading; SLC_ERR_DAMAGED names file, block and offset;
 * SLC_ERR_INTERRUPTED where `stop` was wanted.
 */
enum slc_status slc_tile_scan(const struct slc_tile_scan_options *options,
                              const struct slc_tile_steps *steps,
                              struct slc_error *err) SLC_NODISCARD;

/* Adds `nnz` nonzeros and calls options->progress unless another worker does. */
void slc_tile_progress_add(struct slc_tile_progress *progress,
                           const struct slc_tile_scan_options *options,
                           const char *phase,
                           uint64_t nnz,
                           uint64_t total);

#endif
