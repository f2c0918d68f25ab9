/*
 * Nonzeros that workers find in the order of their keys, piece by piece, become the tiles of a
 * block file without a sort. Each piece reserves the places behind those before it, in its turn,
 * and is copied there by whoever brought it, while others do the same; a full tile is listed for
 * encoding (convert/build/build_tiles.h). So the file is the one that a builder makes of the same
 * nonzeros, whatever the threads.
 *
 * The last coordinate of a piece may go on with the first of the next: both are added up, in that
 * order, as a builder does with duplicates.
 */
#ifndef SLC_ENGINE_ORDERED_H
#define SLC_ENGINE_ORDERED_H

#include "base/error/error.h"
#include "base/key.h"
#include "convert/build/build_tiles.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_ordered_options {
    const struct slc_key_layout *layout;
    const uint64_t *dims; /* none above SLC_ORDERED_MODE_MAX */
    unsigned workers;
    struct slc_tiles *tiles; /* borrowed; of as many workers */
};

/* Tiles are cut by ordinal alone: no mode is long enough for a tile to extend too far. */
#define SLC_ORDERED_MODE_MAX UINT32_MAX

/*
 * Keys strictly ascending, also above the last of the piece before, with which the first may agree.
 * No value is 0. All stay until the piece is delivered.
 */
struct slc_ordered_piece {
    uint32_t count; /* at most SLC_TILE_NNZ */
    const uint64_t *key_lo;
    const uint64_t *key_hi; /* looked at where keys have more than 64 bits */
    const double *values;
};

/* Where a piece goes: filled by reserve, used by deliver. */
struct slc_ordered_place {
    uint64_t at;   /* ordinal of the first nonzero in the file */
    bool has_head; /* one that was open before comes first */
    uint64_t head_lo, head_hi;
    double head_value;
    uint32_t begin, end; /* of the piece, what follows */
};

struct slc_ordered_counts {
    uint64_t duplicates; /* sums that were added to one before */
    uint64_t zeros;      /* whole sums that are zero, and left out */
};

struct slc_ordered;

/* What create maps. */
uint64_t slc_ordered_bytes(const struct slc_key_layout *layout, unsigned workers);

/* Owns: slc_ordered_destroy, which takes NULL. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_ordered_create(const struct slc_ordered_options *options,
                                   struct slc_ordered **ordered,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_ordered_destroy(struct slc_ordered *ordered);

/*
 * The next piece in the order of keys. Threads: one call at a time; it waits for nobody.
 * Errors: SLC_ERR_INPUT, naming the coordinates, where a sum is beyond the range of f64.
 */
enum slc_status slc_ordered_reserve(struct slc_ordered *ordered,
                                    const struct slc_ordered_piece *piece,
                                    struct slc_ordered_place *place,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Copies a piece to its place; encodes meanwhile where there is no room yet. Threads: any worker,
 * at any time after reserve; every reserved piece has to be delivered. Faults end the tiles.
 */
void slc_ordered_deliver(struct slc_ordered *ordered,
                         unsigned worker,
                         const struct slc_ordered_piece *piece,
                         const struct slc_ordered_place *place);

/* The rest, when all pieces are delivered and no other thread is active. Errors: as above, and
 * those of the tiles. */
enum slc_status slc_ordered_finish(struct slc_ordered *ordered,
                                   struct slc_ordered_counts *counts,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
