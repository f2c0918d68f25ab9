#include "cpu/row/smooth.h"

#include "base/memory/checked.h"

#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* Workspace of LAPACK's dsyev in numbers per column, with the usual block size of 32: 32 + 2. */
enum { EIGEN_WORK = 34 };

struct smooth {
    const struct slc_smooth_problem *problem;
    uint64_t rows;
    uint32_t rank;
    double rho;
    double *vectors, *values, *line; /* eigenvectors of V (R numbers each), eigenvalues, a row */
    double *work;
    /* rows x R */
    double *step;   /* right-hand sides, then solutions */
    double *pivots; /* pivots of the tridiagonal systems */
    double *row, *dual;
};

uint64_t slc_smooth_elements(uint64_t rows, uint32_t rank)
{
    const uint64_t small = (uint64_t)rank * (rank + EIGEN_WORK + 2);
    uint64_t all, sum;

    return slc_mul_u64(rows, 4 * (uint64_t)rank, &all) && slc_add_u64(all, small, &sum)
               ? sum
               : UINT64_MAX;
}

static void divide_scratch(struct smooth *smooth, double *scratch)
{
    const uint64_t rank = smooth->rank, all = smooth->rows * rank;

    smooth->step = scratch;
    smooth->pivots = scratch + all;
    smooth->row = scratch + 2 * all;
    smooth->dual = scratch + 3 * all;
    smooth->vectors = scratch + 4 * all;
    smooth->values = smooth->vectors + rank * rank;
    smooth->line = smooth->values + rank;
    smooth->work = smooth->line + rank;
}

static enum slc_status find_eigenvectors(struct smooth *smooth, struct slc_error *err)
{
    const lapack_int n = (lapack_int)smooth->rank;
    const uint64_t entries = (uint64_t)smooth->rank * smooth->rank;
    double trace = 0.0;

    for (uint64_t i = 0; i < entries; i++) {
        if (!isfinite(smooth->problem->gram[i])) {
            return slc_fail(err, SLC_ERR_NUMERIC,
                            "the %u x %u Gram matrix contains a NaN or an infinity: the factors "
                            "have overflowed, or their initial values were not finite",
                            smooth->rank, smooth->rank);
        }
    }
    memcpy(smooth->vectors, smooth->problem->gram, entries * sizeof *smooth->vectors);
    if (LAPACKE_dsyev_work(LAPACK_COL_MAJOR, 'V', 'U', n, smooth->vectors, n, smooth->values,
                           smooth->work, n * EIGEN_WORK) != 0) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "the eigenvalues of the %u x %u Gram matrix did not converge", smooth->rank,
                        smooth->rank);
    }
    for (uint32_t k = 0; k < smooth->rank; k++) {
        trace += smooth->values[k];
    }
    smooth->rho = trace > 0.0 ? trace / smooth->rank : 1.0;
    return SLC_OK;
}

/* Sets smooth->line to a row in the basis of the eigenvectors. */
static void to_basis(const struct smooth *smooth, const double *row)
{
    for (uint32_t k = 0; k < smooth->rank; k++) {
        const double *vector = smooth->vectors + (uint64_t)k * smooth->rank;
        double sum = 0.0;

        for (uint32_t r = 0; r < smooth->rank; r++) {
            sum += vector[r] * row[r];
        }
        smooth->line[k] = sum;
    }
}

static void from_basis(const struct smooth *smooth, double *row)
{
    memcpy(smooth->line, row, smooth->rank * sizeof *row);
    memset(row, 0, smooth->rank * sizeof *row);
    for (uint32_t k = 0; k < smooth->rank; k++) {
        const double *vector = smooth->vectors + (uint64_t)k * smooth->rank;

        for (uint32_t r = 0; r < smooth->rank; r++) {
            row[r] += smooth->line[k] * vector[r];
        }
    }
}

/* Returns the number of neighbours of a row. */
static double neighbours(const struct smooth *smooth, uint64_t i)
{
    return (i > 0 ? 1.0 : 0.0) + (i + 1 < smooth->rows ? 1.0 : 0.0);
}

/* Replaces the right-hand sides in smooth->step by the solutions of X V + shift X + 2 smooth L X =
 * step: forward elimination and back substitution of all columns at once. A direction in which V
 * and shift are zero to working precision has the solution 0. */
