/*
 * The inner loops of decoding, one table per instruction set. Each function handles a group or a
 * chunk, so that the call through the table costs nothing per nonzero. All tables give the same
 * bits.
 *
 * Arrays are scratch of the decoder with slack: functions may store up to 16 elements past `count`
 * and load 64 bytes past the end of any input.
 */
#ifndef SLC_STORAGE_DECODE_OPS_H
#define SLC_STORAGE_DECODE_OPS_H

#include "base/encoded.h"
#include "base/memory/limits.h"
#include "storage/codec/bitpack.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Which bits of a key go where: the fields of several modes, picked out of 64-bit words in one go.
 *
 * Each table of decoding loops takes from the plan what suits it: mode by mode the mask of its bits
 * (pext, shifts), or all modes together a matrix of bits. The latter sees a key as 64 bits over
 * GF(2) and a set of fields, each at a byte of its own of another 64-bit word, as the product of
 * the key with a matrix that holds a single one in each row that is used. Cut into 8 x 8 blocks, an
 * output byte is the sum of the products of a few key bytes, as many as its bits come from (about
 * the number of modes), with a block each: what GF2P8AFFINEQB computes for 64 bytes at a time.
 */

/*
 * How to gather the bits of a 64-bit word that `mask` selects. Where there is no fast pext, the
 * bits move right in up to six steps, the k-th by 2^k (base/compress.h), first of all by as many
 * zeros as there are below the mask.
 */
struct slc_gather {
    uint64_t mask;
    unsigned bits;   /* selected by the mask */
    unsigned shift;  /* zeros below the mask; what follows is about words shifted right by it */
    uint64_t picked; /* the mask */
    uint64_t move[SLC_COMPRESS_STEPS]; /* bits that move right by 2^k in step k */
};

void slc_gather_init(struct slc_gather *gather, uint64_t mask);

/* Up to eight output bytes of every key as a sum of `terms` products. */
struct slc_bit_matrix {
    unsigned terms;       /* most key bytes that one output byte draws on */
    unsigned bytes;       /* output bytes taken by fields */
    uint8_t source[8][8]; /* term, output byte: the key byte it draws on */
    uint64_t block[8][8]; /* term, output byte: the block, in the order of GF2P8AFFINEQB */
};

struct slc_field {
    const struct slc_gather *gather; /* borrowed; 1 to 32 bits */
    uint32_t *offsets;               /* borrowed; where the offsets of this field go */
    uint32_t base;                   /* what a field of offset 0 holds */
    unsigned mode;
    unsigned matrix, byte; /* the field starts at this output byte of this matrix */
};

struct slc_fields {
    unsigned count;
    unsigned matrices;
    struct slc_field field[SLC_MAX_ORDER];
    /* A field takes at most four bytes, so that a matrix is full only when it holds two. */
    struct slc_bit_matrix matrix[SLC_MAX_ORDER / 2];
};

void slc_fields_clear(struct slc_fields *fields);
/* Adds a field; the gather plan and the array must outlive `fields`. */
void slc_fields_add(struct slc_fields *fields,
                    const struct slc_gather *gather,
                    uint32_t base,
                    unsigned mode,
                    uint32_t *offsets);

/* Most groups of a chunk of the decoder. */
enum { SLC_CHUNK_GROUPS = 16 };

/* Runs of few key bits, from gaps. */
struct slc_byte_runs {
    /*
     * What the first gap is counted from, as small_keys; the key bits of a run, 1 to 8; the mask,
     * of the lowest of these, and the base of the field that is their own.
     */
    uint32_t first;
    unsigned bits;
    uint8_t mask, base;
    /* What is found: offsets, where runs begin, the keys there with zeros for a run's bits. */
    uint32_t *offsets, *begin, *heads;
    uint32_t runs;
    uint32_t ends[SLC_CHUNK_GROUPS]; /* the last key of each group */
    uint32_t largest;                /* offset, modulo 2^8 */
};

struct slc_decode_ops {
    const char *name;

    slc_unpack_fn *unpack;

    /* keys[i] = first + i + gaps[0] + .. + gaps[i], modulo 2^64; `keys` may be `gaps`. */
    void (*sum)(const uint64_t *gaps, uint32_t count, uint64_t first, uint64_t *keys);

