/* Instantiates PANEL_TEMPLATE for every panel width of one element type: powers of two from two
 * elements to the largest width that fits in the registers (panel_widths.h). Together with one
 * column, these widths cover any row pitch (a power of two up to 64 bytes, then a multiple of 64)
 * without a remainder. */
#define TYPE_WIDEST_LOG2 (SET_WIDEST_LOG2 - (ELEMENT_LOG2 < 3))
#if ELEMENT_LOG2 < 3
#define PANEL_LOG2 3
#include "cpu/kernel/panel_tmpl.h"
#endif
#define PANEL_LOG2 4
#include "cpu/kernel/panel_tmpl.h"
#define PANEL_LOG2 5
#include "cpu/kernel/panel_tmpl.h"
#define PANEL_LOG2 6
#include "cpu/kernel/panel_tmpl.h"
#if TYPE_WIDEST_LOG2 >= 7
#define PANEL_LOG2 7
#include "cpu/kernel/panel_tmpl.h"
#endif
#if TYPE_WIDEST_LOG2 >= 8
#define PANEL_LOG2 8
#include "cpu/kernel/panel_tmpl.h"
#endif
#if TYPE_WIDEST_LOG2 >= 9
#define PANEL_LOG2 9
#include "cpu/kernel/panel_tmpl.h"
#endif
#undef TYPE_WIDEST_LOG2
