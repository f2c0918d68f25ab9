/* Defines the group kernels of one instruction set. This file is compiled once per instruction set,
 * which SLC_SET selects and compiler flags enable. The code may run only if `available_sets`
 * (instruction_set.c) lists the instruction set. */
#include "cpu/kernel/group_kernels.h"
#include "cpu/kernel/panel_widths.h"
#include "cpu/kernel/set_names.h"

#define PANEL_TEMPLATE "cpu/kernel/group_panel_tmpl.h"

#define ELEMENT      float
#define ELEMENT_LOG2 2
#define TYPE         f32
#include "cpu/kernel/group_column_tmpl.h"
#include "cpu/kernel/panels_tmpl.h"
#undef ELEMENT
#undef ELEMENT_LOG2
#undef TYPE

#define ELEMENT      double
#define ELEMENT_LOG2 3
#define TYPE         f64
#include "cpu/kernel/group_column_tmpl.h"
#include "cpu/kernel/panels_tmpl.h"
#undef ELEMENT
#undef ELEMENT_LOG2
#undef TYPE

#define VARYING_CLASSES(widths)                                                                    \
    {                                                                                              \
        widths(varying, 1), widths(varying, 2), widths(varying, 3), widths(varying, 4),            \
            widths(varying, any)                                                                   \
    }

const struct slc_group_kernels SET_EXPAND(slc_group_kernels_, SET_NAME) = {
    .f32 = VARYING_CLASSES(WIDTHS_F32),
    .f64 = VARYING_CLASSES(WIDTHS_F64),
};
