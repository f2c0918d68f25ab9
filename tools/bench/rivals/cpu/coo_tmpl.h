/* The kernels of coo.h and fiber_forms.h for one element type. coo_set.c includes this file and
 * defines ELEMENT, ELEMENT_LOG2, TYPE and PANEL_TEMPLATE. */
#define COO_PASTE(name, type)  name##_##type
#define COO_EXPAND(name, type) COO_PASTE(name, type)
#define COO(name)              COO_EXPAND(coo_##name, TYPE)

/* Adds `value` to *at with a compare-and-exchange, because other threads may add at the same time.
 * Compares bits, because a NaN differs from itself. No memory order is needed, because sums are
 * read only after the team of threads has ended. */
static inline __attribute__((always_inline)) void COO(add)(ELEMENT *at, ELEMENT value)
{
    ELEMENT old, sum;

    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do {
        sum = old + value;
    } while (!__atomic_compare_exchange(at, &old, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Adds one nonzero in `width` columns from `column` on, with its product in an array. */
static inline __attribute__((always_inline)) void
COO(block)(const struct slc_coo_span *span, uint32_t i, uint32_t column, uint32_t width)
{
    const ELEMENT value = ((const ELEMENT *)span->values)[i];
    ELEMENT *target =
        (ELEMENT *)(void *)(span->output + (uint64_t)span->rows[i] * span->stride) + column;
    ELEMENT product[SLC_COO_BLOCK_COLUMNS];

    for (uint32_t r = 0; r < width; r++) {
        product[r] = value;
    }
    for (unsigned m = 0; m < span->factor_count; m++) {
        const ELEMENT *row =
            (const ELEMENT *)(const void *)(span->factor[m] +
                                            (uint64_t)span->offset[m][i] * span->stride) +
            column;

        for (uint32_t r = 0; r < width; r++) {
            product[r] *= row[r];
        }
    }
    for (uint32_t r = 0; r < width; r++) {
        COO(add)(&target[r], product[r]);
    }
}

/* The kernel genten-a: computes each nonzero alone, in all columns. */
static void COO(each)(const struct slc_coo_span *span, uint64_t column_bytes)
{
    (void)column_bytes;
    for (uint32_t i = 0; i < span->nnz; i++) {
        uint32_t column = 0;

        for (; span->columns - column >= SLC_COO_BLOCK_COLUMNS; column += SLC_COO_BLOCK_COLUMNS) {
            COO(block)(span, i, column, SLC_COO_BLOCK_COLUMNS);
        }
        if (column < span->columns) {
            COO(block)(span, i, column, span->columns - column);
        }
    }
}

#define PANEL_LOG2 ELEMENT_LOG2 /* panels of one column, which panels_tmpl.h does not have */
#include "cpu/kernel/panel_tmpl.h"
#include "cpu/kernel/panels_tmpl.h"

#undef COO
#undef COO_EXPAND
#undef COO_PASTE
