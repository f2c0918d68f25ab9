/* Prepares a solver for the symmetric positive semi-definite V of ALS.
 *
 * V = L L^T (LAPACK dpotrf), so X = M D V^-1 E is the solution of X (E^-1 L) (D^-1 L)^T = M. The
 * scales D and E are included in two copies of L and add no cost per row. If the reciprocal
 * condition number shows that V is singular to working precision, X = M D V^+ E is computed with
 * the pseudo-inverse from the significant eigenvalues. LAPACK is called through its column-major
 * interfaces, which allocate no memory: V is symmetric, and a row-major L is a column-major L^T. */
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "cpu/dense/dense_state.h"
#include "cpu/kernel/dense_kernels.h"

#include <cblas.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* Workspace of LAPACK's dsyev in numbers per column, with the usual block size of 32: 32 + 2. */
enum { EIGEN_WORK = 34 };
_Static_assert(EIGEN_WORK + 1 <= SLC_COLUMN_ELEMENTS, "eigenvalues and workspace must fit");

static uint64_t solver_elements(uint32_t rank)
{
    const uint64_t size = slc_div_up_u64(rank, SLC_SOLVE_COLUMNS) * SLC_SOLVE_COLUMNS;

    return 2 * size * size + 2 * size;
}

uint64_t slc_solver_memory_bytes(uint32_t rank)
{
    return solver_elements(rank) * sizeof(double);
}

enum slc_status slc_solver_create(struct slc_solver *solver, uint32_t rank, struct slc_error *err)
{
    static const struct slc_solver empty;

    *solver = empty;
    if (rank < 1 || rank > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE, "the rank is %u, but must be 1 to %d", rank,
                        SLC_MAX_RANK);
    }
    solver->forward = slc_calloc(solver_elements(rank), sizeof *solver->forward);
    SLC_TRY(slc_check_memory(solver->forward != NULL, err, "for solving with a %u x %u matrix",
                             rank, rank));
    solver->rank = rank;
    solver->size = (rank + SLC_SOLVE_COLUMNS - 1) / SLC_SOLVE_COLUMNS * SLC_SOLVE_COLUMNS;
    uint64_t square = (uint64_t)solver->size * solver->size;
    solver->backward = solver->forward + square;
    solver->forward_inverse = solver->backward + square;
    solver->backward_inverse = solver->forward_inverse + solver->size;
    return SLC_OK;
}

void slc_solver_destroy(struct slc_solver *solver)
{
    static const struct slc_solver empty;

    slc_free(solver->forward);
    *solver = empty;
}

/* Returns the largest column sum of magnitudes, which is also the largest row sum because V is
 * symmetric. Propagates NaN and infinity. */
static double one_norm(const double *gram, uint64_t rank)
{
    double most = 0.0;

    for (uint64_t i = 0; i < rank; i++) {
        double sum = 0.0;
        for (uint64_t j = 0; j < rank; j++) {
            sum += fabs(gram[i * rank + j]);
        }
        if (!(sum <= most)) {
            most = sum;
        }
        if (!isfinite(sum)) {
            break;
        }
    }
    return most;
}

/* Computes L in solver->forward. Returns false if L does not exist or V is numerically singular. */
static bool try_cholesky(struct slc_dense *dense, struct slc_solver *solver, double norm)
{
    const lapack_int n = (lapack_int)solver->rank;
    const lapack_int pitch = (lapack_int)solver->size;
    double *work = dense->columns;
    lapack_int *integers = (lapack_int *)(void *)(work + 3 * (uint64_t)solver->rank);
    double reciprocal = 0.0;

    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', n, solver->forward, pitch) != 0) {
        return false;
    }
    if (LAPACKE_dpocon_work(LAPACK_COL_MAJOR, 'U', n, solver->forward, pitch, norm, &reciprocal,
                            work, integers) != 0) {
        return false;
    }
    return reciprocal >= (double)solver->rank * DBL_EPSILON;
}

/* Computes the eigenvalues of the rank x rank matrix in dense->grams, in ascending order, at the
 * beginning of dense->columns. If `vectors`, replaces the matrix with its eigenvectors. */
static enum slc_status
find_eigenvalues(struct slc_dense *dense, uint32_t rank, bool vectors, struct slc_error *err)
{
    const lapack_int n = (lapack_int)rank;

    if (LAPACKE_dsyev_work(LAPACK_COL_MAJOR, vectors ? 'V' : 'N', 'U', n, dense->grams, n,
                           dense->columns, dense->columns + rank, n * EIGEN_WORK) != 0) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "the eigenvalues of the %u x %u Gram matrix did not converge", rank, rank);
    }
    return SLC_OK;
}