static void solve_coupled(struct smooth *smooth, double shift)
{
    const uint32_t rank = smooth->rank;
    const double link = 2.0 * smooth->problem->terms->smooth;
    const double least = rank * DBL_EPSILON * fmax(smooth->values[rank - 1], 0.0);

    for (uint64_t i = 0; i < smooth->rows; i++) {
        double *row = smooth->step + i * rank;
        double *pivots = smooth->pivots + i * rank;

        to_basis(smooth, row);
        for (uint32_t k = 0; k < rank; k++) {
            const double own = smooth->values[k] + shift;
            const double before = i > 0 ? link / pivots[(int64_t)k - (int64_t)rank] : 0.0;
            const double known = i > 0 ? row[(int64_t)k - (int64_t)rank] : 0.0;

            pivots[k] = own > least ? own + link * neighbours(smooth, i) - before * link : INFINITY;
            row[k] = smooth->line[k] + before * known;
        }
    }
    for (uint64_t i = smooth->rows; i-- > 0;) {
        double *row = smooth->step + i * rank;
        const double *pivots = smooth->pivots + i * rank;

        for (uint32_t k = 0; k < rank; k++) {
            const double next = i + 1 < smooth->rows ? row[k + rank] : 0.0;

            row[k] = isfinite(pivots[k]) ? (row[k] + link * next) / pivots[k] : 0.0;
        }
    }
    for (uint64_t i = 0; i < smooth->rows; i++) {
        from_basis(smooth, smooth->step + i * rank);
    }
}

static double element(const struct slc_matrix *matrix, uint64_t i, uint32_t r)
{
    return matrix->type == SLC_F32 ? (double)slc_matrix_row_f32(matrix, i)[r]
                                   : slc_matrix_row_f64(matrix, i)[r];
}

static double mttkrp_at(const struct smooth *smooth, uint64_t i, uint32_t r)
{
    return element(smooth->problem->mttkrp, i, r) * smooth->problem->solver->left[r];
}

static void store_rows(const struct smooth *smooth, const double *rows)
{
    struct slc_matrix *factor = smooth->problem->factor;

    for (uint64_t i = 0; i < smooth->rows; i++, rows += smooth->rank) {
        for (uint32_t r = 0; r < smooth->rank; r++) {
            const double value = rows[r] * smooth->problem->solver->right[r];

            if (factor->type == SLC_F32) {
                slc_matrix_row_f32(factor, i)[r] = (float)value;
            } else {
                slc_matrix_row_f64(factor, i)[r] = value;
            }
        }
    }
}

/* Returns element r of X V + ridge X + 2 smooth L X for row i of `rows`. */
static double slope(const struct smooth *smooth, const double *rows, uint64_t i, uint32_t r)
{
    const struct slc_row_terms *terms = smooth->problem->terms;
    const uint32_t rank = smooth->rank;
    const double *row = rows + i * rank, *v = smooth->problem->gram + (uint64_t)r * rank;
    double sum = (terms->ridge + 2.0 * terms->smooth * neighbours(smooth, i)) * row[r];

    for (uint32_t s = 0; s < rank; s++) {
        sum += v[s] * row[s];
    }
    sum -= i > 0 ? 2.0 * terms->smooth * rows[(i - 1) * rank + r] : 0.0;
    return sum - (i + 1 < smooth->rows ? 2.0 * terms->smooth * rows[(i + 1) * rank + r] : 0.0);
}

static double objective(const struct smooth *smooth, const double *rows)
{
    double sum = 0.0;

    for (uint64_t i = 0; i < smooth->rows; i++) {
        for (uint32_t r = 0; r < smooth->rank; r++) {
            const double x = rows[i * smooth->rank + r];

            sum += x * (slope(smooth, rows, i, r) / 2 - mttkrp_at(smooth, i, r)) +
                   smooth->problem->terms->l1 * fabs(x);
        }
    }
    return sum;
}

/* Sets `rows` to the factor before the update, moved within the constraints. */
static void load_start(const struct smooth *smooth, double *rows)
{
    for (uint64_t i = 0; i < smooth->rows; i++) {
        double *row = rows + i * smooth->rank;

        for (uint32_t r = 0; r < smooth->rank; r++) {
            row[r] = element(smooth->problem->factor, i, r) * smooth->problem->solver->start[r];
        }
        slc_row_terms_apply(smooth->problem->terms, smooth->rank, 0.0, row);
    }
}

