/* Defines the kernels of one instruction set. This file is compiled once per instruction set, which
 * SLC_SET selects and compiler flags enable. The code may run only if `available_sets`
 * (instruction_set.c) lists the instruction set. */
#include "cpu/kernel/kernels.h"

#include "cpu/kernel/column.h"
#include "cpu/kernel/dense_kernels.h"
#include "cpu/kernel/group_kernels.h"
#include "cpu/kernel/panel_widths.h"
#include "cpu/kernel/row_kernels.h"
#include "cpu/kernel/set_names.h"

/* Rows are prefetched this number of nonzeros in advance: about 200 ns of work, which is the time
 * of a memory access with a page walk. Prefetching stays within a chunk's arrays, so a chunk
 * prefetches nothing for the next chunk. */
#define PREFETCH_AHEAD 16
/* The rows that a run shares are prefetched this number of runs in advance. */
#define RUNS_AHEAD 4

#define ELEMENT      float
#define ELEMENT_LOG2 2
#define TYPE         f32
#include "cpu/kernel/mttkrp_tmpl.c"
#undef ELEMENT
#undef ELEMENT_LOG2
#undef TYPE

#define ELEMENT      double
#define ELEMENT_LOG2 3
#define TYPE         f64
#include "cpu/kernel/mttkrp_tmpl.c"
#undef ELEMENT
#undef ELEMENT_LOG2
#undef TYPE

#define FACTOR_CLASSES(widths)                                                                     \
    {                                                                                              \
        widths(factors, 1), widths(factors, 2), widths(factors, 3), widths(factors, 4),            \
            widths(factors, any)                                                                   \
    }
#define SHARED_CLASSES(widths)                                                                     \
    {                                                                                              \
        widths(shared, 0), widths(shared, 1), widths(shared, 2), widths(shared, 3),                \
            widths(shared, any)                                                                    \
    }

#define TEXT_PASTE(name) #name
#define TEXT(name)       TEXT_PASTE(name)

const struct slc_kernel_set SET_EXPAND(slc_kernels_, SET_NAME) = {
    .name = TEXT(SET_NAME),
    .widest_log2 = SET_WIDEST_LOG2,
    .mttkrp_f32 = FACTOR_CLASSES(WIDTHS_F32),
    .mttkrp_f64 = FACTOR_CLASSES(WIDTHS_F64),
    .fiber_f32 = SHARED_CLASSES(WIDTHS_F32),
    .fiber_f64 = SHARED_CLASSES(WIDTHS_F64),
    .add_f32 = add_f32,
    .add_f64 = add_f64,
    .groups = &SET_EXPAND(slc_group_kernels_, SET_NAME),
    .dense = &SET_EXPAND(slc_dense_kernels_, SET_NAME),
    .rows = &SET_EXPAND(slc_row_kernels_, SET_NAME),
};
