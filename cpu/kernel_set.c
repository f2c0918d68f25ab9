/*
 * The kernels of one instruction set. Compiled once per set, with SLC_SET naming it and the
 * compiler's flags switching it on; nothing here may run before cpu_supports said so.
 */
#include "cpu/kernels.h"

#include "cpu/column.h"
#include "cpu/dense_kernels.h"
#include "cpu/set_names.h"

/* The widest panel leaves half of the vector registers to products and broadcasts. */
#if SLC_SET == SET_AVX512
#define SET_WIDEST_LOG2 9
#elif SLC_SET == SET_PORTABLE
#define SET_WIDEST_LOG2 7
#else
#define SET_WIDEST_LOG2 8
#endif

/*
 * Nonzeros ahead whose rows are prefetched: about 200 ns of work, a memory access and a page walk.
 * A chunk's arrays bound it, so the last ones of a chunk go without.
 */
#define PREFETCH_AHEAD 16
/* The same in runs of fibers, for the rows that a run shares. */
#define RUNS_AHEAD 4

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

#if SET_WIDEST_LOG2 >= 9
#define RUNS_9(type, factors) , shared_##factors##_##type##_9
#else
#define RUNS_9(type, factors)
#endif
#if SET_WIDEST_LOG2 >= 8
#define RUNS_8(type, factors) , shared_##factors##_##type##_8
#else
#define RUNS_8(type, factors)
#endif
#define RUNS_FROM_8(type, factors)                                                                 \
    shared_##factors##_##type##_3, shared_##factors##_##type##_4, shared_##factors##_##type##_5,   \
        shared_##factors##_##type##_6,                                                             \
        shared_##factors##_##type##_7 RUNS_8(type, factors) RUNS_9(type, factors)
#define RUNS_F32(factors)                                                                          \
    {                                                                                              \
        0, 0, shared_##factors##_f32_2, RUNS_FROM_8(f32, factors)                                  \
    }
#define RUNS_F64(factors)                                                                          \
    {                                                                                              \
        0, 0, 0, RUNS_FROM_8(f64, factors)                                                         \
    }

#define TEXT_PASTE(name) #name
#define TEXT(name)       TEXT_PASTE(name)

const struct slc_kernel_set SET_EXPAND(slc_kernels_, SET_NAME) = {
    .name = TEXT(SET_NAME),
    .widest_log2 = SET_WIDEST_LOG2,
    .mttkrp_f32 = {WIDTHS_F32(1), WIDTHS_F32(2), WIDTHS_F32(3), WIDTHS_F32(4), WIDTHS_F32(any)},
    .mttkrp_f64 = {WIDTHS_F64(1), WIDTHS_F64(2), WIDTHS_F64(3), WIDTHS_F64(4), WIDTHS_F64(any)},
    .fiber_f32 = {RUNS_F32(0), RUNS_F32(1), RUNS_F32(2), RUNS_F32(3), RUNS_F32(any)},
    .fiber_f64 = {RUNS_F64(0), RUNS_F64(1), RUNS_F64(2), RUNS_F64(3), RUNS_F64(any)},
    .add_f32 = add_f32,
    .add_f64 = add_f64,
    .dense = &SET_EXPAND(slc_dense_kernels_, SET_NAME),
};
