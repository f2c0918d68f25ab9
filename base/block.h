/*
 * Decoded tiles: the interface between storage/ and kernels.
 *
 * A tile is up to SLC_TILE_NNZ consecutive nonzeros of a layout with their smallest coordinates
 * (the corner) and extents. Tiles are cut by ordinal, so they depend only on the tensor and the
 * layout, not on block size, codec, threads or budget. storage/ fills in a tile view for a tile of
 * an encoded block in memory; cpu/ requests decoded chunks that fit into the first-level cache.
 */
#ifndef SLC_BASE_BLOCK_H
#define SLC_BASE_BLOCK_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Consecutive decoded nonzeros. The decoder owns the arrays, which are valid until its next call.
 * Up to 64 bytes past the end of each may be read, but not used. */
struct slc_chunk_view {
    uint32_t nnz;
    const uint32_t *offset[SLC_MAX_ORDER]; /* coordinate minus the tile's corner, per mode */
    const void *values;                    /* of the tile view's value_type, f64 or f32 */
};

/* A chunk cut into runs of nonzeros that agree in all modes but `mode`: pieces of mode-n fibers. A
 * fiber may continue in the next chunk. */
struct slc_fiber_view {
    uint32_t nnz;
    uint32_t runs;         /* at least 1 if nnz is */
    unsigned mode;         /* mode of the fibers */
    const uint32_t *begin; /* runs + 1 numbers: the first nonzero of each run, then nnz */
    const uint32_t *offset[SLC_MAX_ORDER]; /* for `mode` per nonzero, for other modes per run */
    const void *values;                    /* per nonzero */
};

struct slc_encoded_block; /* base/encoded.h */

struct slc_tile_view {
    uint64_t ordinal; /* of the tile within its layout, from 0 */
    uint64_t block;   /* number of the tile's block, for messages */
    uint32_t nnz;
    unsigned order;
    enum slc_value_type
        value_type; /* type of decoded values, which may differ from the type in the file */
    uint64_t corner[SLC_MAX_ORDER]; /* smallest coordinate per mode */
    uint32_t extent[SLC_MAX_ORDER]; /* largest minus smallest coordinate per mode */
    /*
     * In a layout sorted by a mode: the partition of the tile, from 0. The rows of a partition are
     * in no other partition, except for a row that is split over several partitions, which then
     * contain only this row; all of these partitions but the first are `continued`. In other
     * layouts `partition` is 0 and `continued` is false.
     */
    uint64_t partition;
    bool continued;

    /*
     * Decodes the next nonzeros of the tile, at most `max_nnz` (a multiple of SLC_GROUP_NNZ), in
     * key order. chunk->nnz is 0 at the end. Only storage/ sets these members. Errors:
     * SLC_ERR_DAMAGED if the encoded bytes contradict the directory.
     */
    enum slc_status (*next)(struct slc_tile_view *tile,
                            uint32_t max_nnz,
                            struct slc_chunk_view *chunk,
                            struct slc_error *err);
    /* As `next`, with the nonzeros cut into runs; NULL if the order of the tile has no runs. Calls
     * of `next` and `next_fibers` may alternate within a tile. */
    enum slc_status (*next_fibers)(struct slc_tile_view *tile,
                                   uint32_t max_nnz,
                                   struct slc_fiber_view *fibers,
                                   struct slc_error *err);
    /*
     * Describes the tile as a block with one tile, with the number and file offset of its block,
     * for a device that decodes by itself. The compressed section is already expanded, because a
     * device uses one warp per compressed section and a tile has only one section. The description
     * and its data are valid as long as the view and do not affect `next`. NULL if the view does
     * not deliver all encoded nonzeros. Errors: SLC_ERR_DAMAGED.
     */
    enum slc_status (*describe)(struct slc_tile_view *tile,
                                struct slc_encoded_block *described,
                                struct slc_error *err);
    void *decoder;
};

#endif
