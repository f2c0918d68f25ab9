/*
 * Held-out nonzeros of a tensor, selected by their coordinates. A stream with a selection
 * (slc_stream_hold_out) delivers them with the value 0.
 *
 * The selection hashes a seed and the coordinates in the order of the store. It therefore does not
 * depend on layout, blocks, threads or budget, and needs no memory.
 */
#ifndef SLC_ENGINE_HOLDOUT_H
#define SLC_ENGINE_HOLDOUT_H

#include "base/block.h"

#include <stdint.h>

enum { SLC_HOLDOUT_CHUNK_NNZ = 1024 };

/* A selection. */
struct slc_holdout {
    uint64_t threshold; /* nonzeros whose hash is below the threshold are held out */
    uint64_t start;     /* initial hash value, from the seed */
};

/* Returns the selection of a fraction above 0 and at most 0.5. */
struct slc_holdout slc_holdout_choose(double fraction, uint64_t seed);

/*
 * Sets values of held-out nonzeros to 0. Copies the values to `buffer` (SLC_HOLDOUT_CHUNK_NNZ
 * numbers of the tile's type and 64 bytes), to which chunk->values then points, because the decoder
 * may reuse its own buffer.
 */
void slc_holdout_mask(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk,
                      void *buffer);

/* Computes the hashes of the nonzeros of a chunk. */
void slc_holdout_hash(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      uint64_t hashes[SLC_HOLDOUT_CHUNK_NNZ]);

#endif
