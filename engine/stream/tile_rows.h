/* A tile that delivers the nonzeros of some rows of a mode alone. */
#ifndef SLC_ENGINE_TILE_ROWS_H
#define SLC_ENGINE_TILE_ROWS_H

#include "base/block.h"
#include "base/memory/memory.h"

#include <stdint.h>

/* One tile at a time, like a decoder. */
struct slc_tile_rows {
    struct slc_buffer buffer;
    uint32_t *offset[SLC_MAX_ORDER];
    void *values;
    struct slc_tile_view inner;
    unsigned mode;
    uint32_t first, last; /* offsets from the tile's corner */
};

/* Owns: slc_tile_rows_destroy, which takes an all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_tile_rows_create(struct slc_tile_rows *rows,
                                     unsigned order,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_tile_rows_destroy(struct slc_tile_rows *rows);
/* What the above maps, for plans. */
uint64_t slc_tile_rows_memory_bytes(unsigned order);

/*
 * Makes `tile`, just opened, deliver the nonzeros whose coordinate in `mode` is in
 * [first_row, end_row) alone, in the same order but not in runs of fibers. Its corner and extents
 * stay, and its number of nonzeros is one that it has at most. Needs: some row of the tile's span
 * is among them. Cost: a look at every nonzero.
 */
void slc_tile_rows_cut(struct slc_tile_rows *rows,
                       unsigned mode,
                       uint64_t first_row,
                       uint64_t end_row,
                       struct slc_tile_view *tile);

#endif
