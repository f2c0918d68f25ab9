/* The kernels of xplat_kernels.h for one instruction set. This file is compiled once per
 * instruction set: SLC_SET is its name, and compiler flags enable its instructions. Nothing in this
 * file may run unless the processor supports the instruction set. */
#include "cpu/kernel/set_names.h"
#include "tools/bench/rivals/cpu/xplat_kernels.h"

#if SLC_SET == SET_AVX512
#define SET_VECTOR_LOG2 6
#elif SLC_SET == SET_AVX2
#define SET_VECTOR_LOG2 5
#else
#define SET_VECTOR_LOG2 4
#endif

#define ELEMENT     float
#define TYPE        f32
#define VECTOR_LOG2 2
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#define VECTOR_LOG2 3
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#define VECTOR_LOG2 4
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#if SET_VECTOR_LOG2 >= 5
#define VECTOR_LOG2 5
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#endif
#if SET_VECTOR_LOG2 >= 6
#define VECTOR_LOG2 6
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#endif
#undef ELEMENT
#undef TYPE

#define ELEMENT     double
#define TYPE        f64
#define VECTOR_LOG2 3
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#define VECTOR_LOG2 4
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#if SET_VECTOR_LOG2 >= 5
#define VECTOR_LOG2 5
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#endif
#if SET_VECTOR_LOG2 >= 6
#define VECTOR_LOG2 6
#include "tools/bench/rivals/cpu/xplat_tmpl.h"
#endif
#undef ELEMENT
#undef TYPE

#if SET_VECTOR_LOG2 >= 6
#define WIDE(prefix) , prefix##_5, prefix##_6
#elif SET_VECTOR_LOG2 >= 5
#define WIDE(prefix) , prefix##_5
#else
#define WIDE(prefix)
#endif
#define WIDTHS_F32(prefix)                                                                         \
    {                                                                                              \
        0, 0, prefix##_f32_2, prefix##_f32_3, prefix##_f32_4 WIDE(prefix##_f32)                    \
    }
#define WIDTHS_F64(prefix)                                                                         \
    {                                                                                              \
        0, 0, 0, prefix##_f64_3, prefix##_f64_4 WIDE(prefix##_f64)                                 \
    }
#define SET_TEXT(name)  #name
#define SET_QUOTE(name) SET_TEXT(name)

const struct slc_xplat_table SET_EXPAND(slc_xplat_, SET_NAME) = {
    .set = SET_QUOTE(SET_NAME),
    .vector_log2 = SET_VECTOR_LOG2,
    .f32 = {WIDTHS_F32(xplat_ttm_element), WIDTHS_F32(xplat_ttm_fiber),
            WIDTHS_F32(xplat_mttkrp_element), WIDTHS_F32(xplat_mttkrp_row)},
    .f64 = {WIDTHS_F64(xplat_ttm_element), WIDTHS_F64(xplat_ttm_fiber),
            WIDTHS_F64(xplat_mttkrp_element), WIDTHS_F64(xplat_mttkrp_row)},
};
