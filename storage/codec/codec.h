/*
 * Codecs: how the nonzeros of one tile are laid out in bytes. docs/FORMAT.md, sections "Tile data".
 *
 * An encoder and a decoder are per-thread objects whose scratch is bounded by the tile size and
 * taken at creation. Encoding the same nonzeros gives the same bytes on every machine.
 */
#ifndef SLC_STORAGE_CODEC_H
#define SLC_STORAGE_CODEC_H

#include "base/error/error.h"
#include "base/key.h"
#include "base/matrix.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_codec { SLC_CODEC_PACKED = 1, SLC_CODEC_LZ4 = 2, SLC_CODEC_BLCO = 3 };

const char *slc_codec_name(enum slc_codec codec); /* "packed", "lz4", "blco"; "?" if unknown */
bool slc_codec_parse(const char *name, enum slc_codec *codec);

/* Nonzeros of one tile, strictly ascending by key. */
struct slc_tile_source {
    uint32_t nnz;           /* 1 .. SLC_TILE_NNZ */
    const uint64_t *key_lo; /* bits 0..63 */
    const uint64_t *key_hi; /* bits 64..127, or NULL where all are `upper` */
    const double *values;   /* finite, not zero */
    uint64_t upper;
};

/* One encoded tile, owned by the encoder until its next call unless copied. */
struct slc_tile_blob {
    uint32_t nnz;
    uint32_t data_bytes; /* multiple of 8 */
    const void *data;
    uint64_t first_lo, first_hi, last_lo, last_hi;
    uint64_t min[SLC_MAX_ORDER];
    uint64_t max[SLC_MAX_ORDER]; /* max - min < 2^32 - 1 in every mode: the caller cut for that */
    double sum_of_squares; /* in key order, one accumulator: sum = fma(v, v, sum) is not used */
    uint64_t content_sum;  /* sum of slc_content_term */
    uint32_t fibers;       /* pieces of the fibers of the keys' run; nonzeros where there is none */
    uint32_t index_bytes;  /* of data_bytes, what the coordinates take; for statistics */
    bool all_f32;          /* every value is exactly a float */
    bool all_integer;      /* every value is an integer of magnitude <= 2^53 */
};

struct slc_encoder;

/* Scratch: about 3 MiB for 64-bit keys. Owns: slc_encoder_destroy, which takes NULL. */
enum slc_status slc_encoder_create(const struct slc_key_layout *layout,
                                   enum slc_codec codec,
                                   struct slc_encoder **encoder,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_encoder_destroy(struct slc_encoder *encoder);
/*
 * From here on content sums are over the keys of `content`, of the same lengths, into which those
 * of tiles are turned. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_encoder_sum_over(struct slc_encoder *encoder,
                                     const struct slc_key_layout *content,
                                     struct slc_error *err) SLC_NODISCARD;
/* Bytes of memory an encoder holds at most, for plans. */
uint64_t slc_encoder_memory_bytes(const struct slc_key_layout *layout, enum slc_codec codec);

/* Bases of a tile of codec `packed`. */
static inline uint32_t slc_bases_of(uint32_t nnz)
{
    return (nnz + SLC_BASE_NNZ - 1) / SLC_BASE_NNZ;
}

/* Upper bound of data_bytes for a tile of `nnz` nonzeros, whatever they are. */
uint64_t slc_encoder_bound(const struct slc_key_layout *layout, enum slc_codec codec, uint32_t nnz);

/*
 * Encodes a tile. Cost: passes for sums, ranges, measuring and writing, 9 to 25 ns per nonzero.
 * Errors: none for sources that keep the promises above (asserted), SLC_ERR_MEMORY never.
 */
enum slc_status slc_tile_encode(struct slc_encoder *encoder,
                                const struct slc_tile_source *source,
                                struct slc_tile_blob *blob,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * Restricts the process to instruction set `name` ("portable", "avx512") for encoding; NULL is the
 * best this machine has. False when unknown or not available here. For tests and benchmarks.
 */
bool slc_encoder_force(const char *name);

#endif
