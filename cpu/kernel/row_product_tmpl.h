/* Products of rows of factors, for the kernels of row solvers. Part of row_kernel_set.c. */
#ifndef SLC_CPU_ROW_PRODUCT_TMPL_H
#define SLC_CPU_ROW_PRODUCT_TMPL_H

#include "cpu/kernel/row_kernels.h"
#include "cpu/kernel/set_names.h"
#include "cpu/kernel/vector_tmpl.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    /* Rows are prefetched this number of nonzeros in advance. */
    AHEAD = 8,
    LINE_BYTES = 64,
    /* Maximum number of bytes of a row that are prefetched: the processor itself prefetches the
     * rest of a longer row. */
    PREFETCH_BYTES = 128
};

typedef double loose_vector __attribute__((vector_size(SET_VECTOR_BYTES), may_alias, aligned(8)));
typedef float loose_half __attribute__((vector_size(SET_VECTOR_BYTES / 2), may_alias, aligned(4)));

INLINE uint64_t row_number(const void *rows, bool wide, uint32_t i)
{
    return wide ? ((const uint64_t *)rows)[i] : ((const uint32_t *)rows)[i];
}

INLINE const unsigned char *
factor_row(const struct slc_row_product_span *span, bool wide, bool f32, unsigned m, uint32_t i)
{
    const uint64_t row = row_number(span->rows[m], wide, i);

    return (const unsigned char *)span->factor[m] + row * span->pitch[m] * (f32 ? 4 : 8);
}

INLINE vector load_row(const unsigned char *row, bool f32, uint32_t j)
{
    if (f32) {
        const loose_half half = *(const loose_half *)(const void *)(row + j * 4U);
        return __builtin_convertvector(half, vector);
    }
    return *(const loose_vector *)(const void *)(row + j * 8U);
}

/* Multiplies rows that are shorter than a vector of products. */
static void narrow_products(const struct slc_row_product_span *span)
{
    const bool f32 = span->type == SLC_F32;

    for (uint32_t i = 0; i < span->nnz; i++) {
        double *to = span->products + (uint64_t)i * span->width;

        for (uint32_t r = 0; r < span->width; r++) {
            to[r] = r >= span->rank ? 0.0 : span->weights != NULL ? span->weights[r] : 1.0;
        }
        for (unsigned m = 0; m < span->factor_count; m++) {
            const unsigned char *row = factor_row(span, span->wide, f32, m, i);

            for (uint32_t r = 0; r < span->rank; r++) {
                to[r] *= f32 ? (double)((const float *)(const void *)row)[r]
                             : ((const double *)(const void *)row)[r];
            }
        }
    }
}

INLINE void prefetch_rows(
    const struct slc_row_product_span *span, bool wide, bool f32, unsigned count, uint32_t i)
{
    const uint32_t row_bytes = span->width * (f32 ? 4U : 8U);
    const uint32_t bytes = row_bytes < PREFETCH_BYTES ? row_bytes : PREFETCH_BYTES;

    for (unsigned m = 0; m < count; m++) {
        const unsigned char *row = factor_row(span, wide, f32, m, i);

        for (uint32_t line = 0; line < bytes; line += LINE_BYTES) {
            __builtin_prefetch(row + line);
        }
    }
}

INLINE void
wide_products(const struct slc_row_product_span *span, bool wide, bool f32, unsigned count)
{
    const unsigned char *row[SLC_MAX_ORDER];

    for (uint32_t i = 0; i < span->nnz; i++) {
        double *to = span->products + (uint64_t)i * span->width;

        if (i + AHEAD < span->nnz) {
            prefetch_rows(span, wide, f32, count, i + AHEAD);
        }
        for (unsigned m = 0; m < count; m++) {
            row[m] = factor_row(span, wide, f32, m, i);
        }
        for (uint32_t j = 0; j < span->width; j += LANES) {
            vector product = load_row(row[0], f32, j);

            for (unsigned m = 1; m < count; m++) {
                product *= load_row(row[m], f32, j);
            }
            if (span->weights != NULL) {
                product *= load(span->weights + j);
            }
            store(to + j, product);
        }
    }
}

#if SLC_FEW_FORMS
#define COUNTS(wide, f32) wide_products(span, wide, f32, span->factor_count)
#else
#define COUNTS(wide, f32)                                                                          \
    do {                                                                                           \
        if (span->factor_count == 2) {                                                             \
            wide_products(span, wide, f32, 2);                                                     \
        } else if (span->factor_count == 3) {                                                      \
            wide_products(span, wide, f32, 3);                                                     \
        } else {                                                                                   \
            wide_products(span, wide, f32, span->factor_count);                                    \
        }                                                                                          \
    } while (0)
#endif

static void products(const struct slc_row_product_span *span)
{
    const bool f32 = span->type == SLC_F32;

    for (unsigned m = 0; m < span->factor_count; m++) {
        if (span->pitch[m] < span->width) {
            narrow_products(span);
            return;
        }
    }
    if (span->wide) {
        if (f32) {
            COUNTS(true, true);
        } else {
            COUNTS(true, false);
        }
    } else if (f32) {
        COUNTS(false, true);
    } else {
        COUNTS(false, false);
    }
}

#endif
