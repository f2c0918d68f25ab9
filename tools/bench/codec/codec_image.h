/*
 * A sample encoded by one codec, as the blocks of a block file in memory: what a stream's cache
 * holds. The file itself is written to a folder for temporary files and removed at once.
 */
#ifndef SLC_TOOLS_BENCH_CODEC_IMAGE_H
#define SLC_TOOLS_BENCH_CODEC_IMAGE_H

#include "tools/bench/codec/codec_sample.h"

struct bench_image {
    enum slc_codec codec;
    struct slc_encoder *encoder;
    struct slc_decoder *decoder;
    struct slc_reader *reader;
    struct slc_buffer blocks;
    uint64_t index_bytes; /* of all tiles, what the coordinates take */
    uint64_t data_bytes;  /* of all tiles: coordinates and values */
};

/*
 * Encodes the sample. `folder` has to exist.
 * Owns: bench_image_destroy, which takes an all-zero struct, also after an error.
 * Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY.
 */
enum slc_status bench_image_make(const struct bench_sample *sample,
                                 enum slc_codec codec,
                                 const char *folder,
                                 struct bench_image *image,
                                 struct slc_error *err) SLC_NODISCARD;
void bench_image_destroy(struct bench_image *image);

/* Encodes every tile of the sample once more and forgets it: what is timed. */
enum slc_status bench_image_encode(struct bench_image *image,
                                   const struct bench_sample *sample,
                                   struct slc_error *err) SLC_NODISCARD;

/* Decodes every tile, chunk by chunk as kernels ask for them. */
enum slc_status bench_image_decode(struct bench_image *image, struct slc_error *err) SLC_NODISCARD;

#endif
