/* Panel widths of an instruction set, and tables of the functions that panels_tmpl.h makes. */
#ifndef SLC_CPU_PANEL_WIDTHS_H
#define SLC_CPU_PANEL_WIDTHS_H

#include "cpu/set_names.h"

/* The widest panel leaves half of the vector registers to products and broadcasts. */
#if SLC_SET == SET_AVX512
#define SET_WIDEST_LOG2 9
#elif SLC_SET == SET_PORTABLE
#define SET_WIDEST_LOG2 7
#else
#define SET_WIDEST_LOG2 8
#endif

/* PREFIX_CLASS_TYPE_LOG2 of all widths of a type, by log2; widths below an element are empty. */
#if SET_WIDEST_LOG2 >= 9
#define WIDE_9(prefix, type, class) , prefix##_##class##_##type##_9
#else
#define WIDE_9(prefix, type, class)
#endif
#if SET_WIDEST_LOG2 >= 8
#define WIDE_8(prefix, type, class) , prefix##_##class##_##type##_8
#else
#define WIDE_8(prefix, type, class)
#endif

#define FROM_8_BYTES(prefix, type, class)                                                          \
    prefix##_##class##_##type##_3, prefix##_##class##_##type##_4, prefix##_##class##_##type##_5,   \
        prefix##_##class##_##type##_6,                                                             \
        prefix##_##class##_##type##_7 WIDE_8(prefix, type, class) WIDE_9(prefix, type, class)

#define WIDTHS_F32(prefix, class)                                                                  \
    {                                                                                              \
        0, 0, prefix##_##class##_f32_2, FROM_8_BYTES(prefix, f32, class)                           \
    }
#define WIDTHS_F64(prefix, class)                                                                  \
    {                                                                                              \
        0, 0, 0, FROM_8_BYTES(prefix, f64, class)                                                  \
    }

#endif
