/*
 * Tiles of nonzeros over one panel of columns (panel_tmpl.h), for genten-b and genten-c of coo.h;
 * included by coo_tmpl.h once per width.
 */
#include "cpu/panel_product_tmpl.h"

/* sum = product of nonzero i, or sum += it. */
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
PANEL(coo_target)(const struct slc_coo_span *span, uint64_t column, uint32_t row)
{
    return (ELEMENT *)(void *)(span->output + column + (uint64_t)row * span->stride);
}

/* Adds a panel of sums element by element, up to the last column of the output. */
static inline __attribute__((always_inline)) void PANEL(coo_add_atomic)(
    const struct slc_coo_span *span, uint64_t column, uint32_t row, const PANEL(sum) * sum)
{
    enum { WIDTH = PANEL_BYTES >> ELEMENT_LOG2 };
    const uint32_t left = span->columns - (uint32_t)(column >> ELEMENT_LOG2);
    const uint32_t width = left < WIDTH ? left : WIDTH;
    ELEMENT *target = PANEL(coo_target)(span, column, row);
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
        PANEL(coo_add_atomic)(span, column, span->rows[i], sum);
    }
}

/*
 * Equal rows are neighbours. What other tiles hold of a row is at their ends, so that a row which
 * neither begins nor ends this tile is this thread's alone.
 */
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

        PANEL(coo_clear)(sum);
        do {
            PANEL(coo_product)(span, base, factors, i, sum);
            i++;
        } while (i < span->nnz && span->rows[i] == row);
        if (row == first || row == last) {
            PANEL(coo_add_atomic)(span, column, row, sum);
        } else {
            PANEL(vec) *target = (PANEL(vec) *)(void *)PANEL(coo_target)(span, column, row);

            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                target[k] += __builtin_convertvector(sum[k], PANEL(vec));
            }
        }
    }
}

/* Calls `loop` with the number of factors as a constant; 0 stands for any other number. */
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

/* genten-b. */
static void PANEL(coo_tile)(const struct slc_coo_span *span, uint64_t column)
{
    PANEL_BY_FACTORS(PANEL(coo_tiles))
}

/* genten-c. */
static void PANEL(coo_permuted)(const struct slc_coo_span *span, uint64_t column)
{
    PANEL_BY_FACTORS(PANEL(coo_runs))
}

#undef PANEL_BY_FACTORS
