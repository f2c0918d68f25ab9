/* Kernels for one panel of columns (panel_tmpl.h): genten-b and genten-c of coo.h over tiles of
 * nonzeros, and the kernels of fiber_forms.h over fiber runs. coo_tmpl.h includes this file once
 * per panel width. */
#include "cpu/kernel/panel_product_tmpl.h"

/* Sets sum to the product of nonzero i, or adds the product to sum. */
static inline __attribute__((always_inline)) void
PANEL(coo_product)(const struct slc_coo_span *span,
                   const unsigned char *const *base,
                   unsigned factors,
                   uint32_t i,
                   PANEL(sum) * sum)
{
    const ELEMENT value = ((const ELEMENT *)span->values)[i];

    if (factors > 0) {
        PANEL(add_few)(base, span->offset, span->stride, factors, i, value, sum);
    } else {
        PANEL(add_many)(base, span->offset, span->stride, span->factor_count, i, value, sum);
    }
}

static inline __attribute__((always_inline)) void PANEL(coo_clear)(PANEL(sum) * sum)
{
    UNROLL
    for (int k = 0; k < VECTORS; k++) {
        sum[k] = (PANEL(sum)){0};
    }
}

static inline __attribute__((always_inline)) ELEMENT *
PANEL(coo_target)(unsigned char *output, uint64_t stride, uint64_t column, uint32_t row)
{
    return (ELEMENT *)(void *)(output + column + (uint64_t)row * stride);
}

/* Adds a panel of sums, which starts at `column`, to the output, element by element. Skips columns
 * of the padding (`columns` and higher). */
static inline __attribute__((always_inline)) void
PANEL(coo_add_atomic)(ELEMENT *target, uint32_t columns, uint64_t column, const PANEL(sum) * sum)
{
    enum { WIDTH = PANEL_BYTES >> ELEMENT_LOG2 };
    const uint32_t left = columns - (uint32_t)(column >> ELEMENT_LOG2);
    const uint32_t width = left < WIDTH ? left : WIDTH;
    double parts[WIDTH];

    memcpy(parts, sum, sizeof parts);
    for (uint32_t r = 0; r < width; r++) {
        COO(add)(&target[r], (ELEMENT)parts[r]);
    }
}

static inline __attribute__((always_inline)) void
PANEL(coo_tiles)(const struct slc_coo_span *span, uint64_t column, unsigned factors)
{
    const unsigned char *base[SLC_MAX_ORDER];
    PANEL(sum) sum[VECTORS];

    for (unsigned m = 0; m < span->factor_count; m++) {
        base[m] = span->factor[m] + column;
    }
    for (uint32_t i = 0; i < span->nnz; i++) {
        PANEL(coo_clear)(sum);
        PANEL(coo_product)(span, base, factors, i, sum);
        PANEL(coo_add_atomic)
        (PANEL(coo_target)(span->output, span->stride, column, span->rows[i]), span->columns,
         column, sum);
    }
}

/* Adds up the nonzeros of each output row, which are neighbours. Other tiles can share only the
 * first and the last row of this tile. No other thread uses the rows in between. */
static inline __attribute__((always_inline)) void
PANEL(coo_runs)(const struct slc_coo_span *span, uint64_t column, unsigned factors)
{
    const uint32_t first = span->rows[0];
    const uint32_t last = span->rows[span->nnz - 1];
    const unsigned char *base[SLC_MAX_ORDER];
    PANEL(sum) sum[VECTORS];

    for (unsigned m = 0; m < span->factor_count; m++) {
        base[m] = span->factor[m] + column;
    }
    for (uint32_t i = 0; i < span->nnz;) {
        const uint32_t row = span->rows[i];
        ELEMENT *target = PANEL(coo_target)(span->output, span->stride, column, row);

        PANEL(coo_clear)(sum);
        do {
            PANEL(coo_product)(span, base, factors, i, sum);
            i++;
        } while (i < span->nnz && span->rows[i] == row);
        if (row == first || row == last) {
            PANEL(coo_add_atomic)(target, span->columns, column, sum);
        } else {
            PANEL(vec) *panel = (PANEL(vec) *)(void *)target;

            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                panel[k] += __builtin_convertvector(sum[k], PANEL(vec));
            }
        }
    }
}

/* Calls `loop` with the number of factors as a constant, or with 0 if there is no loop for this
 * number. */
#define PANEL_BY_FACTORS(loop)                                                                     \
    switch (span->factor_count) {                                                                  \
    case 1:                                                                                        \
        loop(span, column, 1);                                                                     \
        break;                                                                                     \
    case 2:                                                                                        \
        loop(span, column, 2);                                                                     \
        break;                                                                                     \
    case 3:                                                                                        \
        loop(span, column, 3);                                                                     \
        break;                                                                                     \
    case 4:                                                                                        \
        loop(span, column, 4);                                                                     \
        break;                                                                                     \
    default:                                                                                       \
        loop(span, column, 0);                                                                     \
        break;                                                                                     \
    }

/* The kernel genten-b. */
static void PANEL(coo_tile)(const struct slc_coo_span *span, uint64_t column)
{
    PANEL_BY_FACTORS(PANEL(coo_tiles))
}

/* The kernel genten-c. */
static void PANEL(coo_permuted)(const struct slc_coo_span *span, uint64_t column)
{
    PANEL_BY_FACTORS(PANEL(coo_runs))
}

#undef PANEL_BY_FACTORS

#include "tools/bench/rivals/cpu/coo_fiber_panel_tmpl.h"
