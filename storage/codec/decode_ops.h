/* Inner loops of decoding, one table per instruction set. Each function processes a group or a
 * chunk, so the cost of the indirect call per nonzero is negligible. All tables produce the same
 * bits.
 * Arrays are decoder scratch with slack: functions may store up to 16 elements past `count` and
 * load 64 bytes past the end of any input. */
#ifndef SLC_STORAGE_DECODE_OPS_H
#define SLC_STORAGE_DECODE_OPS_H

#include "base/encoded.h"
#include "base/memory/limits.h"
#include "storage/codec/bitpack.h"

#include <stdbool.h>
#include <stdint.h>

/* Plans that extract the fields of several modes from the 64-bit words of keys. A plan has a mask
 * of the bits of each mode, and a bit matrix for all modes together. A table of loops uses the
 * masks (with pext or shifts) or the matrix. The bit matrix treats a key as a vector of 64 bits
 * over GF(2). Each used row of the matrix has a single 1 bit, which selects a bit of the key; the
 * product is a 64-bit word in which each field starts at a byte boundary. The matrix is divided
 * into 8 x 8 blocks: an output byte is the sum, over a few key bytes (about one per mode), of the
 * product of the key byte and a block. GF2P8AFFINEQB computes 64 of these products. */

/* Plan that gathers the bits of a 64-bit word that `mask` selects. Without a fast pext, the bits
 * move right in up to six steps, by 2^k in step k (base/compress.h), after an initial shift by the
 * number of zeros below the mask. */
struct slc_gather {
    uint64_t mask;
    unsigned bits; /* number of bits in the mask */
    /* number of zeros below the mask; `picked` and `move` refer to the shifted word */
    unsigned shift;
    uint64_t picked;                   /* the shifted mask */
    uint64_t move[SLC_COMPRESS_STEPS]; /* bits that move right by 2^k in step k */
};

void slc_gather_init(struct slc_gather *gather, uint64_t mask);

/* Computes up to eight output bytes of every key as sums of `terms` products. */
struct slc_bit_matrix {
    unsigned terms;       /* largest number of key bytes that contribute to an output byte */
    unsigned bytes;       /* number of output bytes that fields use */
    uint8_t source[8][8]; /* [term][output byte]: the contributing key byte */
    uint64_t block[8][8]; /* [term][output byte]: the block, in the bit order of GF2P8AFFINEQB */
};

struct slc_field {
    const struct slc_gather *gather; /* borrowed; 1 to 32 bits */
    uint32_t *offsets;               /* borrowed; receives the offsets of this field */
    uint32_t base;                   /* value of the field at offset 0 */
    unsigned mode;
    unsigned matrix, byte; /* the field starts at this output byte of this matrix */
};

struct slc_fields {
    unsigned count;
    unsigned matrices;
    struct slc_field field[SLC_MAX_ORDER];
    /* A field needs at most four bytes, so a matrix has at least two fields before it is full. */
    struct slc_bit_matrix matrix[SLC_MAX_ORDER / 2];
};

void slc_fields_clear(struct slc_fields *fields);
/* Adds a field; the gather plan and the offsets must outlive `fields`. */
void slc_fields_add(struct slc_fields *fields,
                    const struct slc_gather *gather,
                    uint32_t base,
                    unsigned mode,
                    uint32_t *offsets);

/* Largest number of groups in a chunk of the decoder. */
enum { SLC_CHUNK_GROUPS = 16 };

/* Input and output of byte_runs, which finds fiber runs of few key bits from gaps. */
struct slc_byte_runs {
    /* Input: `first` as in small_keys; `bits`, the number of low key bits that vary in a run, 1 to
     * 8; `mask`, the part of these bits that is the field of the run mode; `base`, the base of this
     * field. */
    uint32_t first;
    unsigned bits;
    uint8_t mask, base;
    /* Output: offsets, positions at which runs start (`begin`), and the keys at these positions
     * without their low `bits` bits (`heads`). */
    uint32_t *offsets, *begin, *heads;
    uint32_t runs;
    uint32_t ends[SLC_CHUNK_GROUPS]; /* last key of each group */
    uint32_t largest;                /* largest offset, modulo 2^8 */
};

struct slc_decode_ops {
    const char *name;

    slc_unpack_fn *unpack;

    /* Computes keys[i] = first + i + gaps[0] + .. + gaps[i], modulo 2^64; `keys` may be `gaps`. */
    void (*sum)(const uint64_t *gaps, uint32_t count, uint64_t first, uint64_t *keys);

    /* Gathers the field of every key; stores its low 32 bits. */
    void (*gather)(const struct slc_gather *gather,
                   const uint64_t *keys,
                   uint32_t count,
                   uint32_t *fields);
    /* Gathers the whole field of every key. */
    void (*gather_wide)(const struct slc_gather *gather,
                        const uint64_t *keys,
                        uint32_t count,
                        uint64_t *fields);

