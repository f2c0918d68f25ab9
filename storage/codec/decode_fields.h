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
#ifndef SLC_STORAGE_DECODE_FIELDS_H
#define SLC_STORAGE_DECODE_FIELDS_H

#include "base/encoded.h"
#include "base/memory/limits.h"

#include <stdint.h>

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

#endif
