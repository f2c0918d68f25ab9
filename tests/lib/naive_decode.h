/* A decoder of described blocks (base/encoded.h), written for readability: run by run, bit by bit,
 * from the description and the bytes of the block alone. It is the reference for the decoders of
 * storage/ and the kernels of gpu/. It never accesses memory outside the block or its expanded
 * bytes, for any contents. */
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

/* Decompresses LZ4 of a tile into its place in the expanded bytes of the block; false on
 * failure. */
bool slc_naive_expand(const struct slc_encoded_block *block,
                      const struct slc_encoded_tile *tile,
                      uint8_t *expanded);

/* Decodes run `run` of a tile whose block has been expanded. Returns false if the bytes contradict
 * the description: keys beyond the last key, coordinates outside the tile, invalid values, or
 * exceptions of a group whose positions do not ascend. */
bool slc_naive_decode(const struct slc_encoded_layout *layout,
                      const struct slc_encoded_block *block,
                      const struct slc_encoded_tile *tile,
                      const uint8_t *expanded,
                      uint32_t run,
                      struct slc_naive_run *decoded);

#endif
