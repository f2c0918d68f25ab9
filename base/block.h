/* Decoded tiles: the interface between storage/ and kernels.
 *
 * A tile is up to SLC_TILE_NNZ consecutive nonzeros of a layout with their smallest coordinates
 * (the corner) and extents. All tiles except the last tile of a layout have the same number of
 * nonzeros. Tiles therefore depend only on the tensor and the layout, not on block size, codec,
 * threads or budget. storage/ fills in a tile view for a tile of an encoded block in memory; cpu/
 * requests decoded chunks that fit into the first-level cache. */
#ifndef SLC_BASE_BLOCK_H
#define SLC_BASE_BLOCK_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Consecutive decoded nonzeros. The decoder owns the arrays, which are valid until its next call.
 * Kernels may load up to 64 bytes past the end of each array, but must not use these bytes. */
struct slc_chunk_view {
    uint32_t nnz;
    const uint32_t *offset[SLC_MAX_ORDER]; /* coordinate minus the tile's corner, per mode */
    const void *values;                    /* f64 or f32, as value_type of the tile view states */
};

/* A chunk that is divided into runs. The nonzeros of a run agree in all modes except `mode`, so a
 * run is a part of a fiber of `mode`. A fiber may continue in the next chunk. */
struct slc_fiber_view {
    uint32_t nnz;
    uint32_t runs;         /* number of runs; at least 1 if nnz > 0 */
    unsigned mode;         /* mode of the fibers */
    const uint32_t *begin; /* runs + 1 numbers: the first nonzero of each run, then nnz */
    /* one per nonzero for `mode`, one per run for other modes */
    const uint32_t *offset[SLC_MAX_ORDER];
    const void *values; /* one value per nonzero */
};

struct slc_encoded_block; /* base/encoded.h */

struct slc_tile_view {
    uint64_t ordinal; /* number of the tile within its layout, from 0 */
    uint64_t block;   /* number of the tile's block, for messages */
    uint32_t nnz;
    unsigned order;
    enum slc_value_type
        value_type; /* type of decoded values, which may differ from the type in the file */
    uint64_t corner[SLC_MAX_ORDER]; /* smallest coordinate per mode */
    uint32_t extent[SLC_MAX_ORDER]; /* largest minus smallest coordinate per mode */
    /* In a layout sorted by a mode: number of the tile's partition, from 0. The rows of a partition
     * are in no other partition. The exception is a row that is split over several partitions:
     * these partitions contain only this row, and all of them except the first are `continued`. In
     * other layouts `partition` is 0 and `continued` is false. */
    uint64_t partition;
    bool continued;

    /* Decodes the next nonzeros of the tile, at most `max_nnz` (a multiple of SLC_GROUP_NNZ), in
     * key order. chunk->nnz is 0 after the last nonzero. Only storage/ sets `next`, `next_fibers`,
     * `describe` and `decoder`. Errors: SLC_ERR_DAMAGED if the encoded bytes contradict the entry
     * of the tile in the directory of its block. */
    enum slc_status (*next)(struct slc_tile_view *tile,
                            uint32_t max_nnz,
                            struct slc_chunk_view *chunk,
                            struct slc_error *err);
    /* Decodes nonzeros like `next` and cuts them into runs. `next_fibers` is NULL if the nonzeros
     * of the tile are not ordered in runs. Calls of `next` and `next_fibers` may alternate within a
     * tile. */
    enum slc_status (*next_fibers)(struct slc_tile_view *tile,
                                   uint32_t max_nnz,
                                   struct slc_fiber_view *fibers,
                                   struct slc_error *err);
    /* Describes the tile as an encoded block with one tile, for a device that decodes blocks
     * itself. The number and file offset are those of the block that contains the tile. The
     * compressed section of the tile is already expanded, because a device would expand it with
     * only one warp, which is slow. The description and its data are valid as long as the view and
     * do not affect `next`. `describe` is NULL if the view does not deliver all encoded nonzeros.
     * Errors: SLC_ERR_DAMAGED. */
    enum slc_status (*describe)(struct slc_tile_view *tile,
                                struct slc_encoded_block *described,
                                struct slc_error *err);
    void *decoder;
};

/* Returns the value of nonzero `i` of a chunk. */
static inline double
slc_chunk_value(const struct slc_tile_view *tile, const struct slc_chunk_view *chunk, uint32_t i)
{
    return tile->value_type == SLC_F64 ? ((const double *)chunk->values)[i]
                                       : (double)((const float *)chunk->values)[i];
}

#endif
