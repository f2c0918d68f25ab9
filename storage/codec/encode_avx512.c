/* Encoding loops for AVX-512 (F, BW, CD, DQ, VL: Skylake-SP, Zen 4 and later), compiled into every
 * x86-64 build and selected at run time. */
#include "storage/codec/encode_ops.h"

#if defined(__x86_64__)

#include "storage/codec/bitpack.h"
#include "storage/codec/encode_loops.h"

#include <immintrin.h>

#define AVX512        __attribute__((target("popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")))
#define AVX512_INLINE AVX512 static inline __attribute__((always_inline))

/* Returns a mask of the first `left` of eight elements. */
AVX512_INLINE __mmask8 lanes_inside(uint32_t left)
{
    const uint32_t lanes = left < 8 ? (1U << left) - 1 : 0xFF;

    return (__mmask8)lanes;
}

/* Returns the sum of eight words modulo 2^64. */
AVX512_INLINE uint64_t add_up(__m512i words)
{
    uint64_t word[8], sum = 0;

    _mm512_storeu_si512(word, words);
    for (unsigned j = 0; j < 8; j++) {
        sum += word[j];
    }
    return sum;
}

/* Applies slc_mix64 to eight words. */
AVX512_INLINE __m512i mix(__m512i x)
{
    const __m512i first = _mm512_set1_epi64((int64_t)UINT64_C(0xbf58476d1ce4e5b9));
    const __m512i second = _mm512_set1_epi64((int64_t)UINT64_C(0x94d049bb133111eb));

    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 30)), first);
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 27)), second);
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, 31));
}

/* Returns a mask of the values that are integers of magnitude <= 2^53. */
AVX512_INLINE __mmask8 integers(__m512d values)
{
    const __m512d most = _mm512_set1_pd(9007199254740992.0);
    const __mmask8 small = _mm512_cmp_pd_mask(_mm512_abs_pd(values), most, _CMP_LE_OQ);
    const __m512d whole = _mm512_cvtepi64_pd(_mm512_cvttpd_epi64(values));

    return _mm512_mask_cmp_pd_mask(small, whole, values, _CMP_EQ_OQ);
}

AVX512_INLINE __mmask8 singles(__m512d values)
{
    const __m512d rounded = _mm512_cvtps_pd(_mm512_cvtpd_ps(values));

    return _mm512_cmp_pd_mask(rounded, values, _CMP_EQ_OQ);
}

/* Implements slc_encode_ops.survey. Adding the squares one by one takes as long as all other work
 * of the survey, and overlaps with it. */
AVX512 static void avx512_survey(const struct slc_tile_source *source,
                                 struct slc_value_survey *survey)
{
    const uint32_t whole = source->nnz / 8 * 8;
    const __m512i upper = _mm512_set1_epi64((int64_t)source->upper);
    __m512i content = _mm512_setzero_si512();
    __m512d low = _mm512_set1_pd(INFINITY);
    __m512d high = _mm512_set1_pd(-INFINITY);
    unsigned all_f32 = 0xFF, all_integer = 0xFF;
    double total = 0;

    for (uint32_t i = 0; i < whole; i += 8) {
        const __m512d values = _mm512_loadu_pd(source->values + i);
        const __m512i lo = _mm512_loadu_si512(source->key_lo + i);
        const __m512i hi = source->key_hi == NULL ? upper : _mm512_loadu_si512(source->key_hi + i);
        double squares[8];

        _mm512_storeu_pd(squares, _mm512_mul_pd(values, values));
        content = _mm512_add_epi64(content, mix(_mm512_add_epi64(mix(_mm512_add_epi64(mix(lo), hi)),
                                                                 _mm512_castpd_si512(values))));
        low = _mm512_min_pd(low, values);
        high = _mm512_max_pd(high, values);
        all_f32 &= singles(values);
        all_integer &= integers(values);
        for (unsigned j = 0; j < 8; j++) {
            total += squares[j];
        }
    }
    *survey = (struct slc_value_survey){.squares = total,
                                        .content = add_up(content),
                                        .low = _mm512_reduce_min_pd(low),
                                        .high = _mm512_reduce_max_pd(high),
                                        .all_f32 = all_f32 == 0xFF,
                                        .all_integer = all_integer == 0xFF};
    slc_survey_add(source, whole, source->nnz, survey);
}

AVX512 static void avx512_above(const double *values, uint32_t count, int64_t low, uint64_t *above)
{
    const __m512i lows = _mm512_set1_epi64(low);

    for (uint32_t i = 0; i < count; i += 8) {
        const __mmask8 inside = lanes_inside(count - i);
        const __m512i integer = _mm512_cvttpd_epi64(_mm512_maskz_loadu_pd(inside, values + i));

        _mm512_mask_storeu_epi64(above + i, inside, _mm512_sub_epi64(integer, lows));
    }
}

/* Stores the bit length of every value in one byte; then, for each width, compares all 128 of these
 * bytes with the width. */
AVX512 static unsigned avx512_longer(const uint64_t *values, uint32_t count, uint8_t *longer)
{
    uint8_t lengths[SLC_GROUP_NNZ] = {0};
    __m512i any = _mm512_setzero_si512();
    __m512i first, second;
    unsigned longest;

    for (uint32_t i = 0; i < count; i += 8) {
        const __mmask8 inside = lanes_inside(count - i);
        const __m512i value = _mm512_maskz_loadu_epi64(inside, values + i);
        const __m512i length = _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_lzcnt_epi64(value));

        any = _mm512_or_si512(any, value);
        _mm_storel_epi64((__m128i *)(void *)(lengths + i), _mm512_cvtepi64_epi8(length));
    }
    longest = slc_bit_length_u64((uint64_t)_mm512_reduce_or_epi64(any));
    first = _mm512_loadu_si512(lengths);
    second = _mm512_loadu_si512(lengths + 64);
    for (unsigned width = 0; width < longest; width++) {
        const __m512i widths = _mm512_set1_epi8((int8_t)width);

        longer[width] = (uint8_t)(__builtin_popcountll(_mm512_cmpgt_epu8_mask(first, widths)) +
                                  __builtin_popcountll(_mm512_cmpgt_epu8_mask(second, widths)));
    }
    return longest;
}

static const struct slc_encode_ops avx512_ops = {
    .name = "avx512", .survey = avx512_survey, .above = avx512_above, .longer = avx512_longer};

const struct slc_encode_ops *slc_encode_ops_avx512(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("popcnt")) {
        return NULL;
    }
    return &avx512_ops;
}

#else

const struct slc_encode_ops *slc_encode_ops_avx512(void)
{
    return NULL;
}

#endif
