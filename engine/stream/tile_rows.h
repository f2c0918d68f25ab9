/* Restricts a tile to the nonzeros in a range of rows of a mode. */
#ifndef SLC_ENGINE_TILE_ROWS_H
#define SLC_ENGINE_TILE_ROWS_H

#include "base/block.h"
#include "base/memory/memory.h"

#include <stdint.h>

/* State that restricts one tile at a time. */
struct slc_tile_rows {
    struct slc_buffer buffer;
    uint32_t *offset[SLC_MAX_ORDER];
    void *values;
    struct slc_tile_view inner;
    unsigned mode;
    uint32_t first, last; /* first and last row, as offsets from the tile's corner */
};

/* Allocates the arrays of a chunk. Ownership: release with slc_tile_rows_destroy, which accepts an
 * all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_tile_rows_create(struct slc_tile_rows *rows,
                                     unsigned order,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_tile_rows_destroy(struct slc_tile_rows *rows);
/* Returns the bytes that slc_tile_rows_create maps. */
uint64_t slc_tile_rows_memory_bytes(unsigned order);

/* Makes `tile`, which has just been opened, deliver only the nonzeros whose coordinate in `mode` is
 * in first_row .. end_row - 1. Their order stays the same, but there are no fiber runs. The corner
 * and the extents of the tile stay the same, and its number of nonzeros is then an upper bound.
 * Needs: at least one of these rows is between corner and corner + extent. Cost: a scan of all
 * nonzeros. */
void slc_tile_rows_cut(struct slc_tile_rows *rows,
                       unsigned mode,
                       uint64_t first_row,
                       uint64_t end_row,
                       struct slc_tile_view *tile);

#endif
