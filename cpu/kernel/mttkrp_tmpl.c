/* Defines the kernels of one element type and one instruction set. Included by kernel_set.c. */
#include "cpu/kernel/mttkrp_column_tmpl.h"
#define PANEL_TEMPLATE "cpu/kernel/mttkrp_panel_tmpl.h"
#include "cpu/kernel/panels_tmpl.h"
#undef PANEL_TEMPLATE

#define ADD_PASTE(type)  add_##type
#define ADD_EXPAND(type) ADD_PASTE(type)

static void ADD_EXPAND(TYPE)(void *sum, const void *part, uint64_t count)
{
    ELEMENT *restrict to = sum;
    const double *restrict from = part;

    for (uint64_t i = 0; i < count; i++) {
        to[i] = (ELEMENT)((double)to[i] + from[i]);
    }
}

#undef ADD_EXPAND
#undef ADD_PASTE
