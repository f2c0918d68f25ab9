/* Pseudo-inverses of tall matrices, in place. */
#ifndef SLC_CPU_PSEUDO_INVERSE_H
#define SLC_CPU_PSEUDO_INVERSE_H

#include "base/error/error.h"
#include "base/matrix.h"

#include <stdint.h>

/*
 * Replaces A by the transpose of its pseudo-inverse A^+, and sets *independent to how many of its
 * columns are, in the sense of the singular values that count.
 * Math: A = Q T by Householder reflections, panel by panel; T = U S V^T; (A^+)^T = A V S^-2 V^T,
 * where singular values up to max(rows, columns) * 2^-52 times the largest are left out. Relative
 * to the largest entry the result is as exact as A's condition times 2^-52 allows. Shapes: f64,
 * finite; rows may be fewer than columns. Memory: slc_pseudo_inverse_memory_bytes. Order: the same
 * bits every time. Cost: 6 rows * columns^2 flops. Errors: SLC_ERR_MEMORY; SLC_ERR_NUMERIC where
 * the singular values do not converge or are not finite. The matrix is as it was then.
 */
enum slc_status slc_pseudo_inverse(struct slc_matrix *matrix,
                                   uint32_t *independent,
                                   struct slc_error *err) SLC_NODISCARD;
uint64_t slc_pseudo_inverse_memory_bytes(uint32_t cols);

#endif
