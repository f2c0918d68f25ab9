/* Inner loops of row solvers (cpu/row/), one table per instruction set (row_kernel_set.c). Vectors
 * have `width` f64 numbers: the rank rounded up to a multiple of 8 (slc_row_width). Products are
 * nnz x width, row-major. Vectors, matrices and products begin at a multiple of 64 bytes; numbers
 * after the rank are zero and remain zero. `nnz` may be 0. Multiplications and additions are fused
 * if the instruction set can do so; the results of different instruction sets therefore differ in
 * the last bits. The result for a row does not depend on calls for other rows. */
#ifndef SLC_CPU_ROW_KERNELS_H
#define SLC_CPU_ROW_KERNELS_H

#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Smaller positive numbers are raised to this number before their logarithm is computed. */
#define SLC_ROW_LOG_FLOOR 1e-300

/* Arguments of the products of factor rows. */
struct slc_row_product_span {
    uint32_t nnz;
    uint32_t rank, width;
    unsigned factor_count; /* 0: products are ones */
    enum slc_value_type type;
    const uint32_t *rows[SLC_MAX_ORDER]; /* nnz row numbers, per factor */
    const void *factor[SLC_MAX_ORDER];   /* address of row 0 */
    uint64_t pitch[SLC_MAX_ORDER];       /* numbers from one row to the next */
    double *products;                    /* nnz x width, out */
};

/* Arguments of the sums of the Poisson log-likelihood m - v log(m). */
struct slc_row_poisson_span {
    uint32_t nnz;
    uint32_t width;
    double floor; /* minimum of a model value, above 0 */
    const double *values, *products;
    const double *x;
    double *phi; /* adds the sum of v / m times the products, m = max(product x, floor) */
    /* nnz: v / max(m^2, floor) with m = product x; NULL: not computed */
    double *curvature;
    double *models; /* nnz: product x; NULL: not stored */
};

struct slc_row_kernels {
    void (*products)(const struct slc_row_product_span *span);
    void (*poisson)(const struct slc_row_poisson_span *span);
    /* Returns the largest |min(x[r], totals[r] - phi[r])|, the violation of the KKT conditions. */
    double (*violation)(uint32_t width, const double *x, const double *totals, const double *phi);
    /* x[r] *= phi[r] / totals[r], for totals above 0 */
    void (*rescale)(uint32_t width, const double *totals, const double *phi, double *x);
    /* models[i] = sum over r of products[i][r] x[r] */
    void (*models)(
        uint32_t nnz, uint32_t width, const double *products, const double *x, double *models);
    /* sums[r] += sum over i of scale[i] products[i][r] */
    void (*combine)(
        uint32_t nnz, uint32_t width, const double *products, const double *scale, double *sums);
    /* Adds the upper triangle of P^T diag(scale) P, and some numbers below it, to the width x width
     * numbers of `normal`. `scale` NULL means ones. */
    void (*normal)(
        uint32_t nnz, uint32_t width, const double *products, const double *scale, double *normal);
    /* Returns the sum of values[i] log(models[i]): -infinity if a model is at most 0 and its value
     * is above 0. Models must be finite; models between 0 and SLC_ROW_LOG_FLOOR are raised to
     * SLC_ROW_LOG_FLOOR. */
    double (*log_sum)(uint32_t nnz, const double *values, const double *models);
    /* Factorizes the upper triangle of a symmetric matrix, A = U^T U, in place. The diagonal of the
     * result has the inverses of the diagonal of U; numbers below the diagonal are not used and
     * change. Returns `rank`, or the first column whose pivot is not finite or not above
     * least[column] (NULL: 0). */
    uint32_t (*cholesky)(uint32_t rank, uint32_t width, const double *least, double *a);
    /* Solves U^T U x = x in place. */
    void (*substitute)(uint32_t rank, uint32_t width, const double *u, double *x);
    /* Copies column r of the products to to[r * pitch]; `pitch` is a multiple of 8. */
    void (*columns)(
        uint32_t nnz, uint32_t width, const double *products, uint32_t pitch, double *to);
    /* inner[0] = sum of e[i] c[i], inner[1] = sum of c[i]^2 */
    void (*column_inner)(uint32_t nnz, const double *e, const double *c, double inner[2]);
    /* e[i] -= step c[i] */
    void (*column_subtract)(uint32_t nnz, double step, const double *c, double *e);
};

extern const struct slc_row_kernels slc_row_kernels_portable;
extern const struct slc_row_kernels slc_row_kernels_avx2;
extern const struct slc_row_kernels slc_row_kernels_avx512;
extern const struct slc_row_kernels slc_row_kernels_neon;

#endif
