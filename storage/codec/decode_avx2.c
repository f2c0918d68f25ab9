/* Decoding loops for AVX2 with BMI2, compiled into every x86-64 build and selected at run time.
 *
 * Eight values of w bits occupy exactly w bytes: the byte positions and the shift of the i-th of
 * eight values are the same in every step of a group. One byte shuffle moves two values to their
 * vector elements; a variable shift and a mask extract them. A value of 58 bits or more can extend
 * into a ninth byte, so the plain loop unpacks such values. */
#include "storage/codec/decode_ops.h"

#if defined(__x86_64__)

#include "storage/codec/decode_loops.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi2")))

/* After the shuffle by `bytes`, element i of the two vectors has the bytes of value `first` + i. */
struct avx2_step {
    __m256i bytes, shift;
    unsigned at_low, at_high; /* byte offset of the 16 bytes of each vector half */
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
    __m256i mask;

    if (width == 0 || width > 57) {
        slc_loop_unpack(packed, width, count, values);
        return;
    }
    struct avx2_step first = avx2_step_init(width, 0);
    struct avx2_step second = avx2_step_init(width, 4);
    mask = _mm256_set1_epi64x((int64_t)slc_low_mask(width));
    for (uint32_t i = 0; i < count; i += 8) {
        _mm256_storeu_si256((__m256i *)(void *)(values + i), avx2_four(packed, &first, mask));
        _mm256_storeu_si256((__m256i *)(void *)(values + i + 4), avx2_four(packed, &second, mask));
        packed += width;
    }
}

/* Prefix sums use the plain loop: it takes the latency of one addition per nonzero, and the
 * shuffles of an AVX2 loop would take as long. */
#define LOOP_TARGET AVX2
#define LOOP_UNPACK avx2_unpack
#include "storage/codec/decode_loops_tmpl.h"

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

AVX2 static void
avx2_gather(const struct slc_gather *gather, const uint64_t *keys, uint32_t count, uint32_t *fields)
{
    slc_loop_gather(gather, keys, count, fields);
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

static const struct slc_decode_ops avx2_ops = {
    .name = "avx2",
    .unpack = avx2_unpack,
    .gather = pext_gather,
    .gather_wide = pext_gather_wide,
    .fields = pext_fields,
    LOOP_OPS,
};

/* Table for the first two generations of AMD Zen, where a pext takes about 250 cycles. */
static const struct slc_decode_ops avx2_slow_pext_ops = {
    .name = "avx2",
    .unpack = avx2_unpack,
    .gather = avx2_gather,
    .gather_wide = loop_gather_wide,
    .fields = avx2_fields,
    LOOP_OPS,
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

#else

const struct slc_decode_ops *slc_decode_ops_avx2(void)
{
    return NULL;
}

#endif
