/* Computes MTTKRP over groups, for one panel of columns (panel_tmpl.h). Defines a function per
 * number of modes that vary within a group (group_kernels.h). Each nonzero loads the rows of the
 * varying modes. Each group loads the rows of the other modes once, and the output row. The
 * nonzeros of a group are added in order. In long groups, even and odd nonzeros have separate sums,
 * because an addition takes four cycles and two additions start per cycle. */
#include "cpu/kernel/panel_product_tmpl.h"

/* Adds the product of nonzero i of a group to `sum`. */
static inline __attribute__((always_inline)) void
PANEL(add_varying)(const unsigned char *const *base,
                   const uint32_t *const *offset,
                   uint64_t stride,
                   unsigned varying,
                   bool few,
                   uint32_t i,
                   ELEMENT value,
                   PANEL(sum) * sum)
{
    if (few) {
        PANEL(add_few)(base, offset, stride, varying, i, value, sum);
    } else {
        PANEL(add_many)(base, offset, stride, varying, i, value, sum);
    }
}

static inline __attribute__((always_inline)) void PANEL(groups)(
    const struct slc_group_span *span, uint64_t column, unsigned varying, bool few, uint32_t sets)
{
    const ELEMENT *values = span->values;
    const uint32_t *begin = span->begin;
    const uint64_t stride = span->stride;
    unsigned char *output = span->output + column * SUM_RATIO;
    const unsigned char *base[SLC_MAX_ORDER];
    const uint32_t *offset[SLC_MAX_ORDER];
    uint32_t i = 0;

    for (unsigned m = 0; m < span->factor_count; m++) {
        base[m] = span->factor[m] + column;
        offset[m] = span->offset[m];
    }
    for (uint32_t g = 0; g < span->groups; g++) {
        const uint32_t end = begin[g + 1];
        PANEL(sum) *target =
            (PANEL(sum) *)(void *)(output + (uint64_t)span->rows[g] * stride * SUM_RATIO);
        PANEL(sum) sum[SLC_LONG_RUN_SUMS][VECTORS];

        UNROLL
        for (uint32_t s = 0; s < sets; s++) {
            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                sum[s][k] = (PANEL(sum)){0};
            }
        }
        for (; sets > 1 && i + sets <= end; i += sets) {
            UNROLL
            for (uint32_t s = 0; s < sets; s++) {
                PANEL(add_varying)
                (base, offset, stride, varying, few, i + s, values[i + s], sum[s]);
            }
        }
        for (; i < end; i++) {
            PANEL(add_varying)(base, offset, stride, varying, few, i, values[i], sum[0]);
        }
        UNROLL
        for (uint32_t s = 1; s < sets; s++) {
            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                sum[0][k] += sum[s][k];
            }
        }
        for (unsigned m = varying; m < span->factor_count; m++) {
            const PANEL(vec) *row =
                (const PANEL(vec) *)(const void *)(base[m] + (uint64_t)offset[m][g] * stride);

            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                sum[0][k] *= __builtin_convertvector(row[k], PANEL(sum));
            }
        }
        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            target[k] += sum[0][k];
        }
    }
}

static inline __attribute__((always_inline)) void
PANEL(choose_groups)(const struct slc_group_span *span, uint64_t column, unsigned varying, bool few)
{
    if (span->long_groups) {
        PANEL(groups)(span, column, varying, few, SLC_LONG_RUN_SUMS);
    } else {
        PANEL(groups)(span, column, varying, few, 1);
    }
}

KERNEL(PANEL(varying_1), slc_group_span, PANEL(choose_groups)(span, column, 1, true))
KERNEL(PANEL(varying_2), slc_group_span, PANEL(choose_groups)(span, column, 2, true))
KERNEL(PANEL(varying_3), slc_group_span, PANEL(choose_groups)(span, column, 3, true))
KERNEL(PANEL(varying_4), slc_group_span, PANEL(choose_groups)(span, column, 4, true))
KERNEL(PANEL(varying_any), slc_group_span, PANEL(choose_groups)(span, column, span->varying, false))
