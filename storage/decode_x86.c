/*
 * Decoding loops for AVX2 with BMI2 and for AVX-512 with VBMI and GFNI (Ice Lake, Zen 4 and later),
 * compiled in every x86-64 build and chosen at run time.
 *
 * Unpacking rests on eight values of w bits taking exactly w bytes: which bytes hold value i of
 * eight, and by how many bits it must move, is the same in every step of a group. AVX-512 moves the
 * eight bytes of each value into its lane with one byte permutation of 64 bytes, AVX2 with one byte
 * shuffle per two values; a variable shift and a mask do the rest. A value of 58 bits and more can
 * reach into a ninth byte: AVX-512 then permutes twice, AVX2 leaves it to the plain loop.
 */
#include "storage/decode_ops.h"

#if defined(__x86_64__)

#include "storage/decode_loops.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi2")))
#define AVX512                                                                                     \
    __attribute__((target("avx2,bmi2,popcnt,gfni,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

/* ---- AVX2 */

/* Lane i of the two vectors holds the bytes of value `first` + i after the shuffle by `bytes`. */
struct avx2_step {
    __m256i bytes, shift;
    unsigned at_low, at_high; /* where the 16 bytes of each half start */
};

AVX2 static inline struct avx2_step avx2_step_init(unsigned width, unsigned first)
{
    uint8_t bytes[32];
    uint64_t shift[4];
    struct avx2_step step;

    step.at_low = first * width / 8;
    step.at_high = (first + 2) * width / 8;
    for (unsigned i = 0; i < 4; i++) {
        unsigned bit = (first + i) * width;
        unsigned byte = bit / 8 - (i < 2 ? step.at_low : step.at_high);

        for (unsigned b = 0; b < 8; b++) {
            bytes[8 * i + b] = (uint8_t)(byte + b);
        }
        shift[i] = bit % 8;
    }
    step.bytes = _mm256_loadu_si256((const __m256i *)(const void *)bytes);
    step.shift = _mm256_loadu_si256((const __m256i *)(const void *)shift);
    return step;
}

AVX2 static inline __m256i avx2_four(const uint8_t *at, const struct avx2_step *step, __m256i mask)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(at + step->at_low));
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(at + step->at_high));
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);

    both = _mm256_srlv_epi64(_mm256_shuffle_epi8(both, step->bytes), step->shift);
    return _mm256_and_si256(both, mask);
}

AVX2 static void
avx2_unpack(const uint8_t *packed, unsigned width, uint32_t count, uint64_t *values)
{
    struct avx2_step first, second;
    __m256i mask;

    if (width == 0 || width > 57) {
        slc_loop_unpack(packed, width, count, values);
        return;
    }
    first = avx2_step_init(width, 0);
    second = avx2_step_init(width, 4);
    mask = _mm256_set1_epi64x((int64_t)slc_low_mask(width));
    for (uint32_t i = 0; i < count; i += 8) {
        _mm256_storeu_si256((__m256i *)(void *)(values + i), avx2_four(packed, &first, mask));
        _mm256_storeu_si256((__m256i *)(void *)(values + i + 4), avx2_four(packed, &second, mask));
        packed += width;
    }
}

/* One addition a nonzero is all the latency there is, and AVX2's shuffles would cost as much. */
AVX2 static void avx2_sum(const uint64_t *gaps, uint32_t count, uint64_t first, uint64_t *keys)
{
    slc_loop_sum(gaps, count, first, keys);
}

AVX2 static void
pext_gather(const struct slc_gather *gather, const uint64_t *keys, uint32_t count, uint32_t *fields)
{
    const uint64_t mask = gather->mask;

    for (uint32_t i = 0; i < count; i++) {
        fields[i] = (uint32_t)_pext_u64(keys[i], mask);
    }
}

AVX2 static void pext_gather_wide(const struct slc_gather *gather,
                                  const uint64_t *keys,
                                  uint32_t count,
                                  uint64_t *fields)
{
    const uint64_t mask = gather->mask;

    for (uint32_t i = 0; i < count; i++) {
        fields[i] = _pext_u64(keys[i], mask);
    }
}

AVX2 static uint32_t
avx2_runs(const uint64_t *keys, uint32_t count, unsigned shift, uint32_t *begin)
{
    return slc_loop_runs(keys, count, shift, begin);
}

AVX2 static void
avx2_gather(const struct slc_gather *gather, const uint64_t *keys, uint32_t count, uint32_t *fields)
{
    slc_loop_gather(gather, keys, count, fields);
}

AVX2 static void avx2_gather_wide(const struct slc_gather *gather,
                                  const uint64_t *keys,
                                  uint32_t count,
                                  uint64_t *fields)
{
    slc_loop_gather_wide(gather, keys, count, fields);
}

