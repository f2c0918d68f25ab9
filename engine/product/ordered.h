/*
 * Turns nonzeros that workers find in the order of their keys, piece by piece, into the tiles of a
 * block file without sorting. One after the other, the pieces reserve the places after the previous
 * piece. The worker of a piece then copies it to its place, concurrently with other workers. A full
 * tile is listed for encoding (convert/build/build_tiles.h). The file is therefore the same as one
 * that a builder makes from the same nonzeros, for any number of threads.
 *
 * The last coordinate of a piece may equal the first coordinate of the next piece. Both values are
 * then added, in that order, as a builder does with duplicates.
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
    const uint64_t *dims; /* mode sizes, none above SLC_ORDERED_MODE_MAX */
    unsigned workers;
    struct slc_tiles *tiles; /* borrowed; created for the same number of workers */
};

/*
 * Tiles are divided by ordinal alone: no mode is so large that the extent of a tile could overflow.
 */
#define SLC_ORDERED_MODE_MAX UINT32_MAX

/* Keys are strictly ascending and above the last key of the previous piece; only the first key may
 * equal it. No value is 0. The arrays must stay valid until the piece is delivered. */
struct slc_ordered_piece {
    uint32_t count; /* at most SLC_TILE_NNZ */
    const uint64_t *key_lo;
    const uint64_t *key_hi; /* used if keys have more than 64 bits */
    const double *values;
};

/* Position of a piece: set by reserve, used by deliver. */
struct slc_ordered_place {
    uint64_t at;   /* ordinal of the first nonzero in the file */
    bool has_head; /* a coordinate that was open before this piece comes first */
    uint64_t head_lo, head_hi;
    double head_value;
    uint32_t begin, end; /* part of the piece that follows the head */
};

struct slc_ordered_counts {
    uint64_t duplicates; /* sums added to an earlier sum */
    uint64_t zeros;      /* zero sums that were omitted */
};

struct slc_ordered;

/* Returns the bytes that slc_ordered_create maps. */
uint64_t slc_ordered_bytes(const struct slc_key_layout *layout, unsigned workers);

/* Owns: release with slc_ordered_destroy, which accepts NULL. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_ordered_create(const struct slc_ordered_options *options,
                                   struct slc_ordered **ordered,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_ordered_destroy(struct slc_ordered *ordered);

/* Reserves places for the next piece in the order of keys. Never waits. Threads: one call at a
 * time. Errors: SLC_ERR_INPUT, naming the coordinates, if a sum is beyond the range of f64. */
enum slc_status slc_ordered_reserve(struct slc_ordered *ordered,
                                    const struct slc_ordered_piece *piece,
                                    struct slc_ordered_place *place,
                                    struct slc_error *err) SLC_NODISCARD;

/* Copies a piece to its place; while the place is occupied, encodes tiles. Threads: any worker, at
 * any time after slc_ordered_reserve. Every reserved piece must be delivered. An error stops the
 * tiles. */
void slc_ordered_deliver(struct slc_ordered *ordered,
                         unsigned worker,
                         const struct slc_ordered_piece *piece,
                         const struct slc_ordered_place *place);

/* Writes the remaining tiles. Call it when all pieces are delivered and no other thread is active.
 * Errors: those of slc_ordered_reserve and of the tiles. */
enum slc_status slc_ordered_finish(struct slc_ordered *ordered,
                                   struct slc_ordered_counts *counts,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
