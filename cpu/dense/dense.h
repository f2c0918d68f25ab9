/* Dense algebra of decompositions. Matrices are dims[n] x R with small R, so each operation is one
 * sweep over panels of a fixed number of rows. Partial results are combined in panel order, so
 * results do not depend on the number of threads. Arithmetic is in f64 for all element types. R x R
 * matrices are row-major, contiguous f64. */
#ifndef SLC_CPU_DENSE_H
#define SLC_CPU_DENSE_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/solver.h"

#include <stdbool.h>
#include <stdint.h>

/* Ends the threads that OpenBLAS starts when it is loaded, one per additional processor. Dense
 * algebra does not use these threads, and a thread that waits for work spins for about 50 ms. Only
 * for programs that own their process: in a program that links the library, these threads belong to
 * the program. Call this function before other threads use BLAS. */
void slc_dense_end_blas_threads(void);

/* Checks that the buffers of OpenBLAS for this number of threads fit into the address space. At its
 * first call of BLAS, each thread gets a buffer, which it keeps; if the allocation fails, OpenBLAS
 * retries forever. The check reserves no memory, so it also works on systems that do not
 * overcommit. slc_dense_create makes this check; code that calls BLAS without it must make it
 * before its first call. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_dense_check_blas(unsigned workers, struct slc_error *err) SLC_NODISCARD;

/* Returns OpenBLAS's description of itself (version, build options, processor), or "" for another
 * BLAS. */
const char *slc_dense_library(void);

/* Scratch that all functions with an argument `dense` share. If a function also has an argument
 * `worker`, it may run concurrently for different workers; otherwise it must run alone. */
struct slc_dense;

/* Allocates scratch. Ownership: release with slc_dense_destroy, which accepts NULL. Errors:
 * SLC_ERR_MEMORY, also if the buffers of BLAS do not fit into the address space. These buffers have
 * 128 MiB per thread, most of which is never touched. */
enum slc_status slc_dense_create(unsigned workers,
                                 uint32_t rank_max,
                                 uint64_t rows_max,
                                 struct slc_dense **dense,
                                 struct slc_error *err) SLC_NODISCARD;
void slc_dense_destroy(struct slc_dense *dense);
/* Returns the bytes that slc_dense_create maps, for memory plans. */
uint64_t slc_dense_memory_bytes(unsigned workers, uint32_t rank_max, uint64_t rows_max);

/* Computes gram = A^T A. Cost: rows * R^2 flops, one read of A. */
enum slc_status slc_dense_gram(struct slc_dense *dense,
                               const struct slc_matrix *matrix,
                               double *gram,
                               struct slc_error *err) SLC_NODISCARD;

/* Allocates a solver for `rank`; slc_solver_destroy accepts an all-zero struct. */
enum slc_status
slc_solver_create(struct slc_solver *solver, uint32_t rank, struct slc_error *err) SLC_NODISCARD;
void slc_solver_destroy(struct slc_solver *solver);
/* Returns the bytes that slc_solver_create allocates, for memory plans. */
uint64_t slc_solver_memory_bytes(uint32_t rank);

/* Prepares a solver for X = M D V^-1 E, where V is symmetric positive semi-definite (R x R, not
 * changed) and D and E are the diagonal matrices of the positive numbers left[R] and right[R]. The
 * solver uses the Cholesky factorization of V. If V is singular to working precision (reciprocal
 * condition number less than R * 2^-52), the solver uses the pseudo-inverse from the eigenvalues
 * that exceed R * 2^-52 times the largest eigenvalue, and solver->singular is set. V = 0 yields the
 * zero pseudo-inverse. Errors: SLC_ERR_NUMERIC if V contains a NaN or infinity. */
enum slc_status slc_dense_factorize(struct slc_dense *dense,
                                    const double *gram,
                                    const double *left,
                                    const double *right,
                                    struct slc_solver *solver,
                                    struct slc_error *err) SLC_NODISCARD;

/* Computes the condition number of a matrix A without its zero columns and with its other columns
 * divided by their norms, from gram = A^T A (R x R, not changed): the square root of the ratio of
 * the extreme eigenvalues, at most (R 2^-52)^-1/2. Cost: 4/3 R^3 multiply-adds. Errors:
 * SLC_ERR_NUMERIC if the eigenvalues do not converge. */
enum slc_status slc_dense_condition(struct slc_dense *dense,
                                    const double *gram,
                                    uint32_t rank,
                                    double *condition,
                                    struct slc_error *err) SLC_NODISCARD;

