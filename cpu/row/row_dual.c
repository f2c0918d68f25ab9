/* Completion by least squares for rows with few nonzeros. If every column that is not fixed has a
 * ridge, the solution of the R x R normal equations is x = D^-1 P^T y with (P D^-1 P^T + I) y = v,
 * where the rows of P are the products of the n nonzeros, and D is the diagonal matrix of the
 * ridges. This n x n system is cheaper if n is at most half of R. In many tensors, this is true of
 * most rows. */
#include "cpu/row/row_state.h"

#include <string.h>

bool slc_row_dual_fits(const struct row_state *state, uint64_t nnz)
{
    if (state->ridge == NULL || 2 * nnz > state->rank) {
        return false;
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        if (!row_is_fixed(state, r) && !(state->ridge[r] > 0.0)) {
            return false;
        }
    }
    return true;
}

/* Computes P D^-1, with zeros in fixed columns. */
static void divide_products(const struct row_state *state,
                            const struct slc_row *row,
                            const struct slc_row_piece *piece,
                            double *divided)
{
    const uint32_t width = state->width;

    memset(divided, 0, (uint64_t)piece->nnz * width * sizeof *divided);
    for (uint32_t r = 0; r < state->rank; r++) {
        if (!row_is_fixed(state, r)) {
            const double inverse = 1.0 / row_ridge(state, r, row->nnz);

            for (uint32_t i = 0; i < piece->nnz; i++) {
                divided[i * (uint64_t)width + r] =
                    inverse * piece->products[i * (uint64_t)width + r];
            }
        }
    }
}

void slc_row_solve_dual(struct row_state *state,
                        unsigned worker,
                        struct slc_row *row,
                        const struct slc_row_piece *piece)
{
    const struct slc_row_kernels *kernels = state->kernels;
    const uint32_t nnz = piece->nnz, width = state->width, pitch = slc_row_width(nnz);
    double *divided = state->worker[worker].scratch;
    double *matrix = divided + (uint64_t)nnz * width;
    double *y = matrix + (uint64_t)pitch * pitch;

    divide_products(state, row, piece, divided);
    memset(matrix, 0, ((uint64_t)pitch * pitch + pitch) * sizeof *matrix);
    slc_row_subtract_fixed(state, row, piece, y);
    for (uint32_t i = 0; i < nnz; i++) {
        kernels->models(nnz, width, piece->products, divided + i * (uint64_t)width,
                        matrix + i * (uint64_t)pitch);
        matrix[i * (uint64_t)pitch + i] += 1.0;
    }
    /* The factorization cannot fail: the matrix is I plus a positive semi-definite matrix. */
    (void)kernels->cholesky(nnz, pitch, NULL, matrix);
    kernels->substitute(nnz, pitch, matrix, y);
    for (uint32_t r = 0; r < state->rank; r++) {
        row->x[r] = row_is_fixed(state, r) ? row->x[r] : 0.0;
    }
    kernels->combine(nnz, width, divided, y, row->x);
}
