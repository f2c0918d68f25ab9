/* Decoding loops for AVX-512 with VBMI, VBMI2 and GFNI (Ice Lake, Zen 4 and later), compiled into
 * every x86-64 build and selected at run time.
 *
 * Eight values of w bits occupy exactly w bytes: the byte positions and the shift of the i-th of
 * eight values are the same in every step of a group. One permutation of 64 bytes moves the eight
 * bytes of each value to its vector element; a variable shift and a mask extract the values. A
 * value of 58 bits or more can extend into a ninth byte and needs two permutations. */
#include "storage/codec/decode_ops.h"

#if defined(__x86_64__)

#include "storage/codec/decode_avx512.h"
#include "storage/codec/decode_loops.h"

AVX512 void
slc_avx512_unpack(const uint8_t *packed, unsigned width, uint32_t count, uint64_t *values)
{
    const struct eight eight = eight_init(width);

    if (width == 0) {
        slc_loop_unpack(packed, width, count, values);
    } else if (width <= 57) {
        for (uint32_t i = 0; i < count; i += 8) {
            _mm512_storeu_si512(values + i, eight_get(&eight, packed));
            packed += width;
        }
    } else {
        const __m512i back = _mm512_sub_epi64(_mm512_set1_epi64(64), eight.shift);

        for (uint32_t i = 0; i < count; i += 8) {
            __m512i part = _mm512_permutexvar_epi8(eight.bytes, _mm512_loadu_si512(packed));
            __m512i next = _mm512_permutexvar_epi8(eight.bytes, _mm512_loadu_si512(packed + 8));

            part = _mm512_or_si512(_mm512_srlv_epi64(part, eight.shift),
                                   _mm512_sllv_epi64(next, back));
            _mm512_storeu_si512(values + i, _mm512_and_si512(part, eight.mask));
            packed += width;
        }
    }
}

AVX512 static void avx512_sum(const uint64_t *gaps, uint32_t count, uint64_t first, uint64_t *keys)
{
    struct window window = window_init(first);

    for (uint32_t i = 0; i < count; i += 8) {
        _mm512_storeu_si512(keys + i, window_next(&window, _mm512_loadu_si512(gaps + i)));
    }
}

AVX512 static void avx512_gather(const struct slc_gather *gather,
                                 const uint64_t *keys,
                                 uint32_t count,
                                 uint32_t *fields)
{
    const uint64_t mask = gather->mask;

    for (uint32_t i = 0; i < count; i++) {
        fields[i] = (uint32_t)_pext_u64(keys[i], mask);
    }
}

AVX512 static void avx512_gather_wide(const struct slc_gather *gather,
                                      const uint64_t *keys,
                                      uint32_t count,
                                      uint64_t *fields)
{
    const uint64_t mask = gather->mask;

    for (uint32_t i = 0; i < count; i++) {
        fields[i] = _pext_u64(keys[i], mask);
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

AVX512 static uint32_t
avx512_small_runs(uint32_t *keys, uint32_t count, unsigned shift, uint32_t *begin)
{
    const __m512i above = _mm512_set1_epi32((int32_t)~slc_low_mask(shift));
    __m512i index = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    uint32_t runs = 1;

    begin[0] = 0;
    /* Elements past the end repeat the last key, so that none of them starts a run. */
    _mm512_storeu_si512(keys + count, _mm512_set1_epi32((int32_t)keys[count - 1]));
    for (uint32_t i = 1; i < count; i += 16) {
        const __m512i now = _mm512_loadu_si512(keys + i);
        const __m512i before = _mm512_loadu_si512(keys + i - 1);
        const __mmask16 differ = _mm512_test_epi32_mask(_mm512_xor_si512(now, before), above);

        _mm512_storeu_si512(begin + runs, _mm512_maskz_compress_epi32(differ, index));
        runs += (uint32_t)__builtin_popcount(differ);
        index = _mm512_add_epi32(index, _mm512_set1_epi32(16));
    }
    return runs;
}

AVX512 static uint32_t avx512_small_low(
    const uint32_t *keys, uint32_t count, uint32_t mask, uint32_t base, uint32_t *offsets)
{
    uint32_t largest = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t offset = (keys[i] & mask) - base;

        offsets[i] = offset;
        largest = offset > largest ? offset : largest;
    }
    return largest;
}

AVX512 static uint32_t avx512_subtract_base(uint32_t *fields, uint32_t count, uint32_t base)
{
    return slc_loop_subtract_base(fields, count, base);
}

/* Without optimization, the gather intrinsic is a macro that converts its mask to char. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
/* Up to 16 dictionary values stay in two registers; larger dictionaries use gather instructions. */
AVX512 static bool avx512_lookup(const uint8_t *packed,
                                 unsigned width,
                                 uint32_t count,
                                 const uint8_t *dictionary,
                                 uint32_t entries,
                                 double *values)
{
    const struct eight eight = eight_init(width);
    const __m512i last = _mm512_set1_epi64((int64_t)entries - 1);
    const uint32_t inside = entries < 16 ? (1U << entries) - 1 : 0xFFFF;
    const __m512d low = _mm512_maskz_loadu_pd((__mmask8)inside, dictionary);
    const __m512d high = _mm512_maskz_loadu_pd((__mmask8)(inside >> 8), dictionary + 64);
    __mmask8 faults = 0;

    for (uint32_t i = 0; i < count; i += 8) {
        const uint32_t rest = count - i;
        const __mmask8 lanes = (__mmask8)(rest < 8 ? (1U << rest) - 1 : 0xFF);
        const __m512i index = eight_get(&eight, packed);
        const __m512i sound = _mm512_min_epu64(index, last);

        faults |= _mm512_mask_cmpneq_epu64_mask(lanes, index, sound);
        _mm512_storeu_pd(values + i, entries <= 16 ? _mm512_permutex2var_pd(low, sound, high)
                                                   : _mm512_i64gather_pd(sound, dictionary, 8));
        packed += width;
    }
    return faults == 0;
}
#pragma GCC diagnostic pop

AVX512 static bool avx512_plain(const uint8_t *bytes, uint32_t count, bool zeros, double *values)
{
    return slc_loop_plain(bytes, count, zeros, values);
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
    .unpack = slc_avx512_unpack,
    .sum = avx512_sum,
    .keys = slc_avx512_keys,
    .runs = avx512_runs,
    .gather = avx512_gather,
    .gather_wide = avx512_gather_wide,
    .fields = slc_avx512_fields,
    .subtract_base = avx512_subtract_base,
    .integers = slc_avx512_integers,
    .lookup = avx512_lookup,
    .plain = avx512_plain,
    .field = avx512_field,
    .small_keys = slc_avx512_small_keys,
    .small_runs = avx512_small_runs,
    .small_fields = slc_avx512_small_fields,
    .small_low = avx512_small_low,
    .byte_runs = slc_avx512_byte_runs,
};

const struct slc_decode_ops *slc_decode_ops_avx512(void)
{
    __builtin_cpu_init();
    if (slc_decode_ops_avx2() == NULL || !__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vbmi") ||
        !__builtin_cpu_supports("avx512vbmi2") || !__builtin_cpu_supports("gfni")) {
        return NULL;
    }
    return &avx512_ops;
}

#else

const struct slc_decode_ops *slc_decode_ops_avx512(void)
{
    return NULL;
}

#endif
