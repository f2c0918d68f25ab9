/* A block with one tile whose directory entry and data come from the input of a fuzz target,
 * without checksums; its keys have 93 bits, in ALTO order or with fibers together. */
#ifndef SLC_FORGED_TILE_H
#define SLC_FORGED_TILE_H

#include "storage/block/reader.h"
#include "storage/codec/block_layout.h"

#include <stdbool.h>

enum { FORGED_MODES = 5, FORGED_HEAD_BYTES = 64 };
extern const uint64_t forged_dims[FORGED_MODES];

struct forged_tile {
    struct slc_tile_entry entry;
    struct slc_block_view view; /* refers to the data of the forged tile */
};

/* Input: 64 bytes that determine the directory entry, then the tile's data. The block is allocated
 * at its exact size, so that AddressSanitizer reports the first read beyond it. Returns false,
 * without allocating, if no tile has that size. */
bool forged_tile_make(struct forged_tile *forged, const uint8_t *data, size_t bytes);
void forged_tile_free(struct forged_tile *forged);

#endif