    /* For each field of the plan: extracts the field from every key, subtracts the base of the
     * field modulo 2^32, and stores the differences in field->offsets and the largest difference in
     * largest[]. Needs count >= 1; may change keys past `count`. */
    void (*fields)(const struct slc_fields *plan,
                   uint64_t *keys,
                   uint32_t count,
                   uint32_t largest[SLC_MAX_ORDER]);

    /* Finds the starts of runs of keys that agree in bits `shift` and above: begin[0] = 0, then
     * every i whose key differs from the previous key in these bits. Returns the number of runs;
     * `begin` holds `count` elements. Needs count >= 1, shift < 64. */
    uint32_t (*runs)(const uint64_t *keys, uint32_t count, unsigned shift, uint32_t *begin);

    /* Subtracts `base` modulo 2^32 from every element and returns the largest result. */
    uint32_t (*subtract_base)(uint32_t *fields, uint32_t count, uint32_t base);

    /* Unpacks and sums `groups` whole groups of gaps, starting at group `group`, for an all_short
     * sequence, without storing the gaps. Returns false if slc_patched_group would find a
     * contradiction; the contents of `keys` are then undefined. */
    bool (*keys)(const struct slc_patched_view *gaps,
                 uint32_t group,
                 uint32_t groups,
                 uint64_t first,
                 uint64_t *keys);

    /* Stores the values of whole groups plus `low` as f64. Returns false like `keys`, and also if a
     * sum is 0, unless `zeros`. Needs an all_short sequence with bits_max at most 52, and low an
     * integer in -2^53 .. 2^52, so that every step is exact. */
    bool (*integers)(const struct slc_patched_view *above,
                     uint32_t group,
                     uint32_t groups,
                     double low,
                     bool zeros,
                     double *values);

    /* Sets values[i] to the f64 of `dictionary` that the i-th index of `width` bits (up to 16) at
     * `packed` selects. Returns false if an index is not below `entries`, which is at least 1. */
    bool (*lookup)(const uint8_t *packed,
                   unsigned width,
                   uint32_t count,
                   const uint8_t *dictionary,
                   uint32_t entries,
                   double *values);

    /* Copies little-endian f64; returns true if all are finite and none is 0, or only finite if
     * `zeros`. */
    bool (*plain)(const uint8_t *bytes, uint32_t count, bool zeros, double *values);

    /* Decodes a field of codec blco: offset = ((index >> shift) & mask) + add modulo 2^64. Stores
     * the low 32 bits and returns the largest 64-bit offset. `indices` points into the block and
     * may be unaligned. */
    uint64_t (*field)(const uint8_t *indices,
                      uint32_t count,
                      unsigned shift,
                      uint64_t mask,
                      uint64_t add,
                      uint32_t *offsets);

    /* Variants of keys, runs and fields for keys whose upper half does not vary: input and output
     * are modulo 2^32, and masks of plans are below 2^32. All variants are NULL in tables in which
     * they would not be faster. small_keys also returns false if the gaps of a group could add up
     * to 2^32 or more; small_low is `fields` for a single field that starts at bit 0. */
    bool (*small_keys)(const struct slc_patched_view *gaps,
                       uint32_t group,
                       uint32_t groups,
                       uint32_t first,
                       uint32_t *keys);
    uint32_t (*small_runs)(uint32_t *keys, uint32_t count, unsigned shift, uint32_t *begin);
    void (*small_fields)(const struct slc_fields *plan,
                         uint32_t *keys,
                         uint32_t count,
                         uint32_t largest[SLC_MAX_ORDER]);
    uint32_t (*small_low)(
        const uint32_t *keys, uint32_t count, uint32_t mask, uint32_t base, uint32_t *offsets);
    /* Computes the results of small_keys, small_runs and small_low for 1 to SLC_CHUNK_GROUPS whole
     * groups. Returns false like small_keys, and also if gaps that are not exceptions have more
     * than runs->bits bits; the three functions must then be used instead. */
    bool (*byte_runs)(const struct slc_patched_view *gaps,
                      uint32_t group,
                      uint32_t groups,
                      struct slc_byte_runs *runs);
};

/* Returns the table in use. Threads: any. */
const struct slc_decode_ops *slc_decode_ops(void);

/* Each function returns its table, or NULL if the machine or the build lacks the instructions. */
const struct slc_decode_ops *slc_decode_ops_portable(void);
const struct slc_decode_ops *slc_decode_ops_avx2(void);
const struct slc_decode_ops *slc_decode_ops_avx512(void);
const struct slc_decode_ops *slc_decode_ops_neon(void);

#endif
