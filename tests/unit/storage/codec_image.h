/* Shared by the tests of codecs: random tiles, and a block image of exactly its payload bytes with
 * one tile, so that a sanitizer detects every load past the slack. */
#ifndef SLC_TESTS_CODEC_IMAGE_H
#define SLC_TESTS_CODEC_IMAGE_H

#include "base/key.h"
#include "base/memory/limits.h"
#include "storage/block/reader.h"
#include "storage/codec/block_layout.h"
#include "storage/codec/codec.h"

#include <stdint.h>

/* A small stream of random numbers on top of base/random.h. */
struct random_stream {
    uint64_t seed, stream, index;
};

uint64_t draw(struct random_stream *random);
/* Uniform in [0, bound). */
uint64_t draw_below(struct random_stream *random, uint64_t bound);

enum value_kind {
    VALUES_CONSTANT,
    VALUES_INTEGER,
    VALUES_DICTIONARY,
    VALUES_F32,
    VALUES_F64,
    VALUES_F32_SMOOTH,
    VALUES_F64_SMOOTH,
    VALUE_KINDS
};

/* The nonzeros of a tile, and their tensor. */
struct tile_case {
    struct slc_layout_info info;
    uint32_t nnz;
    uint64_t *key_lo, *key_hi;
    double *values;
};

/* Up to `nnz` nonzeros whose keys vary only in the low `varying` bits; fewer if there are not
 * enough such keys. Modes have at most 31 bits, so that any tile is valid. */
void tile_case_make(struct tile_case *tile,
                    struct random_stream *random,
                    unsigned order,
                    const uint64_t *dims,
                    unsigned varying,
                    uint32_t nnz,
                    enum value_kind kind);
/* Does the same as tile_case_make with the given ascending keys. */
void tile_case_from_keys(struct tile_case *tile,
                         struct random_stream *random,
                         unsigned order,
                         const uint64_t *dims,
                         const slc_u128 *keys,
                         uint32_t nnz,
                         enum value_kind kind);
/* `nnz` nonzeros, at most 20,000, in runs of `bits` key bits, 1 to 8, which AVX-512 decodes without
 * keys. */
void tile_case_make_runs(struct tile_case *tile,
                         struct random_stream *random,
                         unsigned bits,
                         uint32_t nnz,
                         enum value_kind kind);
void tile_case_free(struct tile_case *tile);

struct block_image {
    uint8_t *bytes;
    struct slc_block_view view;
    struct slc_tile_blob blob; /* refers to `bytes` */
};

void block_image_make(struct block_image *image,
                      const struct tile_case *tile,
                      enum slc_codec codec);
void block_image_free(struct block_image *image);

/* Decodes the whole tile as `type`, checks the guarantees of every chunk (offsets within the
 * extent, valid values) and, unless `tile` is NULL, that it equals this tile. */
enum slc_status block_image_decode(const struct block_image *image,
                                   const struct slc_layout_info *info,
                                   enum slc_value_type type,
                                   uint32_t chunk_nnz,
                                   const struct tile_case *tile,
                                   struct slc_error *err);
/* The same with a decoder that may have decoded other tiles of tensors with this layout. */
enum slc_status block_image_decode_by(struct slc_decoder *decoder,
                                      const struct block_image *image,
                                      const struct slc_layout_info *info,
                                      uint32_t chunk_nnz,
                                      const struct tile_case *tile,
                                      struct slc_error *err);

#endif