AVX2 static void pext_fields(const struct slc_fields *plan,
                             uint64_t *keys,
                             uint32_t count,
                             uint32_t largest[SLC_MAX_ORDER])
{
    slc_loop_fields(plan, keys, count, pext_gather, largest);
}

AVX2 static void avx2_fields(const struct slc_fields *plan,
                             uint64_t *keys,
                             uint32_t count,
                             uint32_t largest[SLC_MAX_ORDER])
{
    slc_loop_fields(plan, keys, count, avx2_gather, largest);
}

AVX2 static uint32_t avx2_settle(uint32_t *fields, uint32_t count, uint32_t base)
{
    return slc_loop_settle(fields, count, base);
}

AVX2 static bool avx2_integers(const uint64_t *above, uint32_t count, double low, double *values)
{
    return slc_loop_integers(above, count, low, values);
}

AVX2 static bool avx2_plain(const uint8_t *bytes, uint32_t count, double *values)
{
    return slc_loop_plain(bytes, count, values);
}

AVX2 static uint64_t avx2_field(const uint8_t *indices,
                                uint32_t count,
                                unsigned shift,
                                uint64_t mask,
                                uint64_t add,
                                uint32_t *offsets)
{
    return slc_loop_field(indices, count, shift, mask, add, offsets);
}

static const struct slc_decode_ops avx2_ops = {
    .name = "avx2",
    .unpack = avx2_unpack,
    .sum = avx2_sum,
    .runs = avx2_runs,
    .gather = pext_gather,
    .gather_wide = pext_gather_wide,
    .fields = pext_fields,
    .settle = avx2_settle,
    .integers = avx2_integers,
    .plain = avx2_plain,
    .field = avx2_field,
};

/* The first two generations of AMD's Zen have AVX2 but take some 250 cycles for a pext. */
static const struct slc_decode_ops avx2_slow_pext_ops = {
    .name = "avx2",
    .unpack = avx2_unpack,
    .sum = avx2_sum,
    .runs = avx2_runs,
    .gather = avx2_gather,
    .gather_wide = avx2_gather_wide,
    .fields = avx2_fields,
    .settle = avx2_settle,
    .integers = avx2_integers,
    .plain = avx2_plain,
    .field = avx2_field,
};

/* ---- AVX-512 */

AVX512 static void
avx512_unpack(const uint8_t *packed, unsigned width, uint32_t count, uint64_t *values)
{
    const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i spread = _mm512_set_epi64(0x0808080808080808, 0, 0x0808080808080808, 0,
                                            0x0808080808080808, 0, 0x0808080808080808, 0);
    const __m512i bits = _mm512_mul_epu32(lanes, _mm512_set1_epi64(width));
    const __m512i shift = _mm512_and_si512(bits, _mm512_set1_epi64(7));
    const __m512i mask = _mm512_set1_epi64((int64_t)slc_low_mask(width));
    /* Byte b of lane i: the byte where value i starts, plus b. */
    const __m512i bytes = _mm512_add_epi8(_mm512_shuffle_epi8(_mm512_srli_epi64(bits, 3), spread),
                                          _mm512_set1_epi64(0x0706050403020100));

    if (width == 0) {
        slc_loop_unpack(packed, width, count, values);
    } else if (width <= 57) {
        for (uint32_t i = 0; i < count; i += 8) {
            __m512i part = _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(packed));

            part = _mm512_and_si512(_mm512_srlv_epi64(part, shift), mask);
            _mm512_storeu_si512(values + i, part);
            packed += width;
        }
    } else {
        const __m512i back = _mm512_sub_epi64(_mm512_set1_epi64(64), shift);

        for (uint32_t i = 0; i < count; i += 8) {
            __m512i part = _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(packed));
            __m512i next = _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(packed + 8));

            part = _mm512_or_si512(_mm512_srlv_epi64(part, shift), _mm512_sllv_epi64(next, back));
            _mm512_storeu_si512(values + i, _mm512_and_si512(part, mask));
            packed += width;
        }
    }
}

/*
 * Key i is key i - 8 plus the eight gaps up to i: sums over a window, which do not wait for one
 * another, and one addition that does.
 */
