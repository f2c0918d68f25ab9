/* Computes MTTKRP over one panel of columns (panel_tmpl.h). Defines five functions: for 1, 2, 3, 4
 * and any number of factors. The sum of a row starts from the value in the output, and nonzeros are
 * added one by one in order. Therefore the result does not depend on the division of nonzeros into
 * chunks. It also does not depend on whether the sum of consecutive nonzeros with the same output
 * row stays in registers (merge) or is written for each nonzero. */
#include "cpu/kernel/panel_product_tmpl.h"

static inline __attribute__((always_inline)) void
PANEL(prefetch)(const struct slc_mttkrp_span *span, uint64_t column, unsigned factors, uint32_t i)
{
    for (unsigned m = 0; m < factors; m++) {
        const unsigned char *row =
            span->factor[m] + column + (uint64_t)span->offset[m][i] * span->stride;
        UNROLL
        for (int line = 0; line < PANEL_BYTES; line += 64) {
            __builtin_prefetch(row + line, 0, 3);
        }
    }
    const unsigned char *out =
        span->output + (column + (uint64_t)span->rows[i] * span->stride) * SUM_RATIO;
    UNROLL
    for (int line = 0; line < PANEL_BYTES * SUM_RATIO; line += 64) {
        __builtin_prefetch(out + line, 1, 3);
    }
}

static inline __attribute__((always_inline)) void PANEL(sweep)(const struct slc_mttkrp_span *span,
                                                               uint64_t column,
                                                               unsigned factors,
                                                               bool few,
                                                               bool prefetch,
                                                               bool merge)
{
    const ELEMENT *values = span->values;
    const uint32_t *rows = span->rows;
    const uint64_t stride = span->stride;
    const uint32_t nnz = span->nnz;
    const uint32_t ahead_end = nnz > PREFETCH_AHEAD ? nnz - PREFETCH_AHEAD : 0;
    unsigned char *output = span->output + column * SUM_RATIO;
    const unsigned char *base[SLC_MAX_ORDER];
    const uint32_t *offset[SLC_MAX_ORDER];

    for (unsigned m = 0; m < factors; m++) {
        base[m] = span->factor[m] + column;
        offset[m] = span->offset[m];
    }
    for (uint32_t i = 0; i < nnz;) {
        const uint32_t row = rows[i];
        PANEL(sum) *target = (PANEL(sum) *)(void *)(output + (uint64_t)row * stride * SUM_RATIO);
        PANEL(sum) sum[VECTORS];

        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            sum[k] = target[k];
        }
        do {
            if (prefetch && i < ahead_end) {
                PANEL(prefetch)(span, column, factors, i + PREFETCH_AHEAD);
            }
            if (few) {
                PANEL(add_few)(base, offset, stride, factors, i, values[i], sum);
            } else {
                PANEL(add_many)(base, offset, stride, factors, i, values[i], sum);
            }
            i++;
        } while (merge && i < nnz && rows[i] == row);
        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            target[k] = sum[k];
        }
    }
}

static inline __attribute__((always_inline)) void
PANEL(choose)(const struct slc_mttkrp_span *span, uint64_t column, unsigned factors, bool few)
{
    if (SLC_FEW_FORMS) {
        PANEL(sweep)(span, column, factors, few, span->prefetch, span->merge_runs);
    } else if (span->prefetch) {
        if (span->merge_runs) {
            PANEL(sweep)(span, column, factors, few, true, true);
        } else {
            PANEL(sweep)(span, column, factors, few, true, false);
        }
    } else if (span->merge_runs) {
        PANEL(sweep)(span, column, factors, few, false, true);
    } else {
        PANEL(sweep)(span, column, factors, few, false, false);
    }
}

KERNEL(PANEL(factors_1), slc_mttkrp_span, PANEL(choose)(span, column, 1, true))
KERNEL(PANEL(factors_2), slc_mttkrp_span, PANEL(choose)(span, column, 2, true))
KERNEL(PANEL(factors_3), slc_mttkrp_span, PANEL(choose)(span, column, 3, true))
KERNEL(PANEL(factors_4), slc_mttkrp_span, PANEL(choose)(span, column, 4, true))
KERNEL(PANEL(factors_any), slc_mttkrp_span, PANEL(choose)(span, column, span->factor_count, false))

#include "cpu/kernel/fiber_panel_tmpl.h"
