/*
 * A sample of a store's tiles in memory, decoded to what an encoder takes: the common input of all
 * codecs.
 */
#ifndef SLC_TOOLS_BENCH_CODEC_SAMPLE_H
#define SLC_TOOLS_BENCH_CODEC_SAMPLE_H

#include "base/memory/memory.h"
#include "storage/codec/codec.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct bench_sample {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_key_layout keys;
    uint64_t nnz;
    uint64_t tile_count;
    struct slc_tile_source *tiles; /* ascending; they point into the buffers */
    struct slc_buffer key_lo, key_hi, values;
};

/*
 * Reads the store and keeps about `nnz_max` nonzeros in whole tiles spread over the store, at least
 * one tile where it has any. Memory: 24 bytes a nonzero kept, and a block.
 * Owns: bench_sample_destroy, which takes an all-zero struct, also after an error.
 * Errors: SLC_ERR_IO, SLC_ERR_DAMAGED, SLC_ERR_MEMORY.
 */
enum slc_status bench_sample_load(const struct slc_store *store,
                                  uint64_t nnz_max,
                                  struct bench_sample *sample,
                                  struct slc_error *err) SLC_NODISCARD;
void bench_sample_destroy(struct bench_sample *sample);

#endif
