/* The kernels of coo_kernels.h for one instruction set. This file is compiled once per instruction
 * set: SLC_SET is its name, and compiler flags enable its instructions. Nothing in this file may
 * run unless cpu_supports returns true for the instruction set. */
#include "cpu/kernel/panel_widths.h"
#include "cpu/kernel/set_names.h"
#include "tools/bench/rivals/cpu/coo_kernels.h"

#include <string.h>

#define PANEL_TEMPLATE "tools/bench/rivals/cpu/coo_panel_tmpl.h"

#define ELEMENT      float
#define ELEMENT_LOG2 2
#define TYPE         f32
#include "tools/bench/rivals/cpu/coo_tmpl.h"
#undef ELEMENT
#undef ELEMENT_LOG2
#undef TYPE

#define ELEMENT      double
#define ELEMENT_LOG2 3
#define TYPE         f64
#include "tools/bench/rivals/cpu/coo_tmpl.h"
#undef ELEMENT
#undef ELEMENT_LOG2
#undef TYPE

const struct slc_coo_kernels SET_EXPAND(slc_coo_kernels_, SET_NAME) = {
    .each_f32 = coo_each_f32,
    .each_f64 = coo_each_f64,
    .tile_f32 = WIDTHS_F32(coo, tile),
    .tile_f64 = WIDTHS_F64(coo, tile),
    .permuted_f32 = WIDTHS_F32(coo, permuted),
    .permuted_f64 = WIDTHS_F64(coo, permuted),
    .fibers_f32 = WIDTHS_F32(coo, fibers),
    .fibers_f64 = WIDTHS_F64(coo, fibers),
};
