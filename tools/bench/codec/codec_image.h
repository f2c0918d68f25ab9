/*
 * A sample of a store's tiles in memory, in two forms. bench_sample has the tiles decoded to the
 * input of an encoder, which is the same for all codecs. bench_image has the sample encoded with
 * one codec: the blocks of a block file, held in memory as in the cache of a stream. The file
 * itself is written to a temporary folder and removed immediately.
 */
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
    struct slc_tile_source *tiles; /* in ascending order; they have pointers into the buffers */
    struct slc_buffer key_lo, key_hi, values;
};

/*
 * Reads the store and keeps about `nnz_max` nonzeros, in whole tiles spread over the store; at
 * least one tile if the store has any. Memory: 24 bytes per kept nonzero, and one block. Owns:
 * release with bench_sample_destroy, which accepts an all-zero struct, also after an error.
 * Errors: SLC_ERR_IO, SLC_ERR_DAMAGED, SLC_ERR_MEMORY.
 */
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
    uint64_t index_bytes; /* coordinates of all tiles */
    uint64_t data_bytes;  /* coordinates and values of all tiles */
};

/*
 * Encodes the sample. `folder` must exist.
 * Owns: release with bench_image_destroy, which accepts an all-zero struct, also after an error.
 * Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY.
 */
enum slc_status bench_image_make(const struct bench_sample *sample,
                                 enum slc_codec codec,
                                 const char *folder,
                                 struct bench_image *image,
                                 struct slc_error *err) SLC_NODISCARD;
void bench_image_destroy(struct bench_image *image);

/* Encodes every tile of the sample again and discards the result: the timed operation. */
enum slc_status bench_image_encode(struct bench_image *image,
                                   const struct bench_sample *sample,
                                   struct slc_error *err) SLC_NODISCARD;

/* Decodes every tile chunk by chunk, as kernels request them. */

enum slc_status bench_image_decode(struct bench_image *image, struct slc_error *err) SLC_NODISCARD;

#endif
