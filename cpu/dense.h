/*
 * Dense row-panel algebra of the decompositions. Matrices are dims[n] x R with R small, so each
 * operation is one sweep over row panels of a fixed height; partial results are combined in panel
 * order, so that results do not depend on the number of threads. Arithmetic is in f64 whatever the
 * element type. R x R matrices are row-major, contiguous f64.
 */
#ifndef SLC_CPU_DENSE_H
#define SLC_CPU_DENSE_H

#include "base/error.h"
#include "base/matrix.h"

#include <stdbool.h>
#include <stdint.h>

/* Scratch that all functions share; one at a time. */
struct slc_dense;

/* Owns: slc_dense_destroy, which takes NULL. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_dense_create(unsigned workers,
                                 uint32_t rank_max,
                                 uint64_t rows_max,
                                 struct slc_dense **dense,
                                 struct slc_error *err) SLC_NODISCARD;
void slc_dense_destroy(struct slc_dense *dense);
/* What the above maps, for plans. */
uint64_t slc_dense_memory_bytes(unsigned workers, uint32_t rank_max, uint64_t rows_max);

/* gram = A^T A. Cost: rows * R^2 flops, one read of A. */
enum slc_status slc_dense_gram(struct slc_dense *dense,
                               const struct slc_matrix *matrix,
                               double *gram,
                               struct slc_error *err) SLC_NODISCARD;

/* How slc_dense_factorize solved. */
struct slc_solver {
    uint32_t rank;
    bool singular;  /* the truncated eigen-decomposition was needed */
    uint32_t kept;  /* eigenvalues kept; rank when not singular */
    double *factor; /* rank * rank: Cholesky factor, or the pseudo-inverse */
};

/* Allocates the space for rank; slc_solver_destroy takes an all-zero struct. */
enum slc_status
slc_solver_create(struct slc_solver *solver, uint32_t rank, struct slc_error *err) SLC_NODISCARD;
void slc_solver_destroy(struct slc_solver *solver);

/*
 * Prepares to solve X V = M for X, V symmetric positive semi-definite (R x R, not changed):
 * Cholesky; when V is singular to working precision (reciprocal condition below R * 2^-52), the
 * pseudo-inverse from the eigenvalues above R * 2^-52 times the largest, with solver->singular set.
 * V = 0 gives the zero pseudo-inverse. Errors: SLC_ERR_NUMERIC when V holds a NaN or infinity.
 */
enum slc_status slc_dense_factorize(struct slc_dense *dense,
                                    const double *gram,
                                    struct slc_solver *solver,
                                    struct slc_error *err) SLC_NODISCARD;

enum slc_norm { SLC_NORM_NONE, SLC_NORM_2, SLC_NORM_MAX1 };

/*
 * One sweep: factor = MTTKRP V^-1 row panel by row panel; with SLC_NORM_2 / SLC_NORM_MAX1 the
 * column norms are computed on the way (2-norm; max(1, largest magnitude)) into norms[R] and the
 * columns divided by them in a second sweep that also forms `gram` = factor^T factor (norm 0
 * divides by 1). `mttkrp` and `factor` have the same shape and type and may not be the same matrix.
 */
enum slc_status slc_dense_update(struct slc_dense *dense,
                                 const struct slc_solver *solver,
                                 const struct slc_matrix *mttkrp,
                                 struct slc_matrix *factor,
                                 enum slc_norm norm,
                                 double *norms,
                                 double *gram,
                                 struct slc_error *err) SLC_NODISCARD;

/* sum over i, r of weights[r] * A(i, r) * B(i, r); same shapes. */
enum slc_status slc_dense_inner(struct slc_dense *dense,
                                const struct slc_matrix *a,
                                const struct slc_matrix *b,
                                const double *weights,
                                double *inner,
                                struct slc_error *err) SLC_NODISCARD;

/* Multiplies column r by scale[r], in place. */
enum slc_status slc_dense_scale(struct slc_dense *dense,
                                struct slc_matrix *matrix,
                                const double *scale,
                                struct slc_error *err) SLC_NODISCARD;

/* Column 2-norms and the sign of each column's largest-magnitude entry (+1 or -1; +1 for zero). */
enum slc_status slc_dense_column_norms(struct slc_dense *dense,
                                       const struct slc_matrix *matrix,
                                       double *norms,
                                       double *signs,
                                       struct slc_error *err) SLC_NODISCARD;

/* Reorders columns: column r becomes old column order[r]. */
enum slc_status slc_dense_permute(struct slc_dense *dense,
                                  struct slc_matrix *matrix,
                                  const uint32_t *order,
                                  struct slc_error *err) SLC_NODISCARD;

/* Fills with uniform [0, 1) numbers: element (i, r) is slc_random_f64(seed, stream, i * cols + r).
 */
enum slc_status slc_dense_fill_uniform(struct slc_dense *dense,
                                       struct slc_matrix *matrix,
                                       uint64_t seed,
                                       uint64_t stream,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
