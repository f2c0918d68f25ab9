/* Reference for products whose result is listed by fiber, and for Gram matrices; for tests only. */
#ifndef SLC_TESTS_NAIVE_PRODUCTS_H
#define SLC_TESTS_NAIVE_PRODUCTS_H

#include "cpu/reference/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The nonempty fibers of `mode`: order[k] is the k-th nonzero, and fiber[k] the number of its fiber
 * from 0, when nonzeros are sorted by the coordinates of all other modes (the first mode is most
 * significant; nonzeros of one fiber keep the order of the list). Both arrays have nnz elements.
 * Returns the number of fibers; with one mode all nonzeros are in one fiber. */
uint64_t slc_reference_fibers(const struct slc_coo_view *tensor,
                              unsigned mode,
                              uint64_t *order,
                              uint64_t *fiber);

/* SpTV, Y = X x_n v: y(f) = sum over the nonzeros x of fiber f of x * v(i_n) ([Kolda2009] section
 * 2.5; the product of SPTV, fiber by fiber). `order` and `fiber` are the output of
 * slc_reference_fibers for `mode`; `sums` (one per fiber) is overwritten. A fiber with sum zero is
 * kept. Sums are in list order. */
void slc_reference_ttv(const struct slc_coo_view *tensor,
                       unsigned mode,
                       const double *vector,
                       const uint64_t *order,
                       const uint64_t *fiber,
                       double *sums);

/* TTM, Y = X x_n U^T with a row of U (dims[n] x R) per index: y(f, r) = sum over the nonzeros x of
 * fiber f of x * U(i_n, r) ([Kolda2009] section 2.5, whose matrix is this one transposed; rows as
 * in XPLAT's listings). `rows` (fibers x matrix->cols, row-major, contiguous, f64) is overwritten.
 * SpTV is the case R = 1; everything else is the same. */
void slc_reference_ttm(const struct slc_coo_view *tensor,
                       unsigned mode,
                       const struct slc_matrix *matrix,
                       const uint64_t *order,
                       const uint64_t *fiber,
                       double *rows);

/* G = A^T A (cols x cols, row-major, contiguous). */
void slc_reference_gram(const struct slc_matrix *matrix, double *gram);

#ifdef __cplusplus
}
#endif

#endif
