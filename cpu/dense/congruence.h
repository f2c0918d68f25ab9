/* Computes the similarity of two models of the same tensor: the factor match score of the Tensor
 * Toolbox's function `score`. Factors are processed one mode at a time, so only one factor of each
 * model must be in memory. */
#ifndef SLC_CPU_CONGRUENCE_H
#define SLC_CPU_CONGRUENCE_H

#include "base/error/error.h"
#include "base/matrix.h"

#include <stdint.h>

/* State of a comparison of every component of one model with every component of the other model. */
struct slc_congruence {
    uint32_t rank;
    unsigned modes; /* number of modes added */
    /* rank x rank; for each pair of columns, the product of |cosine| over the modes added */
    double *products;
    /* product of the 2-norms of the columns of each component, for each model: norms times 2 to
     * the power of exponents, so that no product overflows or underflows */
    double *norms[2];
    int *exponents[2];
    double *scratch; /* rank * (rank + 2) elements */
};

/* Starts a comparison of models of `rank` components. Ownership: release with
 * slc_congruence_destroy, which accepts an all-zero struct. Errors: SLC_ERR_MEMORY;
 * that of slc_dense_check_blas. */
enum slc_status slc_congruence_create(struct slc_congruence *congruence,
                                      uint32_t rank,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_congruence_destroy(struct slc_congruence *congruence);
/* Returns the bytes that slc_congruence_create and slc_congruence_score allocate, for memory
 * plans. */
uint64_t slc_congruence_memory_bytes(uint32_t rank);

/* Adds a mode. `one` and `two` are the mode's factors in the two models. Shapes: both factors have
 * the same number of rows and `rank` columns, f64. A column whose squares could overflow or
 * underflow is scaled in place by a power of two. Order: deterministic. Cost: 2 rows * rank^2
 * flops. */
void slc_congruence_add(struct slc_congruence *congruence,
                        struct slc_matrix *one,
                        struct slc_matrix *two);

/* Computes the factor match score after all modes have been added.
 * Math: the mean over components r of c(r, p(r)). c(r, s) is the product over modes of
 * |cos(a_r, b_s)|, times 1 - |la - lb| / max(la, lb). The weight la is lambda_one[r] times the
 * norms of the columns of component r; lb is the same for component s of the other model. p is the
 * assignment with the largest mean, found exactly by the Hungarian method ([Kuhn1955]; shortest
 * augmenting paths as in [Jonker1987]). A zero component has c(r, s) = 0. A score of 1 means that
 * the models are equal except for order and signs. Shapes: `match` receives the `rank` numbers of
 * p, or is NULL. Cost: rank^3. Errors: SLC_ERR_MEMORY; *score is then unchanged. */
enum slc_status slc_congruence_score(struct slc_congruence *congruence,
                                     const double *lambda_one,
                                     const double *lambda_two,
                                     double *score,
                                     uint32_t *match,
                                     struct slc_error *err) SLC_NODISCARD;

/* Finds the assignment of columns to rows with the largest sum of gains: match[row] is the column
 * assigned to a row, and each column is used once. Shapes: `gains` is size x size, row-major,
 * finite; `match` has `size` elements. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_assignment(uint32_t size,
                               const double *gains,
                               uint32_t *match,
                               struct slc_error *err) SLC_NODISCARD;

#endif