enum slc_status slc_dense_condition(struct slc_dense *dense,
                                    const double *gram,
                                    uint32_t rank,
                                    double *condition,
                                    struct slc_error *err)
{
    for (uint64_t i = 0; i < rank; i++) {
        const double norm = sqrt(gram[i * rank + i]);

        for (uint64_t j = 0; j < rank; j++) {
            const double norms = norm * sqrt(gram[j * rank + j]);

            dense->grams[i * rank + j] = norms > 0.0 ? gram[i * rank + j] / norms : 0.0;
        }
        dense->grams[i * rank + i] = 1.0; /* a zero column becomes a column of the identity */
    }
    SLC_TRY(find_eigenvalues(dense, rank, false, err));
    const double largest = dense->columns[rank - 1];
    *condition = sqrt(largest / fmax(dense->columns[0], rank * DBL_EPSILON * largest));
    return SLC_OK;
}

static enum slc_status pseudo_inverse(struct slc_dense *dense,
                                      const double *gram,
                                      struct slc_solver *solver,
                                      struct slc_error *err)
{
    const uint32_t rank = solver->rank;
    const lapack_int n = (lapack_int)rank;
    double *vectors = dense->grams;
    double *values = dense->columns;
    double least;

    memcpy(vectors, gram, (uint64_t)rank * rank * sizeof *vectors);
    SLC_TRY(find_eigenvalues(dense, rank, true, err));
    /* Eigenvalues are in ascending order, so the significant ones are last. Their eigenvectors,
     * scaled by w^-1/2, yield V^+ as a product. */
    least = (double)rank * DBL_EPSILON * values[rank - 1];
    solver->kept = 0;
    while (solver->kept < rank && values[rank - 1 - solver->kept] > least &&
           values[rank - 1 - solver->kept] > 0.0) {
        const uint64_t k = rank - 1 - solver->kept;

        cblas_dscal(n, 1.0 / sqrt(values[k]), vectors + k * rank, 1);
        solver->kept++;
    }
    memset(solver->forward, 0, (uint64_t)solver->size * solver->size * sizeof *solver->forward);
    if (solver->kept > 0) {
        cblas_dsyrk(CblasColMajor, CblasUpper, CblasNoTrans, n, (int)solver->kept, 1.0,
                    vectors + (uint64_t)(rank - solver->kept) * rank, n, 0.0, solver->forward,
                    (int)solver->size);
    }
    for (uint64_t i = 0; i < rank; i++) {
        for (uint64_t j = 0; j < i; j++) {
            solver->forward[j * solver->size + i] = solver->forward[i * solver->size + j];
        }
    }
    return SLC_OK;
}

/* Sets forward to D V^+ E. */
static void scale_inverse(const struct slc_solver *solver, const double *left, const double *right)
{
    for (uint64_t i = 0; i < solver->rank; i++) {
        double *row = solver->forward + i * solver->size;

        for (uint64_t j = 0; j < solver->rank; j++) {
            row[j] *= left[i] * right[j];
        }
    }
}

/* Sets forward to D^-1 L and backward to E^-1 L, both padded with the identity. */
static void
scale_triangles(const struct slc_solver *solver, const double *left, const double *right)
{
    for (uint64_t i = 0; i < solver->size; i++) {
        double *forward = solver->forward + i * solver->size;
        double *backward = solver->backward + i * solver->size;

        if (i >= solver->rank) {
            memset(forward, 0, solver->size * sizeof *forward);
            memset(backward, 0, solver->size * sizeof *backward);
            forward[i] = backward[i] = 1.0;
        } else {
            for (uint64_t j = 0; j <= i; j++) {
                backward[j] = forward[j] / right[i];
                forward[j] /= left[i];
            }
        }
        solver->forward_inverse[i] = 1.0 / forward[i];
        solver->backward_inverse[i] = 1.0 / backward[i];
    }
}

enum slc_status slc_dense_factorize(struct slc_dense *dense,
                                    const double *gram,
                                    const double *left,
                                    const double *right,
                                    struct slc_solver *solver,
                                    struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    const double norm = one_norm(gram, solver->rank);

    if (solver->rank > dense->rank_max) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "rank %u exceeds the maximum rank %u for which scratch was allocated",
                        solver->rank, dense->rank_max);
    }
    if (!isfinite(norm)) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "the %u x %u Gram matrix contains a NaN or an infinity: the factors have "
                        "overflowed, or their initial values were not finite",
                        solver->rank, solver->rank);
    }
    for (uint64_t i = 0; i < solver->rank; i++) {
        memcpy(solver->forward + i * solver->size, gram + i * solver->rank,
               solver->rank * sizeof *gram);
    }
    solver->singular = !try_cholesky(dense, solver, norm);
    solver->kept = solver->rank;
    if (solver->singular) {
        status = pseudo_inverse(dense, gram, solver, err);
        scale_inverse(solver, left, right);
    } else {
        scale_triangles(solver, left, right);
    }
    return status;
}
