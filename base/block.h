/*
 * What computing code sees of stored data: tiles, decoded a chunk at a time.
 *
 * A tile is up to SLC_TILE_NNZ consecutive nonzeros of a layout with their smallest coordinates
 * (its corner) and extents; tiles are cut by ordinal, so they depend on the tensor and the layout
 * alone, not on block size, codec, threads or budget. storage/ fills in a tile view for a tile of a
 * block that lies encoded in memory; cpu/ pulls decoded chunks out of it that fit the first-level
 * cache.
 */
#ifndef SLC_BASE_BLOCK_H
#define SLC_BASE_BLOCK_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Consecutive decoded nonzeros. Arrays belong to the decoder and are valid until its next call;
 * each may be read (not used) up to 64 bytes past its end.
 */
struct slc_chunk_view {
    uint32_t nnz;
    const uint32_t *offset[SLC_MAX_ORDER]; /* coordinate minus the tile's corner, per mode */
    const void *values;                    /* f64 or f32, as the tile view's value_type says */
};

/*
 * The same, cut into runs of nonzeros that agree in every mode but `mode`: pieces of mode-n fibers.
 * A fiber that reaches over the end of a chunk goes on in the next one.
 */
struct slc_fiber_view {
    uint32_t nnz;
    uint32_t runs;                         /* 1 or more where nnz is */
    unsigned mode;                         /* the fibers' own mode */
    const uint32_t *begin;                 /* runs + 1: first nonzero of each run, then nnz */
    const uint32_t *offset[SLC_MAX_ORDER]; /* of `mode`: per nonzero; of the others: per run */
    const void *values;                    /* per nonzero */
};

struct slc_encoded_block; /* base/encoded.h */

struct slc_tile_view {
    uint64_t ordinal; /* of the tile within its layout, from 0 */
    uint64_t block;   /* block it came from, for messages */
    uint32_t nnz;
    unsigned order;
    enum slc_value_type value_type; /* type of decoded values; independent of the file's */
    uint64_t corner[SLC_MAX_ORDER]; /* smallest coordinate per mode */
    uint32_t extent[SLC_MAX_ORDER]; /* largest minus smallest coordinate per mode */
    /*
     * Of a layout sorted by a mode: the partition the tile belongs to, from 0, whose rows of that
     * mode are in no other; but for a row that is split over several, each of which holds nothing
     * else and all but the first are `continued`. 0 and false in other layouts.
     */
    uint64_t partition;
    bool continued;

    /*
     * Decodes the next nonzeros of the tile, at most `max_nnz` (a multiple of SLC_GROUP_NNZ), in
     * key order. chunk->nnz is 0 at the end. Only storage/ sets these fields. Errors:
     * SLC_ERR_DAMAGED when the encoded bytes contradict the directory.
     */
    enum slc_status (*next)(struct slc_tile_view *tile,
                            uint32_t max_nnz,
                            struct slc_chunk_view *chunk,
                            struct slc_error *err);
    /* The same cut into runs; NULL where the order of the tile gives none. Calls of
     * the two may alternate within a tile. */
    enum slc_status (*next_fibers)(struct slc_tile_view *tile,
                                   uint32_t max_nnz,
                                   struct slc_fiber_view *fibers,
                                   struct slc_error *err);
    /*
     * Describes the tile for a device that decodes by itself: a block of this tile alone, with the
     * block's number and its offset in the file, and expanded: a device
     * has one warp for each section of a block, and a tile alone has one. Both it and what it
     * borrows are there as long as the view, and `next` goes on as if this had not been called.
     * NULL where the view does not deliver all that is encoded. Errors: SLC_ERR_DAMAGED.
     */
    enum slc_status (*describe)(struct slc_tile_view *tile,
                                struct slc_encoded_block *described,
                                struct slc_error *err);
    void *decoder;
};

#endif
