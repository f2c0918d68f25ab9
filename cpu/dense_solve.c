/*
 * Solving X V = M for the symmetric positive semi-definite V of ALS, and the update of a factor.
 *
 * V = L L^T (LAPACK dpotrf); X = M L^-T L^-1 block by block
 * (kernels.h) or panel by panel (dtrsm) at high ranks. Where the reciprocal condition
 * number says that V is singular to working precision, X = M V^+ with the pseudo-inverse from the
 * eigenvalues that count. LAPACK is called through the column-major interfaces, which take no
 * memory of their own: V is symmetric, and L row-major is L^T column-major.
 */
#include "base/checked.h"
#include "base/limits.h"
#include "base/team.h"
#include "cpu/dense_state.h"
#include "cpu/kernels.h"

#include <assert.h>
#include <cblas.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* LAPACK's workspace for dsyev with its usual block of 32: (32 + 2) * n. */
enum { EIGEN_WORK = 34 };
_Static_assert(EIGEN_WORK + 1 <= SLC_COLUMN_ELEMENTS, "eigenvalues and workspace must fit");

enum slc_status slc_solver_create(struct slc_solver *solver, uint32_t rank, struct slc_error *err)
{
    static const struct slc_solver empty;

    *solver = empty;
    if (rank < 1 || rank > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE, "the rank is %u; it can be 1 to %d", rank,
                        SLC_MAX_RANK);
    }
    solver->factor = slc_calloc((size_t)rank * rank, sizeof *solver->factor);
    if (solver->factor == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a %u x %u matrix", rank, rank);
    }
    solver->rank = rank;
    return SLC_OK;
}

void slc_solver_destroy(struct slc_solver *solver)
{
    static const struct slc_solver empty;

    slc_free(solver->factor);
    *solver = empty;
}

/* Largest sum of magnitudes of a column (V is symmetric: of a row); NaN or infinity show in it. */
static double norm_1(const double *gram, uint64_t rank)
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

/* True when Cholesky succeeds and V is not singular to working precision. */
static bool try_cholesky(struct slc_dense *dense, struct slc_solver *solver, double norm)
{
    const lapack_int n = (lapack_int)solver->rank;
    double *work = dense->columns;
    lapack_int *integers = (lapack_int *)(void *)(work + 3 * (uint64_t)solver->rank);
    double reciprocal = 0.0;

    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', n, solver->factor, n) != 0) {
        return false;
    }
    if (LAPACKE_dpocon_work(LAPACK_COL_MAJOR, 'U', n, solver->factor, n, norm, &reciprocal, work,
                            integers) != 0) {
        return false;
    }
    return reciprocal >= (double)solver->rank * DBL_EPSILON;
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
    double *work = values + rank;
    double least;

    memcpy(vectors, gram, (uint64_t)rank * rank * sizeof *vectors);
    if (LAPACKE_dsyev_work(LAPACK_COL_MAJOR, 'V', 'U', n, vectors, n, values, work,
                           n * EIGEN_WORK) != 0) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "the eigenvalues of the %u x %u Gram matrix did not converge", rank, rank);
    }
    /* Ascending, so those that count are the last; scaled by w^-1/2 they give V^+ as a product. */
    least = (double)rank * DBL_EPSILON * values[rank - 1];
    solver->kept = 0;
    while (solver->kept < rank && values[rank - 1 - solver->kept] > least &&
           values[rank - 1 - solver->kept] > 0.0) {
        const uint64_t k = rank - 1 - solver->kept;

        cblas_dscal(n, 1.0 / sqrt(values[k]), vectors + k * rank, 1);
        solver->kept++;
    }
    memset(solver->factor, 0, (uint64_t)rank * rank * sizeof *solver->factor);
    if (solver->kept > 0) {
        cblas_dsyrk(CblasColMajor, CblasUpper, CblasNoTrans, n, (int)solver->kept, 1.0,
                    vectors + (uint64_t)(rank - solver->kept) * rank, n, 0.0, solver->factor, n);
    }
    for (uint64_t i = 0; i < rank; i++) {
        for (uint64_t j = 0; j < i; j++) {
            solver->factor[j * rank + i] = solver->factor[i * rank + j];
        }
    }
    return SLC_OK;
}

enum slc_status slc_dense_factorize(struct slc_dense *dense,
                                    const double *gram,
                                    struct slc_solver *solver,
                                    struct slc_error *err)
{
    const uint64_t square = (uint64_t)solver->rank * solver->rank;
    const double norm = norm_1(gram, solver->rank);

