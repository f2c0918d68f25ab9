/* Computes fields of keys as products with bit matrices, for AVX-512 with GFNI (decode_ops.h).
 *
 * A step processes sixteen keys. For each term, a byte permutation moves key bytes to the output
 * bytes to which they contribute, and a GF2P8AFFINEQB multiplies them. For each field, one more
 * permutation assembles its bytes. Multiplying and assembling are two loops over BLOCK_KEYS keys:
 * the first loop keeps a whole matrix in registers, the second loop all data of a field. */

#if defined(__x86_64__)

#include "storage/codec/decode_avx512.h"

/* Arrangement of sixteen keys in vectors, and of their products with a matrix. Byte 8 * j + i of a
 * product is output byte j of key i, for eight keys; with at most four output bytes, the upper half
 * holds the output bytes of eight more keys. */
enum shape {
    WIDE_KEYS,     /* two vectors of keys, two products */
    SMALL_KEYS,    /* one vector of lower halves of keys, two products */
    SMALL_KEYS_FEW /* SMALL_KEYS with at most four output bytes: one product */
};

enum {
    /* Number of keys whose products are stored before fields are assembled: 2 KiB of products. */
    BLOCK_KEYS = 256,
    STEP_KEYS = 16
};

/* Positions of a field's bytes in the products. */
struct field_lanes {
    __m512i bytes;       /* positions of the four bytes of each element's field */
    __mmask64 low, high; /* masks of the positions in the lower and in the upper product */
    __m512i base, largest;
    uint32_t *offsets;
};

/* The key bytes of the terms, and the 8 x 8 bit matrices by which they are multiplied. */
struct terms {
    __m512i low[8], high[8], block[8];
};

/* indices of the first bytes of eight keys */
static const uint64_t key_bytes = 0x3830282018100800;
/* indices of the first bytes of eight lower halves of keys */
static const uint64_t small_key_bytes = 0x1C1814100C080400;

