/*
 * How the tiles of a layout reach the workers of an operation that knows nothing of streams: the
 * steps that each tile is taken through, and the table of a supply of tiles. engine/ offers one
 * (engine/stream_supply.h) to convert/, which does not know it.
 */
#ifndef SLC_BASE_TILE_SUPPLY_H
#define SLC_BASE_TILE_SUPPLY_H

#include "base/block.h"
#include "base/error.h"

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

struct slc_reader; /* storage/reader.h */

struct slc_tile_supply {
    void *self;
    /* What delivering the tiles of a layout to so many workers maps: the least that works, or what
     * more would not make it faster. */
    uint64_t (*memory_bytes)(void *self,
                             const struct slc_reader *reader,
                             unsigned workers,
                             bool least);
    /*
     * Takes every tile of the layout, as f64, through the steps, within `bytes`: the least or more.
     * Blocks come in the order of the file where tiles have turns.
     * Errors: the first of a step or of reading; SLC_ERR_DAMAGED names file, block and offset.
     */
    enum slc_status (*run)(void *self,
                           struct slc_reader *reader,
                           unsigned workers,
                           uint64_t bytes,
                           const struct slc_tile_steps *steps,
                           struct slc_error *err);
};

#endif
