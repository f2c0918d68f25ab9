/* Computes pseudo-inverses of tall matrices in place. */
#ifndef SLC_CPU_PSEUDO_INVERSE_H
#define SLC_CPU_PSEUDO_INVERSE_H

#include "base/error/error.h"
#include "base/matrix.h"

#include <stdint.h>

/* Replaces A with the transpose of its pseudo-inverse A^+, and sets *independent to its numerical
 * rank.
 * Math: A = Q T by Householder reflections, panel by panel; T = U S V^T; (A^+)^T = A V S^-2 V^T.
 * Singular values up to max(rows, columns) * 2^-52 times the largest singular value are omitted.
 * The error relative to the largest element is about the condition number of A times 2^-52. Shapes:
 * A is f64 and finite, and may have fewer rows than columns. Memory:
 * slc_pseudo_inverse_memory_bytes. Order: deterministic. Cost: 6 rows * columns^2 flops. Errors:
 * SLC_ERR_MEMORY; SLC_ERR_NUMERIC if the singular values do not converge or are not finite. On
 * error, the matrix is unchanged. */
enum slc_status slc_pseudo_inverse(struct slc_matrix *matrix,
                                   uint32_t *independent,
                                   struct slc_error *err) SLC_NODISCARD;
uint64_t slc_pseudo_inverse_memory_bytes(uint32_t cols);

#endif
