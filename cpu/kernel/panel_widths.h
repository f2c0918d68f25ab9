/* Defines an instruction set's panel widths and tables of the functions that panels_tmpl.h
 * defines. */
#ifndef SLC_CPU_PANEL_WIDTHS_H
#define SLC_CPU_PANEL_WIDTHS_H

#include "cpu/kernel/set_names.h"

/* The widest panel leaves half of the vector registers for products and broadcasts. Sums are f64,
 * so the sums of an f32 panel need twice as many registers as the panel itself, and the widest f32
 * panel is half as wide. */
#if SLC_SET == SET_AVX512
#define SET_WIDEST_LOG2         9
#define WIDE_F32(prefix, class) , prefix##_##class##_f32_7, prefix##_##class##_f32_8
#define WIDE_F64(prefix, class) , prefix##_##class##_f64_8, prefix##_##class##_f64_9
#elif SLC_SET == SET_PORTABLE
#define SET_WIDEST_LOG2 7
#define WIDE_F32(prefix, class)
#define WIDE_F64(prefix, class)
#else
#define SET_WIDEST_LOG2         8
#define WIDE_F32(prefix, class) , prefix##_##class##_f32_7
#define WIDE_F64(prefix, class) , prefix##_##class##_f64_8
#endif

/* Lists the functions PREFIX_CLASS_TYPE_LOG2 of a type. The index is the log2 of the panel's width
 * in bytes. The pointer is NULL for widths below one number or above the widest panel. */
#define WIDTHS_F32(prefix, class)                                                                  \
    {                                                                                              \
        0, 0, prefix##_##class##_f32_2, prefix##_##class##_f32_3, prefix##_##class##_f32_4,        \
            prefix##_##class##_f32_5, prefix##_##class##_f32_6 WIDE_F32(prefix, class)             \
    }
#define WIDTHS_F64(prefix, class)                                                                  \
    {                                                                                              \
        0, 0, 0, prefix##_##class##_f64_3, prefix##_##class##_f64_4, prefix##_##class##_f64_5,     \
            prefix##_##class##_f64_6, prefix##_##class##_f64_7 WIDE_F64(prefix, class)             \
    }

#endif
