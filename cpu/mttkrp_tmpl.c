/*
 * The kernels of one element type and one instruction set; included by kernel_set.c with ELEMENT
 * and TYPE. One column, and panels of every power of two from two elements to the widest the
 * registers hold, so that any row pitch (a power of two up to 64 bytes, then a multiple of 64) is
 * covered without a tail.
 */
#include "cpu/mttkrp_column_tmpl.h"
#if ELEMENT_LOG2 < 3
#define PANEL_LOG2 3
#include "cpu/mttkrp_panel_tmpl.h"
#endif
#define PANEL_LOG2 4
#include "cpu/mttkrp_panel_tmpl.h"
#define PANEL_LOG2 5
#include "cpu/mttkrp_panel_tmpl.h"
#define PANEL_LOG2 6
#include "cpu/mttkrp_panel_tmpl.h"
#define PANEL_LOG2 7
#include "cpu/mttkrp_panel_tmpl.h"
#if SET_WIDEST_LOG2 >= 8
#define PANEL_LOG2 8
#include "cpu/mttkrp_panel_tmpl.h"
#endif
#if SET_WIDEST_LOG2 >= 9
#define PANEL_LOG2 9
#include "cpu/mttkrp_panel_tmpl.h"
#endif

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
