/* The kernel atomic-fiber of fiber_forms.h for one panel of columns. coo_panel_tmpl.h includes this
 * file and supplies the functions that it uses. */
#include "cpu/kernel/panel_share_tmpl.h"

/* Computes a run if the output mode is not the mode of the fibers: adds up scaled rows of the
 * factor of the fibers' mode, multiplies the sum by the shared rows, and adds the product to one
 * row of the output. */
static inline __attribute__((always_inline)) void
PANEL(coo_gather_runs)(const struct slc_coo_fiber_span *span, uint64_t column)
{
    const struct slc_fiber_span *fibers = &span->fibers;
    const ELEMENT *values = fibers->values;
    const unsigned char *base = fibers->run_factor + column;
    uint32_t i = 0;

    for (uint32_t r = 0; r < fibers->runs; r++) {
        const uint32_t end = fibers->begin[r + 1];
        PANEL(sum) sum[VECTORS];

        PANEL(coo_clear)(sum);
        for (; i < end; i++) {
            const PANEL(vec) *row = PANEL(row)(base, fibers->run_offset[i], fibers->stride);
            const ELEMENT value = values[i];

            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                sum[k] += __builtin_convertvector(value * row[k], PANEL(sum));
            }
        }
        PANEL(share)(fibers, column, 0, fibers->factor_count, r, sum);
        PANEL(coo_add_atomic)
        (PANEL(coo_target)(fibers->output, fibers->stride, column, fibers->rows[r]), span->columns,
         column, sum);
    }
}

/* Computes a run if the output mode is the mode of the fibers: forms the product of the shared rows
 * once, and adds a multiple of the product to the output row of every nonzero. */
static inline __attribute__((always_inline)) void
PANEL(coo_scatter_runs)(const struct slc_coo_fiber_span *span, uint64_t column)
{
    const struct slc_fiber_span *fibers = &span->fibers;
    const ELEMENT *values = fibers->values;
    uint32_t i = 0;

    for (uint32_t r = 0; r < fibers->runs; r++) {
        const uint32_t end = fibers->begin[r + 1];
        const PANEL(vec) *first =
            PANEL(row)(fibers->factor[0] + column, fibers->offset[0][r], fibers->stride);
        PANEL(sum) product[VECTORS];

        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            product[k] = __builtin_convertvector(first[k], PANEL(sum));
        }
        PANEL(share)(fibers, column, 1, fibers->factor_count, r, product);
        for (; i < end; i++) {
            const double value = (double)values[i];
            PANEL(sum) sum[VECTORS];

            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                sum[k] = value * product[k];
            }
            PANEL(coo_add_atomic)
            (PANEL(coo_target)(fibers->output, fibers->stride, column, fibers->run_offset[i]),
             span->columns, column, sum);
        }
    }
}

static void PANEL(coo_fibers)(const struct slc_coo_fiber_span *span, uint64_t column)
{
    if (span->fibers.run_factor != NULL) {
        PANEL(coo_gather_runs)(span, column);
    } else {
        PANEL(coo_scatter_runs)(span, column);
    }
}