AVX512 static void avx512_sum(const uint64_t *gaps, uint32_t count, uint64_t first, uint64_t *keys)
{
    const __m512i eight = _mm512_set1_epi64(8);
    const __m512i before = _mm512_set_epi64(-1, -2, -3, -4, -5, -6, -7, -8);
    __m512i key = _mm512_add_epi64(_mm512_set1_epi64((int64_t)first), before);
    __m512i one = _mm512_setzero_si512(), two = one, four = one;

    for (uint32_t i = 0; i < count; i += 8) {
        const __m512i ones = _mm512_loadu_si512(gaps + i);
        const __m512i twos = _mm512_add_epi64(ones, _mm512_alignr_epi64(ones, one, 7));
        const __m512i fours = _mm512_add_epi64(twos, _mm512_alignr_epi64(twos, two, 6));
        const __m512i eights = _mm512_add_epi64(fours, _mm512_alignr_epi64(fours, four, 4));

        key = _mm512_add_epi64(key, _mm512_add_epi64(eights, eight));
        _mm512_storeu_si512(keys + i, key);
        one = ones;
        two = twos;
        four = fours;
    }
}

/* Byte 8 * j + i of what a matrix makes: output byte j of key i. */
struct field_lanes {
    __m512i
        bytes; /* where the four bytes of each lane's field are; what follows it is masked off */
    __m512i mask, base, largest;
    uint32_t *offsets;
};

/* The sum of `terms` products for eight keys. */
AVX512 static inline __attribute__((always_inline)) __m512i
matrix_times(const __m512i *source, const __m512i *block, const unsigned terms, __m512i keys)
{
    __m512i part[8], sum;

    for (unsigned t = 0; t < terms; t++) {
        part[t] =
            _mm512_gf2p8affine_epi64_epi8(_mm512_permutexvar_epi8(source[t], keys), block[t], 0);
    }
    sum = part[0];
    for (unsigned t = 1; t + 1 < terms; t += 2) {
        sum = _mm512_ternarylogic_epi64(sum, part[t], part[t + 1], 0x96); /* exclusive or */
    }
    return terms % 2 == 0 ? _mm512_xor_si512(sum, part[terms - 1]) : sum;
}

/* All fields of one matrix; a constant number of terms keeps the matrix in registers. */
AVX512 static inline __attribute__((always_inline)) void
matrix_fields(const struct slc_bit_matrix *matrix,
              const unsigned terms,
              const uint64_t *keys,
              uint32_t count,
              struct field_lanes *lanes,
              unsigned fields)
{
    const __m512i spread = _mm512_set_epi64(
        0x3830282018100800, 0x3830282018100800, 0x3830282018100800, 0x3830282018100800,
        0x3830282018100800, 0x3830282018100800, 0x3830282018100800, 0x3830282018100800);
    const __mmask64 upper = 0xFFFFFFFF00000000;
    __m512i source[8], block[8];

    for (unsigned t = 0; t < terms; t++) {
        __m512i bytes =
            _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)matrix->source[t]));

        bytes = _mm512_mullo_epi64(bytes, _mm512_set1_epi64(0x0101010101010101));
        source[t] = _mm512_add_epi8(bytes, spread);
        block[t] = _mm512_loadu_si512(matrix->block[t]);
    }
    for (uint32_t i = 0; i < count; i += 16) {
        const __m512i low = matrix_times(source, block, terms, _mm512_loadu_si512(keys + i));
        const __m512i high = matrix_times(source, block, terms, _mm512_loadu_si512(keys + i + 8));

        for (unsigned f = 0; f < fields; f++) {
            struct field_lanes *lane = &lanes[f];
            __m512i field = _mm512_permutexvar_epi8(lane->bytes, low);

            field = _mm512_mask_permutexvar_epi8(field, upper, lane->bytes, high);
            field = _mm512_sub_epi32(_mm512_and_si512(field, lane->mask), lane->base);
            _mm512_storeu_si512(lane->offsets + i, field);
            lane->largest = _mm512_max_epu32(lane->largest, field);
        }
    }
}

AVX512 static void avx512_matrix(const struct slc_bit_matrix *matrix,
                                 const uint64_t *keys,
                                 uint32_t count,
                                 struct field_lanes *lanes,
                                 unsigned fields)
{
    switch (matrix->terms) {
    case 1:
        matrix_fields(matrix, 1, keys, count, lanes, fields);
        break;
    case 2:
        matrix_fields(matrix, 2, keys, count, lanes, fields);
        break;
    case 3:
        matrix_fields(matrix, 3, keys, count, lanes, fields);
        break;
    case 4:
        matrix_fields(matrix, 4, keys, count, lanes, fields);
        break;
    case 5:
        matrix_fields(matrix, 5, keys, count, lanes, fields);
        break;
    case 6:
        matrix_fields(matrix, 6, keys, count, lanes, fields);
        break;
    case 7:
        matrix_fields(matrix, 7, keys, count, lanes, fields);
        break;
    default:
        matrix_fields(matrix, 8, keys, count, lanes, fields);
        break;
    }
}

