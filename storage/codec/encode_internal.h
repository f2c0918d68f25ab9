/* State and functions of the encoder, private to storage/codec/. */
#ifndef SLC_STORAGE_ENCODE_INTERNAL_H
#define SLC_STORAGE_ENCODE_INTERNAL_H

#include "base/key_moves.h"
#include "base/memory/memory.h"
#include "storage/codec/bitpack.h"
#include "storage/codec/codec.h"
#include "storage/codec/encode_ops.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Slots of the hash table of distinct values: twice the largest number of values of a tile. */
    SLC_DISTINCT_SLOTS = 2 * SLC_TILE_NNZ
};

struct slc_encoder {
    struct slc_key_layout keys;
    enum slc_codec codec;
    struct slc_buffer memory;
    /* Tables that convert keys to the keys of content sums; empty if both keys are equal. */
    struct slc_key_moves content;

    uint8_t *out;     /* slc_encoder_bound bytes and a word of slack */
    uint64_t *gap_lo; /* gap of each nonzero; gap_hi is NULL for keys of at most 64 bits */
    uint64_t *gap_hi;
    /* Byte planes before compression; also scratch for integers and for sorting distinct values. */
    uint8_t *planes;
    uint64_t *distinct;
    uint32_t *slots; /* hash table; a slot has 1 + index into `distinct`, or 0 if empty */
    void *lz4_state;

    /* State of the current tile. */
    struct slc_value_survey survey;
    /* If all values are integers: the smallest value, and the largest minus the smallest value. */
    int64_t integer_low;
    uint64_t integer_span;
    struct slc_patched_plan gaps, integers;
};

/* Each function writes a tile's data to encoder->out and returns its size, a multiple of 8;
 * *index_bytes is the number of bytes of coordinates in it. Call these functions after computing
 * the gaps and the survey of the tile. */
uint32_t slc_packed_encode(struct slc_encoder *encoder,
                           const struct slc_tile_source *source,
                           uint32_t *index_bytes);
uint32_t slc_lz4_encode(struct slc_encoder *encoder,
                        const struct slc_tile_source *source,
                        uint32_t *index_bytes);
uint32_t slc_blco_encode(struct slc_encoder *encoder,
                         const struct slc_tile_source *source,
                         uint32_t *index_bytes);

/* Chooses a value form and writes the values section; returns the padded end. */
uint8_t *slc_values_encode(struct slc_encoder *encoder,
                           const struct slc_tile_source *source,
                           uint8_t *section,
                           uint8_t *form);

/* Writes byte planes 0 .. bytes-1 of 64-bit words, or of values converted to f32 or f64; returns
 * the end of the planes. */
uint8_t *slc_planes_of_words(const uint64_t *words, uint32_t count, unsigned bytes, uint8_t *out);
uint8_t *slc_planes_of_values(const double *values, uint32_t count, unsigned bytes, uint8_t *out);

/* Compresses `count` bytes with LZ4 into at most `capacity` bytes; returns 0 if they do not fit.
 * Produces the same bytes on every machine. */
uint32_t slc_lz4_compress(struct slc_encoder *encoder,
                          const uint8_t *bytes,
                          uint64_t count,
                          uint8_t *out,
                          uint64_t capacity);

/* Appends zeros at `end` until the number of bytes from `start` is a multiple of 8; returns the
 * padded end. */
static inline uint8_t *slc_pad8(const uint8_t *start, uint8_t *end)
{
    while ((end - start) % 8 != 0) {
        *end++ = 0;
    }
    return end;
}

#endif
