/* Computes MTTKRP over runs of fibers, for one panel of columns. Included by mttkrp_panel_tmpl.h,
 * whose macros and types are used here. Defines five functions, one per number of factors whose row
 * a run shares (struct slc_fiber_span in kernels.h). A run costs one product of the rows that the
 * run shares and one addition to the output. A nonzero costs one multiplication and addition with a
 * row of the output or of the factor of the fibers' mode. The nonzeros of a run are added in order.
 * In long runs, even and odd nonzeros have separate sums, because an addition takes four cycles and
 * two additions start per cycle. The number of sums does not depend on the vector size, so all
 * instruction sets return the same bits. */

#include "cpu/kernel/panel_share_tmpl.h"

/* Prefetches `bytes` bytes of a row. */
static inline __attribute__((always_inline)) void
PANEL(fetch)(const unsigned char *base, uint32_t offset, uint64_t stride, int bytes)
{
    UNROLL
    for (int line = 0; line < bytes; line += 64) {
        __builtin_prefetch(base + (uint64_t)offset * stride + line, 0, 3);
    }
}

/* Prefetches the rows that run `r` shares and, if each run has one output row, this row. */
static inline __attribute__((always_inline)) void
PANEL(fetch_run)(const struct slc_fiber_span *span, uint64_t column, unsigned factors, uint32_t r)
{
    for (unsigned m = 0; m < factors; m++) {
        PANEL(fetch)(span->factor[m] + column, span->offset[m][r], span->stride, PANEL_BYTES);
    }
    if (span->run_factor != NULL) {
        PANEL(fetch)
        (span->output + column * SUM_RATIO, span->rows[r], span->stride * SUM_RATIO,
         PANEL_BYTES * SUM_RATIO);
    }
}

/* Used if the output's mode is not the fibers' mode. Sums rows of the factor of the fibers' mode
 * over each run. */
static inline __attribute__((always_inline)) void
PANEL(gather_runs)(const struct slc_fiber_span *span,
                   uint64_t column,
                   unsigned factors,
                   bool prefetch,
                   uint32_t sets)
{
    const ELEMENT *values = span->values;
    const uint32_t *offset = span->run_offset;
    const uint32_t *begin = span->begin;
    const uint64_t stride = span->stride;
    const uint32_t nnz = begin[span->runs];
    const unsigned char *base = span->run_factor + column;
    unsigned char *output = span->output + column * SUM_RATIO;
    uint32_t i = 0;

    for (uint32_t r = 0; r < span->runs; r++) {
        const uint32_t end = begin[r + 1];
        PANEL(sum) *target =
            (PANEL(sum) *)(void *)(output + (uint64_t)span->rows[r] * stride * SUM_RATIO);
        PANEL(sum) sum[SLC_LONG_RUN_SUMS][VECTORS];

        if (prefetch && r + RUNS_AHEAD < span->runs) {
            PANEL(fetch_run)(span, column, factors, r + RUNS_AHEAD);
        }
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
                const PANEL(vec) *row = PANEL(row)(base, offset[i + s], stride);
                const ELEMENT value = values[i + s];

                if (prefetch && i + s + PREFETCH_AHEAD < nnz) {
                    PANEL(fetch)(base, offset[i + s + PREFETCH_AHEAD], stride, PANEL_BYTES);
                }
                UNROLL
                for (int k = 0; k < VECTORS; k++) {
                    sum[s][k] += __builtin_convertvector(value * row[k], PANEL(sum));
                }
            }
        }
        for (; i < end; i++) {
            const PANEL(vec) *row = PANEL(row)(base, offset[i], stride);
            const ELEMENT value = values[i];

            if (prefetch && i + PREFETCH_AHEAD < nnz) {
                PANEL(fetch)(base, offset[i + PREFETCH_AHEAD], stride, PANEL_BYTES);
            }
            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                sum[0][k] += __builtin_convertvector(value * row[k], PANEL(sum));
            }
        }
        UNROLL
        for (uint32_t s = 1; s < sets; s++) {
            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                sum[0][k] += sum[s][k];
            }
        }
        PANEL(share)(span, column, 0, factors, r, sum[0]);
        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            target[k] += sum[0][k];
        }
    }
}

