/*
 * A decoder of described blocks (base/encoded.h), written to be read: run by run, bit by bit, from
 * the description and the block's bytes alone. What storage/ decodes and what kernels of gpu/ do is
 * compared with it. It never leaves the block or its expanded bytes, whatever these hold.
 */
#ifndef SLC_NAIVE_DECODE_H
#define SLC_NAIVE_DECODE_H

#include "base/encoded.h"

#include <stdbool.h>
#include <stdint.h>

/* The nonzeros of a run: coords[n][i] and values[i], i below nnz. */
struct slc_naive_run {
    uint32_t nnz;
    uint64_t coords[SLC_MAX_ORDER][SLC_RUN_NNZ];
    double values[SLC_RUN_NNZ];
};

static inline uint32_t slc_naive_runs(const struct slc_encoded_tile *tile)
{
    return (tile->nnz + SLC_RUN_NNZ - 1) / SLC_RUN_NNZ;
}

/* Undoes LZ4 of a tile into its place in the block's expanded bytes; false where that fails. */
bool slc_naive_expand(const struct slc_encoded_block *block,
                      const struct slc_encoded_tile *tile,
                      uint8_t *expanded);

/*
 * Decodes run `run` of a tile whose block has been expanded. False where its bytes contradict the
 * description: keys beyond the last one, coordinates outside of the tile, values that are not
 * allowed, exceptions of a group in places that do not ascend.
 */
bool slc_naive_decode(const struct slc_encoded_layout *layout,
                      const struct slc_encoded_block *block,
                      const struct slc_encoded_tile *tile,
                      const uint8_t *expanded,
                      uint32_t run,
                      struct slc_naive_run *decoded);

#endif