    /* The low 32 bits of the gathered field of every key. */
    void (*gather)(const struct slc_gather *gather,
                   const uint64_t *keys,
                   uint32_t count,
                   uint32_t *fields);
    /* The whole field. */
    void (*gather_wide)(const struct slc_gather *gather,
                        const uint64_t *keys,
                        uint32_t count,
                        uint64_t *fields);

    /*
     * For each field of the plan: the fields of all keys minus the field's base modulo 2^32 to
     * field->offsets, and the largest of these to largest[]. Needs count >= 1; may change keys past
     * `count`.
     */
    void (*fields)(const struct slc_fields *plan,
                   uint64_t *keys,
                   uint32_t count,
                   uint32_t largest[SLC_MAX_ORDER]);

    /*
     * Where runs of keys that agree above bit `shift` - 1 begin: begin[0] = 0, then every i whose
     * key differs from the one before. Returns how many; `begin` has room for `count`. Needs
     * count >= 1, shift < 64.
     */
    uint32_t (*runs)(const uint64_t *keys, uint32_t count, unsigned shift, uint32_t *begin);

    /* Subtracts `base` modulo 2^32 from every element and returns the largest result. */
    uint32_t (*settle)(uint32_t *fields, uint32_t count, uint32_t base);

    /*
     * The same of `groups` whole groups of gaps from `group` on, of a sequence that is all_short,
     * without unpacking them first. False where slc_patched_group would find a contradiction; what
     * `keys` holds is then anything.
     */
    bool (*keys)(const struct slc_patched_view *gaps,
                 uint32_t group,
                 uint32_t groups,
                 uint64_t first,
                 uint64_t *keys);

    /*
     * Values of whole groups plus `low` as f64; false also where one is zero. Needs a sequence that
     * is all_short with bits_max at most 52, and low an integer in -2^53 .. 2^52, so that every
     * step is exact.
     */
    bool (*integers)(const struct slc_patched_view *above,
                     uint32_t group,
                     uint32_t groups,
                     double low,
                     double *values);

    /*
     * values[i] = the f64 of `dictionary` that the i-th index of `width` bits (up to 16) at
     * `packed` names. False where an index is not below `entries`, which is 1 or more.
     */
    bool (*lookup)(const uint8_t *packed,
                   unsigned width,
                   uint32_t count,
                   const uint8_t *dictionary,
                   uint32_t entries,
                   double *values);

    /* Copies little-endian f64; true when all are finite and none is zero. */
    bool (*plain)(const uint8_t *bytes, uint32_t count, double *values);

    /*
     * BLCO's shift and mask: offset = ((index >> shift) & mask) + add modulo 2^64, of which the low
     * 32 bits are stored; returns the largest whole offset. `indices` are file bytes.
     */
    uint64_t (*field)(const uint8_t *indices,
                      uint32_t count,
                      unsigned shift,
                      uint64_t mask,
                      uint64_t add,
                      uint32_t *offsets);

    /*
     * The same as keys, runs and fields for keys of which only the lower half varies: modulo 2^32
     * in and out, for plans whose masks are below 2^32. NULL, all of them, in tables that gain
     * nothing by it. small_keys also returns false where the gaps of a group could add up to 2^32
     * and more; small_low is fields for one field that begins at bit 0.
     */
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
    /*
     * What small_keys, small_runs and small_low would find, of 1 to SLC_CHUNK_GROUPS whole groups.
     * False also where these have to be asked: where gaps that are no exceptions are longer than a
     * run's bits, or exceptions longer than small_keys takes.
     */
    bool (*byte_runs)(const struct slc_patched_view *gaps,
                      uint32_t group,
                      uint32_t groups,
                      struct slc_byte_runs *runs);
};

/* The table in force; threads may call it at any time. */
const struct slc_decode_ops *slc_decode_ops(void);

/* NULL where the machine or the build lacks them. */
const struct slc_decode_ops *slc_decode_ops_portable(void);
const struct slc_decode_ops *slc_decode_ops_avx2(void);
const struct slc_decode_ops *slc_decode_ops_avx512(void);
const struct slc_decode_ops *slc_decode_ops_neon(void);

#endif
