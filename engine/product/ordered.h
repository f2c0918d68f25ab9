/* Makes the tiles of a block file, without sorting, from nonzeros that arrive in key order. The
 * nonzeros arrive in pieces. The pieces reserve their positions one after the other, in key order.
 * The worker of a piece then copies the piece to its positions, concurrently with other workers. A
 * full tile is queued for encoding (convert/build/build_tiles.h). For any number of threads, the
 * file is the same as the file that a builder makes from the same nonzeros.
 *
 * The last nonzero of a piece may have the same coordinates as the first nonzero of the next piece.
 * Their values are then added in this order, as a builder adds duplicates. */
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
    struct slc_tiles *tiles; /* borrowed; created for `workers` workers */
};

/* Largest mode size. The ordinal of a nonzero alone determines its tile, so the mode sizes must
 * ensure that the extent of no tile overflows. */
#define SLC_ORDERED_MODE_MAX UINT32_MAX

/* A piece of nonzeros. Keys are strictly ascending. All keys are above the last key of the previous
 * piece, except that the first key may equal it. No value is 0. The arrays must stay valid until
 * the piece is delivered. */
struct slc_ordered_piece {
    uint32_t count; /* number of nonzeros, at most SLC_TILE_NNZ */
    const uint64_t *key_lo;
    const uint64_t *key_hi; /* used if keys have more than 64 bits */
    const double *values;
};

/* Positions of a piece, set by slc_ordered_reserve and used by slc_ordered_deliver. */
struct slc_ordered_place {
    uint64_t at;   /* ordinal of the first nonzero in the file */
    bool has_head; /* the last nonzero of earlier pieces, now complete, is written first */
    uint64_t head_lo, head_hi;
    double head_value;
    uint32_t begin, end; /* nonzeros of the piece that are written after the head */
};

struct slc_ordered_counts {
    uint64_t duplicates; /* values that were added to a value with the same coordinates */
    uint64_t zeros;      /* sums that are zero and therefore omitted */
};

struct slc_ordered;

/* Returns the bytes that slc_ordered_create maps. */
uint64_t slc_ordered_bytes(const struct slc_key_layout *layout, unsigned workers);

/* Creates the state for writing one file. Ownership: release with slc_ordered_destroy, which
 * accepts NULL. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_ordered_create(const struct slc_ordered_options *options,
                                   struct slc_ordered **ordered,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_ordered_destroy(struct slc_ordered *ordered);

/* Reserves positions for the next piece in key order. Never waits. Threads: one call at a time.
 * Errors: SLC_ERR_INPUT, with the coordinates, if a sum is beyond the range of f64. */
enum slc_status slc_ordered_reserve(struct slc_ordered *ordered,
                                    const struct slc_ordered_piece *piece,
                                    struct slc_ordered_place *place,
                                    struct slc_error *err) SLC_NODISCARD;

/* Copies a piece to its positions. While a slot for these positions is occupied, encodes tiles.
 * Threads: any worker, at any time after slc_ordered_reserve. Every reserved piece must be
 * delivered. An error is stored in `tiles`, and slc_ordered_finish returns it. */
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
