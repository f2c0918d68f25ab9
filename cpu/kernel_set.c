/*
 * The kernels of one instruction set. Compiled once per set, with SLC_SET naming it and the
 * compiler's flags switching it on; nothing here may run before cpu_supports said so.
 */
#include "cpu/kernels.h"

#define SET_PORTABLE 1
#define SET_AVX2     2
#define SET_AVX512   3
#define SET_NEON     4

/* The widest panel leaves half of the vector registers to products and broadcasts. */
#if SLC_SET == SET_AVX512
#define SET_NAME         avx512
#define SET_VECTOR_BYTES 64
#define SET_WIDEST_LOG2  9
#elif SLC_SET == SET_AVX2
#define SET_NAME         avx2
#define SET_VECTOR_BYTES 32
#define SET_WIDEST_LOG2  8
#elif SLC_SET == SET_NEON
#define SET_NAME         neon
#define SET_VECTOR_BYTES 16
#define SET_WIDEST_LOG2  8
#else
#define SET_NAME         portable
#define SET_VECTOR_BYTES 16
#define SET_WIDEST_LOG2  7
#endif

/*
 * Nonzeros ahead whose rows are prefetched: about 200 ns of work, a memory access and a page walk.
 * A chunk's arrays bound it, so the last ones of a chunk go without.
 */
#define PREFETCH_AHEAD 16

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL _Pragma("unroll")
#endif

#define ELEMENT      float
#define ELEMENT_LOG2 2
#define TYPE         f32
#include "cpu/mttkrp_tmpl.c"
#undef ELEMENT
#undef ELEMENT_LOG2
#undef TYPE

#define ELEMENT      double
#define ELEMENT_LOG2 3
#define TYPE         f64
#include "cpu/mttkrp_tmpl.c"
#undef ELEMENT
#undef ELEMENT_LOG2
#undef TYPE

/*
 * X L L^T = M, in place, for a block of rows held column by column: columns[j * SLC_SOLVE_ROWS + i]
 * is element j of row i. Each step subtracts a multiple of one column from another, so the rows of
 * the block fill the vectors and hide one another's latency.
 */
static void solve(const double *lower, const double *inverse, uint32_t rank, double *columns)
{
    enum { ROWS = SLC_SOLVE_ROWS };

    for (uint32_t j = 0; j < rank; j++) { /* Y L^T = M */
        double sum[ROWS];

        for (uint32_t i = 0; i < ROWS; i++) {
            sum[i] = columns[j * ROWS + i];
        }
        for (uint32_t k = 0; k < j; k++) {
            const double factor = lower[(uint64_t)j * rank + k];
            const double *known = columns + k * ROWS;
            for (uint32_t i = 0; i < ROWS; i++) {
                sum[i] -= factor * known[i];
            }
        }
        for (uint32_t i = 0; i < ROWS; i++) {
            columns[j * ROWS + i] = sum[i] * inverse[j];
        }
    }
    for (uint32_t j = rank; j-- > 0;) { /* X L = Y */
        double sum[ROWS];

        for (uint32_t i = 0; i < ROWS; i++) {
            sum[i] = columns[j * ROWS + i];
        }
        for (uint32_t k = j + 1; k < rank; k++) {
            const double factor = lower[(uint64_t)k * rank + j];
            const double *known = columns + k * ROWS;
            for (uint32_t i = 0; i < ROWS; i++) {
                sum[i] -= factor * known[i];
            }
        }
        for (uint32_t i = 0; i < ROWS; i++) {
            columns[j * ROWS + i] = sum[i] * inverse[j];
        }
    }
}

#if SET_WIDEST_LOG2 >= 9
#define WIDE_9(type, factors) , factors_##factors##_##type##_9
#else
#define WIDE_9(type, factors)
#endif
#if SET_WIDEST_LOG2 >= 8
#define WIDE_8(type, factors) , factors_##factors##_##type##_8
#else
#define WIDE_8(type, factors)
#endif

#define FROM_8_BYTES(type, factors)                                                                \
    factors_##factors##_##type##_3, factors_##factors##_##type##_4,                                \
        factors_##factors##_##type##_5, factors_##factors##_##type##_6,                            \
        factors_##factors##_##type##_7 WIDE_8(type, factors) WIDE_9(type, factors)

#define WIDTHS_F32(factors)                                                                        \
    {                                                                                              \
        0, 0, factors_##factors##_f32_2, FROM_8_BYTES(f32, factors)                                \
    }
#define WIDTHS_F64(factors)                                                                        \
    {                                                                                              \
        0, 0, 0, FROM_8_BYTES(f64, factors)                                                        \
    }

#define SET_PASTE(prefix, name)  prefix##name
#define SET_EXPAND(prefix, name) SET_PASTE(prefix, name)
#define TEXT_PASTE(name)         #name
#define TEXT(name)               TEXT_PASTE(name)

const struct slc_kernel_set SET_EXPAND(slc_kernels_, SET_NAME) = {
    .name = TEXT(SET_NAME),
    .widest_log2 = SET_WIDEST_LOG2,
    .mttkrp_f32 = {WIDTHS_F32(1), WIDTHS_F32(2), WIDTHS_F32(3), WIDTHS_F32(4), WIDTHS_F32(any)},
    .mttkrp_f64 = {WIDTHS_F64(1), WIDTHS_F64(2), WIDTHS_F64(3), WIDTHS_F64(4), WIDTHS_F64(any)},
    .add_f32 = add_f32,
    .add_f64 = add_f64,
    .solve = solve,
};
