/* Helpers shared by the files of the AVX-512 table, and the functions that each file provides.
 * Private to storage/codec/decode_avx512*.c. This code runs only if slc_decode_ops_avx512 found the
 * instructions. */
#ifndef SLC_STORAGE_DECODE_AVX512_H
#define SLC_STORAGE_DECODE_AVX512_H

#include "storage/codec/decode_ops.h"

#include <immintrin.h>

#define AVX512                                                                                     \
    __attribute__((target("avx2,bmi2,popcnt,gfni,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,"   \
                          "avx512vbmi2")))
#define AVX512_INLINE AVX512 static inline __attribute__((always_inline))

/* Positions of the bits of eight values of at most 57 bits. */
struct eight {
    __m512i bytes, shift, mask;
};

AVX512_INLINE struct eight eight_init(unsigned width)
{
    const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i spread = _mm512_set_epi64(0x0808080808080808, 0, 0x0808080808080808, 0,
                                            0x0808080808080808, 0, 0x0808080808080808, 0);
    const __m512i bits = _mm512_mul_epu32(lanes, _mm512_set1_epi64(width));
    struct eight eight;

    /* Byte b of element i is the index of the byte in which value i starts, plus b. */
    eight.bytes = _mm512_add_epi8(_mm512_shuffle_epi8(_mm512_srli_epi64(bits, 3), spread),
                                  _mm512_set1_epi64(0x0706050403020100));
    eight.shift = _mm512_and_si512(bits, _mm512_set1_epi64(7));
    eight.mask = _mm512_set1_epi64((int64_t)slc_low_mask(width));
    return eight;
}

AVX512_INLINE __m512i eight_get(const struct eight *eight, const uint8_t *packed)
{
    const __m512i part = _mm512_permutexvar_epi8(eight->bytes, _mm512_loadu_si512(packed));

    return _mm512_and_si512(_mm512_srlv_epi64(part, eight->shift), eight->mask);
}

/* Positions of the bits of sixteen values of at most 25 bits. */
struct sixteen {
    __m512i bytes, shift, mask;
};

AVX512_INLINE struct sixteen sixteen_init(unsigned width)
{
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i spread = _mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0);
    /* An element number times the width is below 2^16, so multiplying 16-bit words is exact. */
    const __m512i bits = _mm512_mullo_epi16(lanes, _mm512_set1_epi32((int32_t)width));
    struct sixteen sixteen;

    /* Byte b of element i is the index of the byte in which value i starts, plus b. */
    sixteen.bytes = _mm512_add_epi8(_mm512_shuffle_epi8(_mm512_srli_epi32(bits, 3), spread),
                                    _mm512_set1_epi32(0x03020100));
    sixteen.shift = _mm512_and_si512(bits, _mm512_set1_epi32(7));
    sixteen.mask = _mm512_set1_epi32((int32_t)_bzhi_u32(UINT32_MAX, width));
    return sixteen;
}

AVX512_INLINE __m512i sixteen_move(const struct sixteen *sixteen, const uint8_t *packed)
{
    const __m512i part = _mm512_permutexvar_epi8(sixteen->bytes, _mm512_loadu_si512(packed));

    return _mm512_srlv_epi32(part, sixteen->shift);
}

AVX512_INLINE __m512i sixteen_get(const struct sixteen *sixteen, const uint8_t *packed)
{
    return _mm512_and_si512(sixteen_move(sixteen, packed), sixteen->mask);
}

/* Eight consecutive keys. A key is the previous key plus a step, which is the key's gap + 1. So key
 * i is key i - 8 plus a sum of eight steps. These sums do not need the keys, so only one addition
 * depends on the previous keys. */
struct window {
    __m512i key, one, two, four;
};

AVX512_INLINE struct window window_init(uint64_t first)
{
    const __m512i before = _mm512_set_epi64(-1, -2, -3, -4, -5, -6, -7, -8);
    const __m512i zero = _mm512_setzero_si512();

    return (struct window){_mm512_add_epi64(_mm512_set1_epi64((int64_t)first), before), zero, zero,
                           zero};
}

AVX512_INLINE __m512i window_next(struct window *window, __m512i ones)
{
    const __m512i twos = _mm512_add_epi64(ones, _mm512_alignr_epi64(ones, window->one, 7));
    const __m512i fours = _mm512_add_epi64(twos, _mm512_alignr_epi64(twos, window->two, 6));
    const __m512i eights = _mm512_add_epi64(fours, _mm512_alignr_epi64(fours, window->four, 4));

    window->key = _mm512_add_epi64(window->key, _mm512_add_epi64(eights, _mm512_set1_epi64(8)));
    window->one = ones;
    window->two = twos;
    window->four = fours;
    return window->key;
}

/* decode_avx512.c */
slc_unpack_fn slc_avx512_unpack;

/* decode_avx512_groups.c */
bool slc_avx512_keys(const struct slc_patched_view *gaps,
                     uint32_t group,
                     uint32_t groups,
                     uint64_t first,
                     uint64_t *keys);
bool slc_avx512_small_keys(const struct slc_patched_view *gaps,
                           uint32_t group,
                           uint32_t groups,
                           uint32_t first,
                           uint32_t *keys);
bool slc_avx512_integers(const struct slc_patched_view *above,
                         uint32_t group,
                         uint32_t groups,
                         double low,
                         bool zeros,
                         double *values);

/* decode_avx512_bytes.c */
bool slc_avx512_byte_runs(const struct slc_patched_view *gaps,
                          uint32_t group,
                          uint32_t groups,
                          struct slc_byte_runs *runs);

/* decode_avx512_fields.c */
void slc_avx512_fields(const struct slc_fields *plan,
                       uint64_t *keys,
                       uint32_t count,
                       uint32_t largest[SLC_MAX_ORDER]);
void slc_avx512_small_fields(const struct slc_fields *plan,
                             uint32_t *keys,
                             uint32_t count,
                             uint32_t largest[SLC_MAX_ORDER]);

#endif
