#include "engine/stream/holdout.h"

#include <math.h>
#include <string.h>

static uint64_t mix_hash(uint64_t hash)
{
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 33;
    hash *= UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

/* Returns an odd, random-looking number for the mode: a multiple of the fractional part of the
 * golden ratio, passed through the finalizer above. */
static uint64_t mode_multiplier(unsigned mode)
{
    return mix_hash(UINT64_C(0x9e3779b97f4a7c15) * (mode + 1)) | 1;
}

struct slc_holdout slc_holdout_choose(double fraction, uint64_t seed)
{
    return (struct slc_holdout){.threshold = (uint64_t)ldexp(fraction, 64),
                                .start = mix_hash(seed + UINT64_C(0x9e3779b97f4a7c15))};
}

void slc_holdout_hash(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      uint64_t hashes[SLC_HOLDOUT_CHUNK_NNZ])
{
    uint64_t start = holdout->start;

    for (unsigned n = 0; n < tile->order; n++) {
        start += tile->corner[n] * mode_multiplier(n);
    }
    for (uint32_t i = 0; i < chunk->nnz; i++) {
        hashes[i] = start;
    }
    for (unsigned n = 0; n < tile->order; n++) {
        const uint64_t by = mode_multiplier(n);
        const uint32_t *offset = chunk->offset[n];

        for (uint32_t i = 0; i < chunk->nnz; i++) {
            hashes[i] += offset[i] * by;
        }
    }
    for (uint32_t i = 0; i < chunk->nnz; i++) {
        hashes[i] = mix_hash(hashes[i]);
    }
}

void slc_holdout_mask(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk,
                      void *buffer)
{
    uint64_t hashes[SLC_HOLDOUT_CHUNK_NNZ];

    slc_holdout_hash(holdout, tile, chunk, hashes);
    memcpy(buffer, chunk->values, chunk->nnz * (size_t)slc_value_bytes(tile->value_type));
    if (tile->value_type == SLC_F64) {
        double *values = buffer;

        for (uint32_t i = 0; i < chunk->nnz; i++) {
            values[i] = hashes[i] < holdout->threshold ? 0.0 : values[i];
        }
    } else {
        float *values = buffer;

        for (uint32_t i = 0; i < chunk->nnz; i++) {
            values[i] = hashes[i] < holdout->threshold ? 0.0F : values[i];
        }
    }
    chunk->values = buffer;
}

void slc_holdout_drop(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk,
                      uint32_t *const *offset,
                      void *values)
{
    uint64_t hashes[SLC_HOLDOUT_CHUNK_NNZ];
    uint32_t kept = 0;

    slc_holdout_hash(holdout, tile, chunk, hashes);
    for (uint32_t i = 0; i < chunk->nnz; i++) {
        for (unsigned n = 0; n < tile->order; n++) {
            offset[n][kept] = chunk->offset[n][i];
        }
        if (tile->value_type == SLC_F64) {
            ((double *)values)[kept] = ((const double *)chunk->values)[i];
        } else {
            ((float *)values)[kept] = ((const float *)chunk->values)[i];
        }
        kept += hashes[i] >= holdout->threshold;
    }
    chunk->nnz = kept;
    for (unsigned n = 0; n < tile->order; n++) {
        chunk->offset[n] = offset[n];
    }
    chunk->values = values;
}
