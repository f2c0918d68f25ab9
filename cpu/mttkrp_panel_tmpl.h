/*
 * MTTKRP over one panel of columns; included by mttkrp_tmpl.c once per panel width. Needs ELEMENT,
 * ELEMENT_LOG2, TYPE (f32 or f64), PANEL_LOG2 and SET_VECTOR_BYTES; defines five functions, one per
 * factor class.
 *
 * Products are formed in ELEMENT, sums in f64: a row of a short mode adds up millions of products,
 * and in f32 their rounding would show in the fifth digit (2e-5, flights-4d, 100,000 a row).
 *
 * The sum of a row starts from what the output holds and nonzeros are added one by one, in their
 * order. So the result depends neither on where chunks are cut nor on whether runs of one row are
 * kept in registers (merge) or written each time.
 */
#define PANEL_BYTES (1 << PANEL_LOG2)
/* f64 elements per element: how many times longer a row of sums is than a row of factors. */
#define SUM_RATIO (8 >> ELEMENT_LOG2)
/* Vectors of sums fill the registers; those of products may be half as long. */
#define FULL_BYTES   (SET_VECTOR_BYTES / SUM_RATIO)
#define VECTOR_BYTES (PANEL_BYTES < FULL_BYTES ? PANEL_BYTES : FULL_BYTES)
#define VECTORS      (PANEL_BYTES / VECTOR_BYTES)

#define PANEL_PASTE(name, type, log2)  name##_##type##_##log2
#define PANEL_EXPAND(name, type, log2) PANEL_PASTE(name, type, log2)
#define PANEL(name)                    PANEL_EXPAND(name, TYPE, PANEL_LOG2)

typedef ELEMENT PANEL(vec) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef double PANEL(sum) __attribute__((vector_size(VECTOR_BYTES * SUM_RATIO), may_alias));

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

/* sum += value * product of the factor rows of nonzero i, for a constant number of factors. */
static inline __attribute__((always_inline)) void PANEL(add_few)(const unsigned char *const *base,
                                                                 const uint32_t *const *offset,
                                                                 uint64_t stride,
                                                                 unsigned factors,
                                                                 uint32_t i,
                                                                 ELEMENT value,
                                                                 PANEL(sum) * sum)
{
    const PANEL(vec) * row[4] = {0};

    UNROLL
    for (unsigned m = 0; m < factors; m++) {
        row[m] = (const PANEL(vec) *)(const void *)(base[m] + (uint64_t)offset[m][i] * stride);
    }
    UNROLL
    for (int k = 0; k < VECTORS; k++) {
        PANEL(vec) product = value * row[0][k];
        UNROLL
        for (unsigned m = 1; m < factors; m++) {
            product *= row[m][k];
        }
        sum[k] += __builtin_convertvector(product, PANEL(sum));
    }
}

/* The same for any number of factors. */
static inline __attribute__((always_inline)) void PANEL(add_many)(const unsigned char *const *base,
                                                                  const uint32_t *const *offset,
                                                                  uint64_t stride,
                                                                  unsigned factors,
                                                                  uint32_t i,
                                                                  ELEMENT value,
                                                                  PANEL(sum) * sum)
{
    PANEL(vec) product[VECTORS];
    const PANEL(vec) *first =
        (const PANEL(vec) *)(const void *)(base[0] + (uint64_t)offset[0][i] * stride);

    UNROLL
    for (int k = 0; k < VECTORS; k++) {
        product[k] = value * first[k];
    }
    for (unsigned m = 1; m < factors; m++) {
        const PANEL(vec) *row =
            (const PANEL(vec) *)(const void *)(base[m] + (uint64_t)offset[m][i] * stride);
        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            product[k] *= row[k];
        }
    }
    UNROLL
    for (int k = 0; k < VECTORS; k++) {
        sum[k] += __builtin_convertvector(product[k], PANEL(sum));
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
    if (span->prefetch) {
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

static void PANEL(factors_1)(const struct slc_mttkrp_span *span, uint64_t column)
{
    PANEL(choose)(span, column, 1, true);
}

static void PANEL(factors_2)(const struct slc_mttkrp_span *span, uint64_t column)
{
    PANEL(choose)(span, column, 2, true);
}

static void PANEL(factors_3)(const struct slc_mttkrp_span *span, uint64_t column)
{
    PANEL(choose)(span, column, 3, true);
}

static void PANEL(factors_4)(const struct slc_mttkrp_span *span, uint64_t column)
{
    PANEL(choose)(span, column, 4, true);
}

static void PANEL(factors_any)(const struct slc_mttkrp_span *span, uint64_t column)
{
    PANEL(choose)(span, column, span->factor_count, false);
}

#include "cpu/fiber_panel_tmpl.h"

#undef PANEL
#undef PANEL_EXPAND
#undef PANEL_PASTE
#undef VECTORS
#undef VECTOR_BYTES
#undef FULL_BYTES
#undef SUM_RATIO
#undef PANEL_BYTES
#undef PANEL_LOG2
