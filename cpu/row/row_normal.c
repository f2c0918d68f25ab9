/* Forms and solves the normal equations of a row, H x = g.
 *
 * H = U^T U (Cholesky). If a pivot is lost to rounding, H is singular: the row has too few nonzeros
 * for the rank, and no ridge. Then H = L L^T with L of full column rank k, by a Cholesky
 * factorization with pivoting, and x = L (L^T L)^-1 (L^T L)^-1 L^T g is the solution with the least
 * norm. */
#include "cpu/row/row_state.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Sets to[r] = x[r] in fixed columns, and 0 in the others. */
static void copy_fixed(const struct row_state *state, const double *x, double *to)
{
    memset(to, 0, state->width * sizeof *to);
    for (uint32_t r = 0; r < state->rank; r++) {
        if (row_is_fixed(state, r)) {
            to[r] = x[r];
        }
    }
}

void slc_row_subtract_fixed(const struct row_state *state,
                            const struct slc_row *row,
                            const struct slc_row_piece *piece,
                            double *residuals)
{
    double x[SLC_MAX_RANK] __attribute__((aligned(64)));

    if (state->fixed == NULL) {
        memcpy(residuals, piece->values, piece->nnz * sizeof *residuals);
        return;
    }
    copy_fixed(state, row->x, x);
    state->kernels->models(piece->nnz, state->width, piece->products, x, residuals);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        residuals[i] = piece->values[i] - residuals[i];
    }
}

void slc_row_add_normal(const struct row_state *state,
                        const struct slc_row *row,
                        const struct slc_row_piece *piece,
                        double *sums)
{
    const struct slc_row_kernels *kernels = state->kernels;
    const uint32_t nnz = piece->nnz, width = state->width;
    double residuals[SLC_ROW_PIECE];

    slc_row_subtract_fixed(state, row, piece, residuals);
    kernels->normal(nnz, width, piece->products, NULL, sums);
    kernels->combine(nnz, width, piece->products, residuals, sums + row_square(state));
}

/* Normal equations in which the rows and columns of fixed columns are 0. */
struct system {
    const struct row_state *state;
    uint32_t rank, width;
    uint64_t nnz;
    const double *normal;
};

static double element(const struct system *system, uint32_t i, uint32_t j)
{
    const double sum =
        system->normal[i < j ? i * (uint64_t)system->width + j : j * (uint64_t)system->width + i];

    if (row_is_fixed(system->state, i) || row_is_fixed(system->state, j)) {
        return 0.0;
    }
    return i == j ? sum + row_ridge(system->state, i, system->nnz) : sum;
}

/* Computes H = L L^T with pivoting; L is rank x width, by columns: column c begins at
 * l + c * width. `left` has `rank` numbers of scratch. Returns the number of columns. */
static uint32_t factorize_pivoted(const struct system *system, double *left, double *l)
{
    double most = 0.0;
    uint32_t count = 0;

    for (uint32_t r = 0; r < system->rank; r++) {
        left[r] = element(system, r, r);
        most = left[r] > most ? left[r] : most;
    }
    for (; count < system->rank; count++) {
        double *column = l + (uint64_t)count * system->width;
        uint32_t pivot = 0;

        for (uint32_t r = 1; r < system->rank; r++) {
            pivot = left[r] > left[pivot] ? r : pivot;
        }
        if (!(left[pivot] > most * system->rank * DBL_EPSILON)) {
            break;
        }
        for (uint32_t r = 0; r < system->rank; r++) {
            column[r] = element(system, r, pivot);
        }
        for (uint32_t c = 0; c < count; c++) {
            const double *earlier = l + (uint64_t)c * system->width;
            const double factor = earlier[pivot];

            for (uint32_t r = 0; r < system->rank; r++) {
                column[r] -= factor * earlier[r];
            }
        }
        const double inverse = 1.0 / __builtin_sqrt(left[pivot]);

        for (uint32_t r = 0; r < system->rank; r++) {
            column[r] *= inverse;
            left[r] -= column[r] * column[r];
        }
        left[pivot] = 0.0;
    }
    return count;
}

