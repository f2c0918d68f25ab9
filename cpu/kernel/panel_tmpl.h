/* Defines the names and types of one panel of columns, which has 2^PANEL_LOG2 bytes of a row, and
 * includes PANEL_TEMPLATE. Included by panels_tmpl.h once per width. Needs ELEMENT, ELEMENT_LOG2,
 * TYPE (f32 or f64) and SET_VECTOR_BYTES.
 *
 * Products of a nonzero are computed in ELEMENT, sums in f64. A row of a small mode is the sum of
 * millions of products, and in f32 the rounding of sums would change the fifth digit (2e-5 for
 * 100,000 products per row, flights-4d). docs/PERFORMANCE.md, "Numbers", lists every rounding of
 * f32. */
#define PANEL_BYTES (1 << PANEL_LOG2)
/* Ratio of the size of a row of sums, which are f64, to the size of a row of factors. */
#define SUM_RATIO (8 >> ELEMENT_LOG2)
/* A vector of sums fills a register; a vector of products may be half as large. */
#define FULL_BYTES   (SET_VECTOR_BYTES / SUM_RATIO)
#define VECTOR_BYTES (PANEL_BYTES < FULL_BYTES ? PANEL_BYTES : FULL_BYTES)
#define VECTORS      (PANEL_BYTES / VECTOR_BYTES)

#define PANEL_PASTE(name, type, log2)  name##_##type##_##log2
#define PANEL_EXPAND(name, type, log2) PANEL_PASTE(name, type, log2)
#define PANEL(name)                    PANEL_EXPAND(name, TYPE, PANEL_LOG2)

typedef ELEMENT PANEL(vec) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef double PANEL(sum) __attribute__((vector_size(VECTOR_BYTES * SUM_RATIO), may_alias));

#include PANEL_TEMPLATE

#undef PANEL
#undef PANEL_EXPAND
#undef PANEL_PASTE
#undef VECTORS
#undef VECTOR_BYTES
#undef FULL_BYTES
#undef SUM_RATIO
#undef PANEL_BYTES
#undef PANEL_LOG2