/* Makes a step: solves the coupled systems, then applies the constraints. Returns true if all rows
 * are complete. */
static bool make_step(struct smooth *smooth)
{
    const struct slc_row_terms *terms = smooth->problem->terms;
    double primal = 0.0, moved = 0.0, size = 0.0, dual_size = 0.0;

    for (uint64_t i = 0; i < smooth->rows; i++) {
        for (uint32_t r = 0; r < smooth->rank; r++) {
            const uint64_t at = i * smooth->rank + r;

            smooth->step[at] =
                mttkrp_at(smooth, i, r) + smooth->rho * (smooth->row[at] + smooth->dual[at]);
        }
    }
    solve_coupled(smooth, terms->ridge + smooth->rho);
    for (uint64_t i = 0; i < smooth->rows; i++) {
        const double *step = smooth->step + i * smooth->rank;
        double *row = smooth->row + i * smooth->rank, *dual = smooth->dual + i * smooth->rank;

        for (uint32_t r = 0; r < smooth->rank; r++) {
            smooth->line[r] = step[r] - dual[r];
        }
        slc_row_terms_apply(terms, smooth->rank, terms->l1 / smooth->rho, smooth->line);
        for (uint32_t r = 0; r < smooth->rank; r++) {
            const double next = smooth->line[r];

            dual[r] += next - step[r];
            primal += (next - step[r]) * (next - step[r]);
            moved += (next - row[r]) * (next - row[r]);
            size += next * next;
            dual_size += dual[r] * dual[r];
            row[r] = next;
        }
    }
    return primal <= smooth->problem->tolerance * size &&
           moved <= smooth->problem->tolerance * dual_size;
}

/* Starts the dual variables with the slope at the current rows, as in cpu/row/admm.c. If they are
 * larger than the rows, the start is far from a solution, and they start with zeros. */
static void start_dual(struct smooth *smooth)
{
    const uint64_t all = smooth->rows * smooth->rank;
    double size = 0.0, dual_size = 0.0;

    for (uint64_t i = 0; i < smooth->rows; i++) {
        for (uint32_t r = 0; r < smooth->rank; r++) {
            const uint64_t at = i * smooth->rank + r;

            smooth->dual[at] =
                (slope(smooth, smooth->row, i, r) - mttkrp_at(smooth, i, r)) / smooth->rho;
            size += smooth->row[at] * smooth->row[at];
            dual_size += smooth->dual[at] * smooth->dual[at];
        }
    }
    if (!(dual_size <= size)) {
        memset(smooth->dual, 0, all * sizeof *smooth->dual);
    }
}

/* Solves for the rows under constraints or with an l1 penalty, by ADMM, and stores them in
 * smooth->row. */
static void alternate(struct smooth *smooth)
{
    load_start(smooth, smooth->row);
    const double before = objective(smooth, smooth->row);
    start_dual(smooth);
    for (unsigned k = 0; k < smooth->problem->steps && !make_step(smooth); k++) {
    }
    if (!(objective(smooth, smooth->row) <= before)) {
        load_start(smooth, smooth->row);
    }
}

enum slc_status
slc_smooth_solve(const struct slc_smooth_problem *problem, double *scratch, struct slc_error *err)
{
    const struct slc_row_terms *terms = problem->terms;
    struct smooth smooth = {
        .problem = problem, .rows = problem->factor->rows, .rank = problem->factor->cols};

    divide_scratch(&smooth, scratch);
    SLC_TRY(find_eigenvectors(&smooth, err));
    if (terms->nonnegative || terms->simplex || terms->bounded || terms->l1 > 0.0) {
        alternate(&smooth);
        store_rows(&smooth, smooth.row);
        return SLC_OK;
    }
    for (uint64_t i = 0; i < smooth.rows; i++) {
        for (uint32_t r = 0; r < smooth.rank; r++) {
            smooth.step[i * smooth.rank + r] = mttkrp_at(&smooth, i, r);
        }
    }
    solve_coupled(&smooth, terms->ridge);
    store_rows(&smooth, smooth.step);
    return SLC_OK;
}
