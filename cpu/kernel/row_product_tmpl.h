/* Products of rows of factors, for the kernels of row solvers. Part of row_kernel_set.c. */
#ifndef SLC_CPU_ROW_PRODUCT_TMPL_H
#define SLC_CPU_ROW_PRODUCT_TMPL_H

#include "cpu/kernel/row_kernels.h"
#include "cpu/kernel/set_names.h"
#include "cpu/kernel/vector_tmpl.h"

#define INLINE static inline __attribute__((always_inline))

/* Maximum number of factors that are multiplied at once; more would need too many registers. */
enum { FACTORS_AT_ONCE = 3 };

typedef double loose_vector __attribute__((vector_size(SET_VECTOR_BYTES), may_alias, aligned(8)));
typedef float loose_half __attribute__((vector_size(SET_VECTOR_BYTES / 2), may_alias, aligned(4)));

INLINE vector load_row(const unsigned char *row, bool f32, uint32_t j)
{
    if (f32) {
        const loose_half half = *(const loose_half *)(const void *)(row + j * 4U);
        return __builtin_convertvector(half, vector);
    }
    return *(const loose_vector *)(const void *)(row + j * 8U);
}

INLINE const unsigned char *
factor_row(const struct slc_row_product_span *span, bool f32, unsigned m, uint32_t i)
{
    return (const unsigned char *)span->factor[m] +
           span->rows[m][i] * span->pitch[m] * (f32 ? 4 : 8);
}

/* Multiplies rows that are shorter than a vector of products. */
static void narrow_products(const struct slc_row_product_span *span)
{
    const bool f32 = span->type == SLC_F32;

    for (uint32_t i = 0; i < span->nnz; i++) {
        double *to = span->products + (uint64_t)i * span->width;

        for (uint32_t r = 0; r < span->width; r++) {
            to[r] = r < span->rank ? 1.0 : 0.0;
        }
        for (unsigned m = 0; m < span->factor_count; m++) {
            const unsigned char *row = factor_row(span, f32, m, i);

            for (uint32_t r = 0; r < span->rank; r++) {
                to[r] *= f32 ? (double)((const float *)(const void *)row)[r]
                             : ((const double *)(const void *)row)[r];
            }
        }
    }
}

/* Multiplies rows of the factors first .. first + count - 1, and the products so far if `first` is
 * not 0. Everything that is read in the loop is copied before, because the compiler must assume
 * that a store of products changes *span. */
INLINE void multiply_rows(const struct slc_row_product_span *span,
                          bool f32,
                          uint32_t vectors,
                          unsigned first,
                          unsigned count)
{
    const uint32_t *rows[FACTORS_AT_ONCE], nnz = span->nnz;
    const unsigned char *factor[FACTORS_AT_ONCE], *row[FACTORS_AT_ONCE];
    uint64_t pitch[FACTORS_AT_ONCE];
    double *to = span->products;

    UNROLL
    for (unsigned m = 0; m < count; m++) {
        rows[m] = span->rows[first + m];
        factor[m] = span->factor[first + m];
        pitch[m] = span->pitch[first + m] * (f32 ? 4 : 8);
    }
    for (uint32_t i = 0; i < nnz; i++, to += vectors * LANES) {
        UNROLL
        for (unsigned m = 0; m < count; m++) {
            row[m] = factor[m] + rows[m][i] * pitch[m];
        }
        for (uint32_t v = 0; v < vectors; v++) {
            vector product = load_row(row[0], f32, v * LANES);

            if (first > 0) {
                product *= load(to + v * LANES);
            }
            UNROLL
            for (unsigned m = 1; m < count; m++) {
                product *= load_row(row[m], f32, v * LANES);
            }
            store(to + v * LANES, product);
        }
    }
}

INLINE void multiply_factors(const struct slc_row_product_span *span, bool f32, uint32_t vectors)
{
    switch (span->factor_count) {
    case 1:
        multiply_rows(span, f32, vectors, 0, 1);
        break;
    case 2:
        multiply_rows(span, f32, vectors, 0, 2);
        break;
    default:
        multiply_rows(span, f32, vectors, 0, FACTORS_AT_ONCE);
    }
    for (unsigned m = FACTORS_AT_ONCE; m < span->factor_count; m++) {
        multiply_rows(span, f32, vectors, m, 1);
    }
}

/* Compiled for each of the usual numbers of vectors, which saves more than half of the time. */
INLINE void wide_products(const struct slc_row_product_span *span, bool f32)
{
    switch (SLC_FEW_FORMS ? 0 : span->width / LANES) {
    case 1:
        multiply_factors(span, f32, 1);
        break;
    case 2:
        multiply_factors(span, f32, 2);
        break;
    case 4:
        multiply_factors(span, f32, 4);
        break;
    default:
        multiply_factors(span, f32, span->width / LANES);
    }
}

static void products(const struct slc_row_product_span *span)
{
    bool narrow = span->factor_count == 0;

    for (unsigned m = 0; m < span->factor_count; m++) {
        narrow = narrow || span->pitch[m] < span->width;
    }
    if (narrow) {
        narrow_products(span);
    } else if (span->type == SLC_F32) {
        wide_products(span, true);
    } else {
        wide_products(span, false);
    }
}

#endif