AVX512 static void avx512_fields(const struct slc_fields *plan,
                                 uint64_t *keys,
                                 uint32_t count,
                                 uint32_t largest[SLC_MAX_ORDER])
{
    /* Byte c of lane l: byte l % 8 of output byte c. */
    const __m512i order = _mm512_set_epi64(
        0x1F170F071E160E06, 0x1D150D051C140C04, 0x1B130B031A120A02, 0x1911090118100800,
        0x1F170F071E160E06, 0x1D150D051C140C04, 0x1B130B031A120A02, 0x1911090118100800);
    const __m512i last = _mm512_set1_epi64((int64_t)keys[count - 1]);
    struct field_lanes lanes[8];

    /* Lanes past the end repeat the last key: they do not change the largest offset. */
    _mm512_storeu_si512(keys + count, last);
    _mm512_storeu_si512(keys + count + 8, last);
    for (unsigned m = 0; m < plan->matrices; m++) {
        unsigned of[8], fields = 0;

        for (unsigned f = 0; f < plan->count; f++) {
            const struct slc_field *field = &plan->field[f];

            if (field->matrix != m) {
                continue;
            }
            lanes[fields].bytes = _mm512_add_epi8(order, _mm512_set1_epi8((char)(8 * field->byte)));
            lanes[fields].mask = _mm512_set1_epi32((int32_t)slc_low_mask(field->gather->bits));
            lanes[fields].base = _mm512_set1_epi32((int32_t)field->base);
            lanes[fields].largest = _mm512_setzero_si512();
            lanes[fields].offsets = field->offsets;
            of[fields++] = f;
        }
        avx512_matrix(&plan->matrix[m], keys, count, lanes, fields);
        for (unsigned f = 0; f < fields; f++) {
            largest[of[f]] = _mm512_reduce_max_epu32(lanes[f].largest);
        }
    }
}

AVX512 static uint32_t
avx512_runs(const uint64_t *keys, uint32_t count, unsigned shift, uint32_t *begin)
{
    const __m512i above = _mm512_set1_epi64((int64_t)~slc_low_mask(shift));
    __m256i index = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8);
    uint32_t runs = 1;

    begin[0] = 0;
    for (uint32_t i = 1; i < count; i += 8) {
        const __m512i now = _mm512_loadu_si512(keys + i);
        const __m512i before = _mm512_loadu_si512(keys + i - 1);
        const uint32_t inside = count - i < 8 ? (1U << (count - i)) - 1 : 0xFF;
        const __mmask8 differ =
            (__mmask8)(_mm512_test_epi64_mask(_mm512_xor_si512(now, before), above) & inside);

        _mm256_storeu_si256((__m256i *)(void *)(begin + runs),
                            _mm256_maskz_compress_epi32(differ, index));
        runs += (uint32_t)__builtin_popcount(differ);
        index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
    }
    return runs;
}

AVX512 static uint32_t avx512_settle(uint32_t *fields, uint32_t count, uint32_t base)
{
    return slc_loop_settle(fields, count, base);
}

AVX512 static bool
avx512_integers(const uint64_t *above, uint32_t count, double low, double *values)
{
    return slc_loop_integers(above, count, low, values);
}

AVX512 static bool avx512_plain(const uint8_t *bytes, uint32_t count, double *values)
{
    return slc_loop_plain(bytes, count, values);
}

AVX512 static uint64_t avx512_field(const uint8_t *indices,
                                    uint32_t count,
                                    unsigned shift,
                                    uint64_t mask,
                                    uint64_t add,
                                    uint32_t *offsets)
{
    return slc_loop_field(indices, count, shift, mask, add, offsets);
}

static const struct slc_decode_ops avx512_ops = {
    .name = "avx512",
    .unpack = avx512_unpack,
    .sum = avx512_sum,
    .runs = avx512_runs,
    .gather = pext_gather,
    .gather_wide = pext_gather_wide,
    .fields = avx512_fields,
    .settle = avx512_settle,
    .integers = avx512_integers,
    .plain = avx512_plain,
    .field = avx512_field,
};

const struct slc_decode_ops *slc_decode_ops_avx2(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) {
        return NULL;
    }
    if (__builtin_cpu_is("znver1") || __builtin_cpu_is("znver2")) {
        return &avx2_slow_pext_ops;
    }
    return &avx2_ops;
}

const struct slc_decode_ops *slc_decode_ops_avx512(void)
{
    __builtin_cpu_init();
    if (slc_decode_ops_avx2() == NULL || !__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vbmi") ||
        !__builtin_cpu_supports("gfni")) {
        return NULL;
    }
    return &avx512_ops;
}

#else

const struct slc_decode_ops *slc_decode_ops_avx2(void)
{
    return NULL;
}

const struct slc_decode_ops *slc_decode_ops_avx512(void)
{
    return NULL;
}

#endif
