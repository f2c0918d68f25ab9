/* Selects the held-out nonzeros of a tensor by their coordinates. A stream with a selection
 * (slc_stream_hold_out) delivers held-out nonzeros with the value 0, or not at all.
 *
 * A nonzero is selected by a hash of a seed and its coordinates (as indices of the store). The
 * selection therefore does not depend on layout, blocks, threads or budget, and needs no memory. */
#ifndef SLC_ENGINE_HOLDOUT_H
#define SLC_ENGINE_HOLDOUT_H

#include "base/block.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_HOLDOUT_CHUNK_NNZ = 1024 };

/* A selection of nonzeros. */
struct slc_holdout {
    uint64_t threshold; /* a nonzero is held out if its hash is below the threshold */
    uint64_t start;     /* initial hash value, computed from the seed */
    bool drop;          /* passes leave held-out nonzeros out, instead of delivering them as 0 */
};

/* Returns a selection of the given fraction, which must be above 0 and at most 0.5. */
struct slc_holdout slc_holdout_choose(double fraction, uint64_t seed);

/* Sets the values of held-out nonzeros in a chunk to 0. First copies the values to `buffer` and
 * makes chunk->values point to it, because the decoder may reuse its own buffer. `buffer` has space
 * for SLC_HOLDOUT_CHUNK_NNZ numbers of the tile's type, plus 64 bytes. */
void slc_holdout_mask(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk,
                      void *buffer);

/* Removes the held-out nonzeros from a chunk. Copies the other nonzeros to `offset`, one array per
 * mode, and `values`, and makes the chunk point to these arrays, which have space for
 * SLC_HOLDOUT_CHUNK_NNZ numbers, plus 64 bytes. The chunk may already be in these arrays. */
void slc_holdout_drop(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk,
                      uint32_t *const *offset,
                      void *values);

/* Computes the hashes of the nonzeros of a chunk. */
void slc_holdout_hash(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      uint64_t hashes[SLC_HOLDOUT_CHUNK_NNZ]);

#endif