AVX512_INLINE struct terms
terms_init(const struct slc_bit_matrix *matrix, enum shape shape, unsigned count)
{
    /* Element j becomes its byte j, repeated eight times. */
    const __m512i repeat = _mm512_set_epi64(
        0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
        0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m512i keys =
        _mm512_set1_epi64((int64_t)(shape == WIDE_KEYS ? key_bytes : small_key_bytes));
    const __m512i half = _mm512_set1_epi8(32);
    struct terms terms;

    for (unsigned t = 0; t < count; t++) {
        const __m512i sources = _mm512_set1_epi64((int64_t)slc_load_u64(matrix->source[t]));
        __m512i bytes = _mm512_add_epi8(_mm512_shuffle_epi8(sources, repeat), keys);
        __m512i block = _mm512_loadu_si512(matrix->block[t]);

        if (shape == SMALL_KEYS_FEW) {
            bytes = _mm512_shuffle_i64x2(bytes, bytes, 0x44);
            bytes = _mm512_mask_add_epi8(bytes, 0xFFFFFFFF00000000, bytes, half);
            block = _mm512_shuffle_i64x2(block, block, 0x44);
        }
        terms.low[t] = bytes;
        terms.high[t] = _mm512_add_epi8(bytes, half);
        terms.block[t] = block;
    }
    return terms;
}

/* Returns the sum (exclusive or) of `count` products. */
AVX512_INLINE __m512i product(const __m512i *bytes,
                              const __m512i *block,
                              unsigned count,
                              __m512i keys)
{
    __m512i part[8], sum;

    for (unsigned t = 0; t < count; t++) {
        part[t] =
            _mm512_gf2p8affine_epi64_epi8(_mm512_permutexvar_epi8(bytes[t], keys), block[t], 0);
    }
    sum = part[0];
    for (unsigned t = 1; t + 1 < count; t += 2) {
        sum = _mm512_ternarylogic_epi64(sum, part[t], part[t + 1], 0x96); /* exclusive or */
    }
    return count % 2 == 0 ? _mm512_xor_si512(sum, part[count - 1]) : sum;
}

/* Multiplies `count` keys by a matrix, one or two vectors per step. If `count_terms` is a
 * compile-time constant, the matrix stays in registers. */
AVX512_INLINE void matrix_products(const struct slc_bit_matrix *matrix,
                                   enum shape shape,
                                   const unsigned count_terms,
                                   const void *keys,
                                   uint32_t count,
                                   __m512i *products)
{
    const struct terms terms = terms_init(matrix, shape, count_terms);
    const uint32_t *small = keys;
    const uint64_t *wide = keys;

    for (uint32_t i = 0; i < count; i += STEP_KEYS) {
        const __m512i first =
            shape == WIDE_KEYS ? _mm512_loadu_si512(wide + i) : _mm512_loadu_si512(small + i);

        *products++ = product(terms.low, terms.block, count_terms, first);
        if (shape == WIDE_KEYS) {
            *products++ =
                product(terms.low, terms.block, count_terms, _mm512_loadu_si512(wide + i + 8));
        } else if (shape == SMALL_KEYS) {
            *products++ = product(terms.high, terms.block, count_terms, first);
        }
    }
}

AVX512 static void wide_matrix(const struct slc_bit_matrix *matrix,
                               const uint64_t *keys,
                               uint32_t count,
                               __m512i *products)
{
    switch (matrix->terms) {
    case 1:
        matrix_products(matrix, WIDE_KEYS, 1, keys, count, products);
        break;
    case 2:
        matrix_products(matrix, WIDE_KEYS, 2, keys, count, products);
        break;
    case 3:
        matrix_products(matrix, WIDE_KEYS, 3, keys, count, products);
        break;
    case 4:
        matrix_products(matrix, WIDE_KEYS, 4, keys, count, products);
        break;
    case 5:
        matrix_products(matrix, WIDE_KEYS, 5, keys, count, products);
        break;
    case 6:
        matrix_products(matrix, WIDE_KEYS, 6, keys, count, products);
        break;
    case 7:
        matrix_products(matrix, WIDE_KEYS, 7, keys, count, products);
        break;
    default:
        matrix_products(matrix, WIDE_KEYS, 8, keys, count, products);
        break;
    }
}

/* Multiplies lower halves of keys by a matrix. A half has four bytes, so there are at most four
 * terms. */
AVX512_INLINE void small_matrix_as(const struct slc_bit_matrix *matrix,
                                   enum shape shape,
                                   const uint32_t *keys,
                                   uint32_t count,
                                   __m512i *products)
{
    switch (matrix->terms) {
    case 1:
        matrix_products(matrix, shape, 1, keys, count, products);
        break;
    case 2:
        matrix_products(matrix, shape, 2, keys, count, products);
        break;
    case 3:
        matrix_products(matrix, shape, 3, keys, count, products);
        break;
    default:
        matrix_products(matrix, shape, 4, keys, count, products);
        break;
    }
}

AVX512 static void small_matrix(const struct slc_bit_matrix *matrix,
                                const uint32_t *keys,
                                uint32_t count,
                                __m512i *products)
{
    if (matrix->bytes <= 4) {
        small_matrix_as(matrix, SMALL_KEYS_FEW, keys, count, products);
    } else {
        small_matrix_as(matrix, SMALL_KEYS, keys, count, products);
    }
}

AVX512_INLINE struct field_lanes lanes_of(const struct slc_field *field, bool one_product)
{
    /* Byte c of element l becomes output byte c of key l % 8. */
    const __m512i order = _mm512_set_epi64(
        0x1F170F071E160E06, 0x1D150D051C140C04, 0x1B130B031A120A02, 0x1911090118100800,
        0x1F170F071E160E06, 0x1D150D051C140C04, 0x1B130B031A120A02, 0x1911090118100800);
    const unsigned bytes = (field->gather->bits + 7) / 8;
    const uint64_t there = ((UINT64_C(1) << bytes) - 1) * UINT64_C(0x1111111111111111);
    const __mmask64 upper = 0xFFFFFFFF00000000;
    struct field_lanes lanes;

    lanes.bytes = _mm512_add_epi8(order, _mm512_set1_epi8((char)(8 * field->byte)));
    lanes.low = there & ~upper;
    lanes.high = there & upper;
    if (one_product) {
        lanes.bytes = _mm512_mask_add_epi8(lanes.bytes, upper, lanes.bytes, _mm512_set1_epi8(32));
        lanes.low = there;
    }
    lanes.base = _mm512_set1_epi32((int32_t)field->base);
    lanes.largest = _mm512_setzero_si512();
    lanes.offsets = field->offsets;
    return lanes;
}

/* Assembles one field of `count` keys, starting at key `at`, from their products. */
AVX512_INLINE void assemble_field(struct field_lanes *lanes,
                                  bool one_product,
                                  const __m512i *products,
                                  uint32_t at,
                                  uint32_t count)
{
    const struct field_lanes lane = *lanes;
    uint32_t *offsets = lane.offsets + at;
    __m512i largest = lane.largest;

    for (uint32_t i = 0; i < count; i += STEP_KEYS) {
        __m512i field = _mm512_maskz_permutexvar_epi8(lane.low, lane.bytes, *products++);

        if (!one_product) {
            field = _mm512_mask_permutexvar_epi8(field, lane.high, lane.bytes, *products++);
        }
        field = _mm512_sub_epi32(field, lane.base);
        _mm512_storeu_si512(offsets + i, field);
        largest = _mm512_max_epu32(largest, field);
    }
    lanes->largest = largest;
}

/* Computes the fields of one matrix, at the positions in `lanes`. */
AVX512_INLINE void matrix_fields(const struct slc_bit_matrix *matrix,
                                 bool small,
                                 const void *keys,
                                 uint32_t count,
                                 struct field_lanes *lanes,
                                 unsigned fields)
{
    const bool one_product = small && matrix->bytes <= 4;
    __m512i products[2 * BLOCK_KEYS / STEP_KEYS];

    for (uint32_t at = 0; at < count; at += BLOCK_KEYS) {
        const uint32_t size = count - at < BLOCK_KEYS ? count - at : BLOCK_KEYS;

        if (small) {
            small_matrix(matrix, (const uint32_t *)keys + at, size, products);
        } else {
            wide_matrix(matrix, (const uint64_t *)keys + at, size, products);
        }
        for (unsigned f = 0; f < fields; f++) {
            if (one_product) {
                assemble_field(&lanes[f], true, products, at, size);
            } else {
                assemble_field(&lanes[f], false, products, at, size);
            }
        }
    }
}

/* Computes the fields of all matrices. If `small`, `keys` has lower halves of keys. */
AVX512_INLINE void all_matrices(const struct slc_fields *plan,
                                bool small,
                                const void *keys,
                                uint32_t count,
                                uint32_t largest[SLC_MAX_ORDER])
{
    struct field_lanes lanes[8];

    for (unsigned m = 0; m < plan->matrices; m++) {
        const struct slc_bit_matrix *matrix = &plan->matrix[m];
        unsigned of[8], fields = 0;

        for (unsigned f = 0; f < plan->count; f++) {
            if (plan->field[f].matrix == m) {
                lanes[fields] = lanes_of(&plan->field[f], small && matrix->bytes <= 4);
                of[fields++] = f;
            }
        }
        matrix_fields(matrix, small, keys, count, lanes, fields);
        for (unsigned f = 0; f < fields; f++) {
            largest[of[f]] = _mm512_reduce_max_epu32(lanes[f].largest);
        }
    }
}

/* Implements slc_decode_ops.fields. Repeats the last key past the end, so that elements there do
 * not change the largest offset. */
AVX512 void slc_avx512_fields(const struct slc_fields *plan,
                              uint64_t *keys,
                              uint32_t count,
                              uint32_t largest[SLC_MAX_ORDER])
{
    const __m512i last = _mm512_set1_epi64((int64_t)keys[count - 1]);

    _mm512_storeu_si512(keys + count, last);
    _mm512_storeu_si512(keys + count + 8, last);
    all_matrices(plan, false, keys, count, largest);
}

AVX512 void slc_avx512_small_fields(const struct slc_fields *plan,
                                    uint32_t *keys,
                                    uint32_t count,
                                    uint32_t largest[SLC_MAX_ORDER])
{
    _mm512_storeu_si512(keys + count, _mm512_set1_epi32((int32_t)keys[count - 1]));
    all_matrices(plan, true, keys, count, largest);
}

#endif
