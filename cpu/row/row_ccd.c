/* Completion by cyclic coordinate descent. Each step minimizes the objective in one element of x
 * and updates the residuals of the row, so a sweep over the elements costs as much as a few
 * products of the row, while normal equations cost `rank` times as much. A row of several pieces is
 * solved by its normal equations, because coordinate descent would read it once per element. */
#include "cpu/row/row_state.h"

#include <math.h>

/* Minimizes the objective in element r. Returns the change of x[r]. */
static double descend(const struct row_state *state,
                      struct slc_row *row,
                      uint32_t r,
                      const double *column,
                      double *residuals)
{
    const uint32_t nnz = (uint32_t)row->nnz;
    double inner[2];

    state->kernels->column_inner(nnz, residuals, column, inner);
    const double square = inner[1] + row_ridge(state, r, nnz);
    const double solved = square > 0.0 ? (inner[0] + row->x[r] * inner[1]) / square : 0.0;
    const double change = solved - row->x[r];

    row->x[r] = solved;
    state->kernels->column_subtract(nnz, change, column, residuals);
    return change;
}

static void
whole(void *context, unsigned worker, struct slc_row *row, const struct slc_row_piece *piece)
{
    struct row_state *state = context;
    const struct slc_row_cell_options *options = &state->options.cells;
    struct slc_row_statistics *counts = &state->worker[worker].counts;
    const uint32_t pitch = slc_row_piece_nnz(state->rank);
    double *columns = state->worker[worker].scratch;
    double *residuals = columns + (uint64_t)state->width * pitch;
    bool solved = false;

    state->kernels->columns(piece->nnz, state->width, piece->products, pitch, columns);
    state->kernels->models(piece->nnz, state->width, piece->products, row->x, residuals);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        residuals[i] = piece->values[i] - residuals[i];
    }
    for (unsigned sweep = 0; sweep < options->inner && !solved; sweep++) {
        double most = 0.0, moved = 0.0;

        for (uint32_t r = 0; r < state->rank; r++) {
            if (!row_is_fixed(state, r)) {
                const double *column = columns + (uint64_t)r * pitch;

                moved = fmax(moved, fabs(descend(state, row, r, column, residuals)));
                most = fmax(most, fabs(row->x[r]));
            }
        }
        solved = moved <= options->tolerance * most;
        counts->traversals++;
    }
    counts->unconverged += !solved;
    row_count(state, worker, row);
}

void slc_row_set_ccd(struct row_state *state)
{
    slc_row_set_als(state);
    state->solver.name = "ccd";
    state->solver.whole = whole;
}
