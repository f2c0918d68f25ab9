/* A sample of the tiles of a store, in memory. bench_sample has the decoded tiles, which are the
 * input of the encoders of all codecs. bench_image has the sample encoded with one codec, as blocks
 * in memory, like the cached blocks of a tile stream. The blocks are read from a block file in a
 * temporary folder, which is removed immediately. */
#ifndef SLC_TOOLS_BENCH_CODEC_IMAGE_H
#define SLC_TOOLS_BENCH_CODEC_IMAGE_H

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
    struct slc_tile_source *tiles; /* by ascending key; they point into the buffers below */
    struct slc_buffer key_lo, key_hi, values;
};

/* Reads the store and keeps about `nnz_max` nonzeros: whole tiles from all over the store, at least
 * one tile unless the store is empty. Memory: 24 bytes per kept nonzero, and one block. The caller
 * must call bench_sample_destroy, which accepts an all-zero struct, also after an error. Errors:
 * SLC_ERR_IO, SLC_ERR_DAMAGED, SLC_ERR_MEMORY. */
enum slc_status bench_sample_load(const struct slc_store *store,
                                  uint64_t nnz_max,
                                  struct bench_sample *sample,
                                  struct slc_error *err) SLC_NODISCARD;
void bench_sample_destroy(struct bench_sample *sample);

struct bench_image {
    enum slc_codec codec;
    struct slc_encoder *encoder;
    struct slc_decoder *decoder;
    struct slc_reader *reader;
    struct slc_buffer blocks;
    uint64_t index_bytes; /* bytes of the encoded coordinates of all tiles */
    uint64_t data_bytes;  /* bytes of the encoded coordinates and values of all tiles */
};

/* Encodes the sample by way of a block file in `folder`, which must exist.
 * The caller must call bench_image_destroy, which accepts an all-zero struct, also after an error.
 * Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status bench_image_make(const struct bench_sample *sample,
                                 enum slc_codec codec,
                                 const char *folder,
                                 struct bench_image *image,
                                 struct slc_error *err) SLC_NODISCARD;
void bench_image_destroy(struct bench_image *image);

/* Encodes every tile of the sample again and discards the result. This call is timed. */
enum slc_status bench_image_encode(struct bench_image *image,
                                   const struct bench_sample *sample,
                                   struct slc_error *err) SLC_NODISCARD;

/* Decodes every tile in chunks of the size that kernels request. This call is timed. */
enum slc_status bench_image_decode(struct bench_image *image, struct slc_error *err) SLC_NODISCARD;

#endif
