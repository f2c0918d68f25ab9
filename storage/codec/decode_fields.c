/* Builds plans that extract fields from keys: masks with the steps that move their bits together,
 * and bit matrices. A plan is built once per tile. Cost: a few operations per key bit. */
#include "storage/codec/decode_ops.h"

#include "base/compress.h"

#include <assert.h>
#include <string.h>

void slc_gather_init(struct slc_gather *gather, uint64_t mask)
{
    struct slc_compress packed;

    gather->mask = mask;
    gather->shift = mask == 0 ? 0 : (unsigned)__builtin_ctzll(mask);
    slc_compress_init(&packed, mask >> gather->shift);
    gather->bits = packed.bits;
    gather->picked = packed.mask;
    memcpy(gather->move, packed.move, sizeof gather->move);
}

void slc_fields_clear(struct slc_fields *fields)
{
    fields->count = 0;
    fields->matrices = 0;
}

/* Returns the first matrix with space for `bytes` more output bytes, or a new matrix. */
static unsigned find_matrix(struct slc_fields *fields, unsigned bytes)
{
    unsigned m = 0;

    while (m < fields->matrices && fields->matrix[m].bytes + bytes > 8) {
        m++;
    }
    if (m == fields->matrices) {
        memset(&fields->matrix[m], 0, sizeof fields->matrix[m]);
        fields->matrices++;
    }
    return m;
}

/* Routes bit `from` (0..63) of the key to bit `to` (0..7) of output byte `byte`. */
static void route_bit(struct slc_bit_matrix *matrix, unsigned byte, unsigned to, unsigned from)
{
    unsigned term = 0;

    /* A term whose block is empty is unused. */
    while (matrix->block[term][byte] != 0 && matrix->source[term][byte] != from / 8) {
        term++;
    }
    matrix->source[term][byte] = (uint8_t)(from / 8);
    /* Byte 7 - i of a block is the row that computes bit i. */
    matrix->block[term][byte] |= UINT64_C(1) << (8 * (7 - to) + from % 8);
    if (matrix->terms <= term) {
        matrix->terms = term + 1;
    }
}

void slc_fields_add(struct slc_fields *fields,
                    const struct slc_gather *gather,
                    uint32_t base,
                    unsigned mode,
                    uint32_t *offsets)
{
    const unsigned bytes = (gather->bits + 7) / 8;
    const unsigned m = find_matrix(fields, bytes);
    struct slc_bit_matrix *matrix = &fields->matrix[m];
    uint64_t rest = gather->mask;

    assert(gather->bits >= 1 && gather->bits <= 32 && fields->count < SLC_MAX_ORDER);
    fields->field[fields->count++] =
        (struct slc_field){gather, offsets, base, mode, m, matrix->bytes};
    for (unsigned bit = 0; rest != 0; bit++) {
        route_bit(matrix, matrix->bytes + bit / 8, bit % 8, (unsigned)__builtin_ctzll(rest));
        rest &= rest - 1;
    }
    matrix->bytes += bytes;
}