/* Used if the output's mode is the fibers' mode. Adds, to the output row of each nonzero of a run,
 * its value times the product that the run shares. */
static inline __attribute__((always_inline)) void PANEL(scatter_runs)(
    const struct slc_fiber_span *span, uint64_t column, unsigned factors, bool prefetch)
{
    const ELEMENT *values = span->values;
    const uint32_t *offset = span->run_offset;
    const uint32_t *begin = span->begin;
    const uint64_t stride = span->stride * SUM_RATIO;
    const uint32_t nnz = begin[span->runs];
    unsigned char *output = span->output + column * SUM_RATIO;
    uint32_t i = 0;

    for (uint32_t r = 0; r < span->runs; r++) {
        const uint32_t end = begin[r + 1];
        const PANEL(vec) *first =
            PANEL(row)(span->factor[0] + column, span->offset[0][r], span->stride);
        PANEL(sum) product[VECTORS];

        if (prefetch && r + RUNS_AHEAD < span->runs) {
            PANEL(fetch_run)(span, column, factors, r + RUNS_AHEAD);
        }
        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            product[k] = __builtin_convertvector(first[k], PANEL(sum));
        }
        PANEL(share)(span, column, 1, factors, r, product);
        for (; i < end; i++) {
            PANEL(sum) *target = (PANEL(sum) *)(void *)(output + (uint64_t)offset[i] * stride);
            const double value = (double)values[i];

            if (prefetch && i + PREFETCH_AHEAD < nnz) {
                PANEL(fetch)
                (output, offset[i + PREFETCH_AHEAD], stride, PANEL_BYTES * SUM_RATIO);
            }
            UNROLL
            for (int k = 0; k < VECTORS; k++) {
                target[k] += value * product[k];
            }
        }
    }
}

static inline __attribute__((always_inline)) void
PANEL(runs)(const struct slc_fiber_span *span, uint64_t column, unsigned factors, bool prefetch)
{
    if (span->run_factor == NULL) {
        PANEL(scatter_runs)(span, column, factors, prefetch);
    } else if (span->long_runs) {
        PANEL(gather_runs)(span, column, factors, prefetch, SLC_LONG_RUN_SUMS);
    } else {
        PANEL(gather_runs)(span, column, factors, prefetch, 1);
    }
}

static inline __attribute__((always_inline)) void
PANEL(choose_runs)(const struct slc_fiber_span *span, uint64_t column, unsigned factors)
{
    if (SLC_FEW_FORMS) {
        PANEL(runs)(span, column, factors, span->prefetch);
    } else if (span->prefetch) {
        PANEL(runs)(span, column, factors, true);
    } else {
        PANEL(runs)(span, column, factors, false);
    }
}

/* The kernels for each number of shared factors. No shared factor means order 2, with an output
 * whose mode is not the fibers' mode. */
static void PANEL(shared_0)(const struct slc_fiber_span *span, uint64_t column)
{
    if (span->long_runs) {
        PANEL(gather_runs)(span, column, 0, span->prefetch, SLC_LONG_RUN_SUMS);
    } else {
        PANEL(gather_runs)(span, column, 0, span->prefetch, 1);
    }
}

KERNEL(PANEL(shared_1), slc_fiber_span, PANEL(choose_runs)(span, column, 1))
KERNEL(PANEL(shared_2), slc_fiber_span, PANEL(choose_runs)(span, column, 2))
KERNEL(PANEL(shared_3), slc_fiber_span, PANEL(choose_runs)(span, column, 3))
KERNEL(PANEL(shared_any), slc_fiber_span, PANEL(choose_runs)(span, column, span->factor_count))