    if (solver->rank > dense->rank_max) {
        return slc_fail(err, SLC_ERR_USAGE, "rank %u exceeds the %u that scratch was taken for",
                        solver->rank, dense->rank_max);
    }
    if (!isfinite(norm)) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "the %u x %u Gram matrix holds a NaN or an infinity: the factors have "
                        "overflowed or started from such values",
                        solver->rank, solver->rank);
    }
    memcpy(solver->factor, gram, square * sizeof *gram);
    solver->singular = !try_cholesky(dense, solver, norm);
    solver->kept = solver->rank;
    return solver->singular ? pseudo_inverse(dense, gram, solver, err) : SLC_OK;
}

struct update {
    struct slc_dense *dense;
    const struct slc_solver *solver;
    const struct slc_matrix *mttkrp;
    struct slc_matrix *factor;
    enum slc_norm norm;
    struct slc_row_cut cut;
};

/* Rows of a matrix column by column, as the kernel wants them, and back. */
static void
load_columns(const struct slc_matrix *matrix, uint64_t row, uint64_t rows, double *columns)
{
    for (uint64_t i = 0; i < rows; i++) {
        if (matrix->type == SLC_F64) {
            const double *from = slc_matrix_row_f64(matrix, row + i);
            for (uint32_t r = 0; r < matrix->cols; r++) {
                columns[r * SLC_SOLVE_ROWS + i] = from[r];
            }
        } else {
            const float *from = slc_matrix_row_f32(matrix, row + i);
            for (uint32_t r = 0; r < matrix->cols; r++) {
                columns[r * SLC_SOLVE_ROWS + i] = (double)from[r];
            }
        }
    }
}

static void
store_columns(struct slc_matrix *matrix, uint64_t row, uint64_t rows, const double *columns)
{
    for (uint64_t i = 0; i < rows; i++) {
        if (matrix->type == SLC_F64) {
            double *to = slc_matrix_row_f64(matrix, row + i);
            for (uint32_t r = 0; r < matrix->cols; r++) {
                to[r] = columns[r * SLC_SOLVE_ROWS + i];
            }
        } else {
            float *to = slc_matrix_row_f32(matrix, row + i);
            for (uint32_t r = 0; r < matrix->cols; r++) {
                to[r] = (float)columns[r * SLC_SOLVE_ROWS + i];
            }
        }
    }
}

/* out = in V^-1 for `rows` rows; `in` may be `out` unless V is singular. */
static void
solve_panel(const struct slc_solver *solver, int rows, const double *in, double *out, int pitch)
{
    const int n = (int)solver->rank;

    if (solver->singular) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, n, n, 1.0, in, pitch,
                    solver->factor, n, 0.0, out, pitch);
        return;
    }
    if (in != out) {
        memcpy(out, in, (uint64_t)rows * (uint64_t)pitch * sizeof *out);
    }
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows, n, 1.0,
                solver->factor, n, out, pitch);
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, rows, n, 1.0,
                solver->factor, n, out, pitch);
}

/*
 * Small ranks: blocks of rows column by column; against dtrsm of OpenBLAS 0.3.21 1.2 times faster
 * at rank 16, 1.6 at 64.
 */
static void update_blocks(const struct update *update, uint64_t begin, uint64_t end)
{
    const struct slc_kernel_set *kernels = slc_kernels();
    const double *lower = update->solver->factor;
    const uint32_t rank = update->solver->rank;
    double columns[SLC_SOLVE_RANK * SLC_SOLVE_ROWS] __attribute__((aligned(64)));
    double inverse[SLC_SOLVE_RANK];

    for (uint32_t r = 0; r < rank; r++) {
        inverse[r] = 1.0 / lower[(uint64_t)r * rank + r];
    }
    for (uint64_t row = begin; row < end; row += SLC_SOLVE_ROWS) {
        const uint64_t rows = slc_min_u64(end - row, SLC_SOLVE_ROWS);

        if (rows < SLC_SOLVE_ROWS) {
            memset(columns, 0, rank * SLC_SOLVE_ROWS * sizeof *columns);
        }
        load_columns(update->mttkrp, row, rows, columns);
        kernels->solve(lower, inverse, rank, columns);
        store_columns(update->factor, row, rows, columns);
    }
}

