/* Computes sums of one column, for the kernels of rank 1 (mttkrp_column_tmpl.h), in f64 for all
 * element types. This header is part of kernel_set.c and is compiled for one instruction set. */
#ifndef SLC_CPU_COLUMN_H
#define SLC_CPU_COLUMN_H

#include "cpu/kernel/set_names.h"

#include <stdint.h>
#include <string.h>

#if SLC_SET == SET_AVX512
#include <immintrin.h>
#endif

/* Number of buffered products, which stay in the L1 cache and suffice for an efficient loop. */
enum { COLUMN_BUFFER = 256 };

typedef double column_eight __attribute__((vector_size(64), may_alias, aligned(8)));

struct column_pair {
    uint32_t first, second;
};

/* Loads two offsets at once, because these loops are limited by the number of loads, of which a
 * processor starts at most three per cycle. */
static inline struct column_pair column_pair(const uint32_t *offset)
{
    uint64_t both;

    memcpy(&both, offset, sizeof both);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    both = both >> 32 | both << 32;
#endif
    return (struct column_pair){(uint32_t)both, (uint32_t)(both >> 32)};
}

/* Functions that return the dot product of a run's values and the rows at its offsets. Products in
 * the element's type are distributed over eight sums, which are added as the same tree in every
 * instruction set. */
#if SLC_SET == SET_AVX512

static inline double column_tree(__m512d parts)
{
    const __m256d four =
        _mm256_add_pd(_mm512_castpd512_pd256(parts), _mm512_extractf64x4_pd(parts, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));

    return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}

/* Returns the mask of the first `count` of eight vector elements. With the mask, runs of up to
 * eight nonzeros need no branch on their length. */
static inline __mmask8 column_lanes(uint32_t count)
{
    return (__mmask8)(count < 8 ? (1U << count) - 1 : 0xFF);
}

/* Without optimization, a gather is a macro that converts its mask to char, which causes a
 * warning. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

static inline double
column_dot_f64(const double *values, const uint32_t *offset, uint32_t count, const double *rows)
{
    __m512d parts = _mm512_setzero_pd();

    for (uint32_t i = 0; i < count; i += 8) {
        const __mmask8 lanes = column_lanes(count - i);
        const __m512i at = _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(lanes, offset + i));
        const __m512d row = _mm512_mask_i64gather_pd(_mm512_setzero_pd(), lanes, at, rows, 8);

        parts = _mm512_add_pd(parts, _mm512_mul_pd(_mm512_maskz_loadu_pd(lanes, values + i), row));
    }
    return column_tree(parts);
}

static inline double
column_dot_f32(const float *values, const uint32_t *offset, uint32_t count, const float *rows)
{
    __m512d parts = _mm512_setzero_pd();

    for (uint32_t i = 0; i < count; i += 8) {
        const __mmask8 lanes = column_lanes(count - i);
        const __m512i at = _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(lanes, offset + i));
        const __m256 row = _mm512_mask_i64gather_ps(_mm256_setzero_ps(), lanes, at, rows, 4);
        const __m256 product = _mm256_mul_ps(_mm256_maskz_loadu_ps(lanes, values + i), row);

        parts = _mm512_add_pd(parts, _mm512_cvtps_pd(product));
    }
    return column_tree(parts);
}

#pragma GCC diagnostic pop

#else

static inline double column_tree(const double parts[8])
{
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
           ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

#endif
#endif