static double inner(const double *a, const double *b, uint32_t count)
{
    double sum = 0.0;

    for (uint32_t r = 0; r < count; r++) {
        sum += a[r] * b[r];
    }
    return sum;
}

/* Computes the solution with the least norm. Scratch: `l` and `square` have width x width numbers,
 * `z` has 2 x width. */
static void solve_least_norm(const struct system *system,
                             const double *right,
                             double *l,
                             double *square,
                             double *z,
                             double *solution)
{
    const struct slc_row_kernels *kernels = system->state->kernels;
    const uint32_t width = system->width;
    uint32_t count = factorize_pivoted(system, z + width, l);

    memset(square, 0, (uint64_t)width * width * sizeof *square);
    memset(z, 0, width * sizeof *z);
    for (uint32_t c = 0; c < count; c++) {
        z[c] = inner(l + (uint64_t)c * width, right, system->rank);
        for (uint32_t d = c; d < count; d++) {
            square[c * (uint64_t)width + d] =
                inner(l + (uint64_t)c * width, l + (uint64_t)d * width, system->rank);
        }
    }
    count = kernels->cholesky(count, width, NULL, square);
    kernels->substitute(count, width, square, z);
    kernels->substitute(count, width, square, z);
    memset(solution, 0, width * sizeof *solution);
    for (uint32_t c = 0; c < count; c++) {
        for (uint32_t r = 0; r < system->rank; r++) {
            solution[r] += l[c * (uint64_t)width + r] * z[c];
        }
    }
}

/* Returns true if the sums have overflowed. */
static bool is_infinite(const struct system *system)
{
    double sum = 0.0;

    for (uint32_t r = 0; r < system->rank; r++) {
        sum += element(system, r, r);
    }
    return !isfinite(sum);
}

/* Copies the matrix with ridge; fixed columns become columns of the identity. Sets the minimum
 * pivots. */
static void copy_system(const struct system *system, double *u, double *least)
{
    const uint32_t width = system->width;

    memcpy(u, system->normal, (uint64_t)width * width * sizeof *u);
    for (uint32_t r = 0; r < system->rank; r++) {
        double *diagonal = u + r * (uint64_t)width + r;

        *diagonal += row_ridge(system->state, r, system->nnz);
        least[r] = *diagonal * system->rank * DBL_EPSILON;
        if (row_is_fixed(system->state, r)) {
            for (uint32_t i = 0; i < system->rank; i++) {
                u[(i < r ? i : r) * (uint64_t)width + (i < r ? r : i)] = 0.0;
            }
            *diagonal = 1.0;
            least[r] = 0.5;
        }
    }
}

void slc_row_solve_normal(struct row_state *state,
                          unsigned worker,
                          struct slc_row *row,
                          const double *sums)
{
    const uint32_t rank = state->rank, width = state->width;
    const uint64_t square = row_square(state);
    const struct system system = {state, rank, width, row->nnz, sums};
    double *u = state->worker[worker].scratch;
    double *solution = u + 2 * square, *least = solution + width;

    if (row->nnz == 0) {
        memset(solution, 0, width * sizeof *solution);
    } else {
        memcpy(solution, sums + square, width * sizeof *solution);
        copy_system(&system, u, least);
        if (state->kernels->cholesky(rank, width, least, u) == rank) {
            state->kernels->substitute(rank, width, u, solution);
        } else if (is_infinite(&system)) {
            for (uint32_t r = 0; r < rank; r++) {
                solution[r] = NAN; /* the caller reports it */
            }
        } else {
            state->worker[worker].counts.singular++;
            solve_least_norm(&system, sums + square, u, u + square, least, solution);
        }
    }
    for (uint32_t r = 0; r < rank; r++) {
        if (!row_is_fixed(state, r)) {
            row->x[r] = solution[r];
        }
    }
}