static void update_panel(const struct update *update, uint64_t begin, uint64_t end, unsigned worker)
{
    const int rows = (int)(end - begin);
    double *in = slc_dense_panel(update->dense, worker, 0);
    double *out = update->solver->singular ? slc_dense_panel(update->dense, worker, 1) : in;

    if (!update->solver->singular && update->solver->rank <= SLC_SOLVE_RANK) {
        update_blocks(update, begin, end);
        return;
    }
    if (update->factor->type == SLC_F64) {
        solve_panel(update->solver, rows, slc_matrix_row_f64(update->mttkrp, begin),
                    slc_matrix_row_f64(update->factor, begin), (int)update->factor->pitch);
        return;
    }
    slc_dense_load(update->mttkrp, begin, end, 0, update->mttkrp->cols, in);
    solve_panel(update->solver, rows, in, out, (int)update->mttkrp->cols);
    slc_dense_store(update->factor, begin, end, out);
}

/* What the panel adds to its group's column norms; a NaN stays once it is there. */
static void
norm_panel(const struct update *update, uint64_t begin, uint64_t end, unsigned worker, double *sums)
{
    const uint32_t rank = update->factor->cols;
    double *row = slc_dense_panel(update->dense, worker, 0);

    for (uint64_t i = begin; i < end; i++) {
        slc_dense_load(update->factor, i, i + 1, 0, rank, row);
        if (update->norm == SLC_NORM_2) {
            for (uint32_t r = 0; r < rank; r++) {
                sums[r] += row[r] * row[r];
            }
        } else {
            for (uint32_t r = 0; r < rank; r++) {
                const double magnitude = fabs(row[r]);
                sums[r] = magnitude <= sums[r] || isnan(sums[r]) ? sums[r] : magnitude;
            }
        }
    }
}

static void update_groups(void *context, uint64_t first, uint64_t last, unsigned worker)
{
    const struct update *update = context;
    const uint64_t rank = update->factor->cols;

    for (uint64_t group = first; group < last; group++) {
        const uint64_t limit = slc_group_end(&update->cut, group);
        double *sums = update->dense->columns + group * rank;

        memset(sums, 0, rank * sizeof *sums);
        for (uint64_t row = group * update->cut.group_rows; row < limit;) {
            const uint64_t end = slc_panel_end(&update->cut, row, limit);

            update_panel(update, row, end, worker);
            if (update->norm != SLC_NORM_NONE) {
                norm_panel(update, row, end, worker, sums);
            }
            row = end;
        }
    }
}

static void combine_norms(const struct update *update, double *norms)
{
    const uint64_t rank = update->factor->cols;

    for (uint64_t r = 0; r < rank; r++) {
        double total = update->norm == SLC_NORM_2 ? 0.0 : 1.0;

        for (uint64_t group = 0; group < update->cut.groups; group++) {
            const double part = update->dense->columns[group * rank + r];

            if (update->norm == SLC_NORM_2) {
                total += part;
            } else if (!(part <= total) && !isnan(total)) {
                total = part;
            }
        }
        norms[r] = update->norm == SLC_NORM_2 ? sqrt(total) : total;
    }
}

enum slc_status slc_dense_update(struct slc_dense *dense,
                                 const struct slc_solver *solver,
                                 const struct slc_matrix *mttkrp,
                                 struct slc_matrix *factor,
                                 enum slc_norm norm,
                                 double *norms,
                                 double *gram,
                                 struct slc_error *err)
{
    struct update update = {dense, solver, mttkrp, factor, norm, {0}};
    enum slc_status status = slc_dense_check(dense, factor, err);

    assert(mttkrp != factor);
    if (status != SLC_OK) {
        return status;
    }
    if (mttkrp->rows != factor->rows || mttkrp->cols != factor->cols ||
        mttkrp->type != factor->type || solver->rank != factor->cols) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "an MTTKRP of %llu x %u and a solver of rank %u do not fit a factor of "
                        "%llu x %u",
                        (unsigned long long)mttkrp->rows, mttkrp->cols, solver->rank,
                        (unsigned long long)factor->rows, factor->cols);
    }
    update.cut = slc_row_cut(factor->rows, slc_panel_rows(factor->cols), SLC_DENSE_GROUPS);
    status = slc_team_for(dense->workers, update.cut.groups, 1, update_groups, &update, err);
    if (status != SLC_OK) {
        return status;
    }
    if (norm == SLC_NORM_NONE) {
        return slc_dense_divide_gram(dense, factor, NULL, gram, err);
    }
    combine_norms(&update, norms);
    return slc_dense_divide_gram(dense, factor, norms, gram, err);
}
