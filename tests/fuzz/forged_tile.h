/*
 * A block of one tile that a fuzz target's input chooses: directory entry and data, behind every
 * checksum, with keys of 93 bits, in ALTO order or with fibers together.
 */
#ifndef SLC_FORGED_TILE_H
#define SLC_FORGED_TILE_H

#include "storage/block/reader.h"
#include "storage/codec/block_layout.h"

#include <stdbool.h>

enum { FORGED_MODES = 5, FORGED_HEAD_BYTES = 64 };
extern const uint64_t forged_dims[FORGED_MODES];

struct forged_tile {
    struct slc_tile_entry entry;
    struct slc_block_view view; /* its data is the forged tile's own */
};

/*
 * Input: 64 bytes that choose the directory entry, then the tile's data. The block has exactly the
 * bytes there are, so that AddressSanitizer sees the first read beyond. False for inputs of a size
 * that is no tile's; nothing is held then.
 */
bool forged_tile_make(struct forged_tile *forged, const uint8_t *data, size_t bytes);
void forged_tile_free(struct forged_tile *forged);

#endif
