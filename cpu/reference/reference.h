/*
 * The oracle: naive serial implementations on coordinate lists, written to be read, not to be fast.
 * Every tuned kernel on every backend is checked against these.
 */
#ifndef SLC_CPU_REFERENCE_H
#define SLC_CPU_REFERENCE_H

#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdint.h>

/* A coordinate list. coords[m][i] is the coordinate in mode m of nonzero i. Borrowed. */
struct slc_coo_view {
    unsigned order;
    uint64_t nnz;
    const uint64_t *coords[SLC_MAX_ORDER];
    const double *values;
};

/*
 * M(i, r) = sum over nonzeros x with coordinate i in `mode` of x * product over m != mode of
 * A(m)(i_m, r) (KB section 2.6). Factors of either type, read as f64; `output` (dims[mode] x rank,
 * row-major, contiguous, f64) is overwritten. Sums in the order of the list.
 */
void slc_reference_mttkrp(const struct slc_coo_view *tensor,
                          const struct slc_matrix *const *factors,
                          unsigned mode,
                          uint64_t output_rows,
                          uint32_t rank,
                          double *output);

/* The same with |x| and |A|: the scale for relative errors of sums with cancellation. */
void slc_reference_mttkrp_magnitude(const struct slc_coo_view *tensor,
                                    const struct slc_matrix *const *factors,
                                    unsigned mode,
                                    uint64_t output_rows,
                                    uint32_t rank,
                                    double *output);

/*
 * The nonempty fibers of `mode`: order[k] is the k-th nonzero, and fiber[k] the number of its fiber
 * from 0, when nonzeros are sorted by the coordinates of all other modes (the first mode decides
 * before the second; nonzeros of one fiber stay in the order of the list). Both arrays have room
 * for nnz. Returns how many fibers there are; with one mode all nonzeros are in one.
 */
uint64_t slc_reference_fibers(const struct slc_coo_view *tensor,
                              unsigned mode,
                              uint64_t *order,
                              uint64_t *fiber);

/*
 * SpTV, Y = X x_n v: y(f) = sum over the nonzeros x of fiber f of x * v(i_n)   (KB section 2.5; the
 * product of SPTV, fiber by fiber). `order` and `fiber` are what slc_reference_fibers made of
 * `mode`; `sums` (one per fiber) is overwritten. A fiber whose sum is zero has its sum all the
 * same. Sums in the order of the list.
 */
void slc_reference_ttv(const struct slc_coo_view *tensor,
                       unsigned mode,
                       const double *vector,
                       const uint64_t *order,
                       const uint64_t *fiber,
                       double *sums);

/*
 * TTM, Y = X x_n U^T with a row of U (dims[n] x R) per index: y(f, r) = sum over the nonzeros x of
 * fiber f of x * U(i_n, r)   (KB section 2.5, whose matrix is this one transposed; rows as in
 * XPLAT's listings). `rows` (fibers x matrix->cols, row-major, contiguous, f64) is overwritten.
 * Everything else as for SpTV, which is this with R = 1.
 */
void slc_reference_ttm(const struct slc_coo_view *tensor,
                       unsigned mode,
                       const struct slc_matrix *matrix,
                       const uint64_t *order,
                       const uint64_t *fiber,
                       double *rows);

/* G = A^T A (cols x cols, row-major, contiguous). */
void slc_reference_gram(const struct slc_matrix *matrix, double *gram);

#endif
