/* Codecs: encodings of the nonzeros of one tile (docs/FORMAT.md, sections "Tile data"). An encoder
 * and a decoder belong to one thread each; their scratch is bounded by the tile size and allocated
 * at creation. The same nonzeros encode to the same bytes on every machine. */
#ifndef SLC_STORAGE_CODEC_H
#define SLC_STORAGE_CODEC_H

#include "base/error/error.h"
#include "base/key.h"
#include "base/matrix.h"
#include "storage/codec/value_stats.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_codec { SLC_CODEC_PACKED = 1, SLC_CODEC_LZ4 = 2, SLC_CODEC_BLCO = 3 };

const char *slc_codec_name(enum slc_codec codec); /* "packed", "lz4", "blco"; "?" if unknown */
bool slc_codec_parse(const char *name, enum slc_codec *codec);

/* Nonzeros of one tile, strictly ascending by key. */
struct slc_tile_source {
    uint32_t nnz;           /* 1 .. SLC_TILE_NNZ */
    const uint64_t *key_lo; /* bits 0..63 */
    const uint64_t *key_hi; /* bits 64..127, or NULL if all equal `upper` */
    const double *values;   /* finite; not -0 */
    uint64_t upper;
};

/* One encoded tile; the encoder owns the data, which is valid until its next call. */
struct slc_tile_blob {
    uint32_t nnz;
    uint32_t data_bytes; /* multiple of 8 */
    const void *data;
    uint64_t first_lo, first_hi, last_lo, last_hi;
    uint64_t min[SLC_MAX_ORDER];
    /* max - min is below 2^32 - 1 in every mode, as the caller must ensure */
    uint64_t max[SLC_MAX_ORDER];
    double sum_of_squares; /* one sum, added in key order, without fused operations */
    uint64_t content_sum;  /* sum of slc_content_term over the nonzeros */
    uint32_t fibers;       /* number of fiber runs; nnz if the keys have no fiber run */
    uint32_t index_bytes;  /* bytes of coordinates, contained in data_bytes; for statistics */
    bool all_f32;          /* every value is exactly representable as a float */
    struct slc_value_stats stats;
};

struct slc_encoder;

/* Creates an encoder. Scratch: about 3 MiB for 64-bit keys. Ownership: release with
 * slc_encoder_destroy, which accepts NULL. */
enum slc_status slc_encoder_create(const struct slc_key_layout *layout,
                                   enum slc_codec codec,
                                   struct slc_encoder **encoder,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_encoder_destroy(struct slc_encoder *encoder);
/* Makes content sums of later tiles use keys of `content`, which must have the same mode sizes; the
 * keys of the tiles are converted. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_encoder_sum_over(struct slc_encoder *encoder,
                                     const struct slc_key_layout *content,
                                     struct slc_error *err) SLC_NODISCARD;
/* Returns an upper bound on the memory of an encoder in bytes, for memory plans. */
uint64_t slc_encoder_memory_bytes(const struct slc_key_layout *layout, enum slc_codec codec);

/* Returns the number of bases of a tile of codec `packed`. */
static inline uint32_t slc_bases_of(uint32_t nnz)
{
    return (nnz + SLC_BASE_NNZ - 1) / SLC_BASE_NNZ;
}

/* Returns an upper bound on data_bytes of a tile of `nnz` nonzeros. */
uint64_t slc_encoder_bound(const struct slc_key_layout *layout, enum slc_codec codec, uint32_t nnz);

/* Encodes a tile. Cost: passes for sums, ranges, measuring and writing; together 9 to 25 ns per
 * nonzero. Errors: none if the source meets the requirements above, which are asserted; never
 * SLC_ERR_MEMORY. */
enum slc_status slc_tile_encode(struct slc_encoder *encoder,
                                const struct slc_tile_source *source,
                                struct slc_tile_blob *blob,
                                struct slc_error *err) SLC_NODISCARD;

/* Restricts encoding in this process to instruction set `name` ("portable", "avx512"); NULL selects
 * the best instruction set of this machine. Returns false if `name` is unknown or not available.
 * For tests and benchmarks. */
bool slc_encoder_force(const char *name);

#endif