/* Computes factor = MTTKRP D V^-1 E and, in the same sweep, the sums of `sums`. `mttkrp` and
 * `factor` have the same shape and type and must be different matrices.
 * Accuracy: rows are solved by substitution, so each row is the exact solution for a V perturbed by
 * a few times R * 2^-53, independent of the condition of V. The row is then rounded to the factor's
 * type.
 * Order: the result has the same bits for any number of workers; the results of two instruction
 * sets differ in the last bits. Cost: 3/2 rows * R^2 multiply-adds; up to rank 64 one read of M and
 * one write of X. */
enum slc_status slc_dense_update(struct slc_dense *dense,
                                 const struct slc_solver *solver,
                                 const struct slc_matrix *mttkrp,
                                 struct slc_matrix *factor,
                                 const struct slc_update_sums *sums,
                                 struct slc_error *err) SLC_NODISCARD;

/* Do the same as slc_dense_update in two steps, for rows that are solved range by range:
 * slc_dense_update_rows solves rows [begin, end) on a worker of the caller's team; after all rows
 * are solved, slc_dense_update_sums computes their sums. Order: rows and sums have the same bits as
 * with slc_dense_update, except if V is singular or the rank exceeds 64: then the bits of a row
 * depend on the start of its range. */
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

/* Does the same as slc_dense_update_rows, and also computes the sums over rows [begin, end), except
 * the Gram matrix. Used for factors whose rows have several owners. Stores
 * slc_dense_columns_elements(rank) numbers in `columns` for slc_dense_columns_join. */
enum slc_status slc_dense_update_part(struct slc_dense *dense,
                                      const struct slc_solver *solver,
                                      const struct slc_matrix *mttkrp,
                                      struct slc_matrix *factor,
                                      uint64_t begin,
                                      uint64_t end,
                                      unsigned worker,
                                      double *columns,
                                      struct slc_error *err) SLC_NODISCARD;
/* Solves a block of SLC_BLOCK_ROWS rows of slc_block_width(rank) numbers
 * (cpu/kernel/dense_kernels.h), aligned to 64 bytes: X = M D V^-1 E. `x` may be `m`, unless V is
 * singular. */
void slc_dense_solve_block(const struct slc_solver *solver, double *m, double *x);
/* Returns the number of elements of `columns` per call of slc_dense_update_part. The `columns` of
 * several calls are contiguous, and begin at a cache line. */
uint64_t slc_dense_columns_elements(uint32_t rank);
/* Computes sums->largest and sums->inner from the contiguous `columns` of `count` calls. */
void slc_dense_columns_join(uint32_t rank,
                            const double *columns,
                            uint64_t count,
                            const struct slc_update_sums *sums);
/* Computes gram = factor^T factor with the same bits as slc_dense_update; `factor` is not
 * changed. */
enum slc_status slc_dense_update_gram(struct slc_dense *dense,
                                      struct slc_matrix *factor,
                                      double *gram,
                                      struct slc_error *err) SLC_NODISCARD;

/* Multiply column r by scale[r] in place: slc_dense_scale_rows in rows [begin, end) on the calling
 * thread, slc_dense_scale in all rows. */
void slc_dense_scale_rows(struct slc_matrix *matrix,
                          uint64_t begin,
                          uint64_t end,
                          const double *scale);
enum slc_status slc_dense_scale(struct slc_dense *dense,
                                struct slc_matrix *matrix,
                                const double *scale,
                                struct slc_error *err) SLC_NODISCARD;

/* Computes the 2-norm of each column, the sign of its element of largest magnitude (+1 or -1; +1 if
 * the element is zero), and the largest magnitude of the elements of the opposite sign, divided by
 * the largest magnitude (0 to 1). */
enum slc_status slc_dense_column_norms(struct slc_dense *dense,
                                       const struct slc_matrix *matrix,
                                       double *norms,
                                       double *signs,
                                       double *opposites,
                                       struct slc_error *err) SLC_NODISCARD;

/* Computes the 1-norm of each column. */
enum slc_status slc_dense_column_sums(struct slc_dense *dense,
                                      const struct slc_matrix *matrix,
                                      double *sums,
                                      struct slc_error *err) SLC_NODISCARD;

/* Reorders columns: new column r is old column order[r]. */
enum slc_status slc_dense_permute(struct slc_dense *dense,
                                  struct slc_matrix *matrix,
                                  const uint32_t *order,
                                  struct slc_error *err) SLC_NODISCARD;

/* Sets element (i, r) to slc_random_f64(seed, stream, i * cols + r), uniform in [0, 1). */
enum slc_status slc_dense_fill_uniform(struct slc_dense *dense,
                                       struct slc_matrix *matrix,
                                       uint64_t seed,
                                       uint64_t stream,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
