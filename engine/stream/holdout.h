/*
 * Which nonzeros of a tensor are held out: some of them, chosen by their coordinates alone, which
 * passes deliver with the value 0 once a stream has been told of the choice (slc_stream_hold_out).
 *
 * The choice is a hash of the coordinates as the store numbers them, and a seed: it depends on
 * neither layout, blocks, threads nor budget, and costs no memory.
 */
#ifndef SLC_ENGINE_HOLDOUT_H
#define SLC_ENGINE_HOLDOUT_H

#include "base/block.h"

#include <stdint.h>

enum { SLC_HOLDOUT_CHUNK_NNZ = 1024 };

/* The choice. */
struct slc_holdout {
    uint64_t threshold; /* of hashes */
    uint64_t start;     /* from the seed */
};

/* `fraction` above 0, at most 0.5. */
struct slc_holdout slc_holdout_choose(double fraction, uint64_t seed);

/*
 * Sets values of held-out nonzeros to 0: in `room` (SLC_HOLDOUT_CHUNK_NNZ numbers of the tile's
 * type and 64 bytes), to which chunk->values then points, for the decoder's may serve again.
 */
void slc_holdout_mask(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk,
                      void *room);

/* Hashes of the nonzeros of a chunk: those below the threshold are held out. */
void slc_holdout_hash(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      uint64_t hashes[SLC_HOLDOUT_CHUNK_NNZ]);

#endif
