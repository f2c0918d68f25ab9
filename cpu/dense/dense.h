/*
 * Dense row-panel algebra of the decompositions. Matrices are dims[n] x R with R small, so each
 * operation is one sweep over row panels of a fixed height; partial results are combined in panel
 * order, so that results do not depend on the number of threads. Arithmetic is in f64 whatever the
 * element type. R x R matrices are row-major, contiguous f64.
 */
#ifndef SLC_CPU_DENSE_H
#define SLC_CPU_DENSE_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/solver.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Ends the threads that OpenBLAS starts as it is loaded, one per further processor, which nothing
 * here uses and which wait for work by spinning for some 50 ms each. For programs that own their
 * process: in a library they are the caller's. Before other threads use BLAS.
 */
void slc_dense_alone(void);

/* What OpenBLAS says of itself: its version, how it was built, for which processor. Another BLAS
 * has nothing to say: "". */
const char *slc_dense_library(void);

/* Scratch that all functions share; one at a time. */
struct slc_dense;

/*
 * Owns: slc_dense_destroy, which takes NULL. Errors: SLC_ERR_MEMORY, also where there is no room
 * for the buffers that BLAS takes for each thread, 128 MiB of address space that is hardly touched.
 */
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

/* Allocates the space for rank; slc_solver_destroy takes an all-zero struct. */
enum slc_status
slc_solver_create(struct slc_solver *solver, uint32_t rank, struct slc_error *err) SLC_NODISCARD;
void slc_solver_destroy(struct slc_solver *solver);
/* What the above allocates, for plans. */
uint64_t slc_solver_memory_bytes(uint32_t rank);

/*
 * Prepares to solve X = M D V^-1 E, V symmetric positive semi-definite (R x R, not changed), D and
 * E the diagonal matrices of the positive numbers left[R] and right[R]: Cholesky of V; when V is
 * singular to working precision (reciprocal condition below R * 2^-52), the pseudo-inverse from the
 * eigenvalues above R * 2^-52 times the largest, with solver->singular set. V = 0 gives the zero
 * pseudo-inverse. Errors: SLC_ERR_NUMERIC when V holds a NaN or infinity.
 */
enum slc_status slc_dense_factorize(struct slc_dense *dense,
                                    const double *gram,
                                    const double *left,
                                    const double *right,
                                    struct slc_solver *solver,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * One sweep: factor = MTTKRP D V^-1 E, and its sums. `mttkrp` and `factor` have the same shape and
 * type and may not be the same matrix.
 * Accuracy: by substitution, so each row is the exact solution for a V changed by a few times
 * R * 2^-53, whatever its condition; then it is rounded to the factor's type.
 * Order: the same bits for any number of workers; instruction sets differ in the last ones.
 * Cost: 3/2 rows * R^2 multiply-adds; one read of M and one write of X up to rank 64.
 */
enum slc_status slc_dense_update(struct slc_dense *dense,
                                 const struct slc_solver *solver,
                                 const struct slc_matrix *mttkrp,
                                 struct slc_matrix *factor,
                                 const struct slc_update_sums *sums,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * slc_dense_update in two steps, for rows that are solved for one range after the other: each
 * worker, in a team of its caller's, solves for rows [begin, end); and when all rows have been,
 * their sums. Order: rows and sums have the bits that slc_dense_update gives, but for singular V
 * and ranks beyond 64, where those of a row depend on where its range begins.
 */
enum slc_status slc_dense_update_rows(struct slc_dense *dense,
                                      const struct slc_solver *solver,
                                      const struct slc_matrix *mttkrp,
                                      struct slc_matrix *factor,
                                      uint64_t begin,
                                      uint64_t end,
                                      unsigned worker,
                                      struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_dense_update_sums(struct slc_dense *dense,
                                      const struct slc_solver *solver,
                                      const struct slc_matrix *mttkrp,
                                      struct slc_matrix *factor,
                                      const struct slc_update_sums *sums,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * slc_dense_update_rows with the sums over these rows, but for the Gram matrix: for factors whose
 * rows have several owners. `columns` is set to slc_dense_columns_elements(rank) numbers for
 * slc_dense_columns_join.
 */
enum slc_status slc_dense_update_part(struct slc_dense *dense,
                                      const struct slc_solver *solver,
                                      const struct slc_matrix *mttkrp,
                                      struct slc_matrix *factor,
                                      uint64_t begin,
                                      uint64_t end,
                                      unsigned worker,
                                      double *columns,
                                      struct slc_error *err) SLC_NODISCARD;
/* So many numbers lie between the columns of two calls; the first begin at a cache line. */
uint64_t slc_dense_columns_elements(uint32_t rank);
/* sums->largest and sums->inner from the columns of `count` calls, one behind the other, in order.
 */
void slc_dense_columns_join(uint32_t rank,
                            const double *columns,
                            uint64_t count,
                            const struct slc_update_sums *sums);
/* gram = factor^T factor with the bits that slc_dense_update gives it; `factor` is not changed. */
enum slc_status slc_dense_update_gram(struct slc_dense *dense,
                                      struct slc_matrix *factor,
                                      double *gram,
                                      struct slc_error *err) SLC_NODISCARD;

/* Multiplies column r by scale[r], in place; and in rows [begin, end) alone, by the caller. */
void slc_dense_scale_rows(struct slc_matrix *matrix,
                          uint64_t begin,
                          uint64_t end,
                          const double *scale);
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
