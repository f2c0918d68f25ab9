/* Computes the measures and KKT violations of rows for all solvers of Poisson models. */
#include "cpu/row/row_state.h"

#include <math.h>

void slc_row_measure_poisson(void *context,
                             unsigned worker,
                             const struct slc_row *row,
                             const struct slc_row_piece *piece,
                             double measures[SLC_ROW_MEASURES])
{
    const struct row_state *state = context;
    double models[SLC_ROW_PIECE];

    (void)worker;
    if (piece == NULL) {
        for (uint32_t r = 0; r < state->rank; r++) {
            measures[0] += row->x[r] * state->totals[r];
        }
        return;
    }
    state->kernels->models(piece->nnz, state->width, piece->products, row->x, models);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        measures[1] += fabs(piece->values[i] - models[i]);
        /* A zero that violates the KKT conditions must not make the reported log-likelihood
         * infinite, because the next iteration changes the zero. */
        models[i] = models[i] > SLC_ROW_LOG_FLOOR ? models[i] : SLC_ROW_LOG_FLOOR;
    }
    measures[0] -= state->kernels->log_sum(piece->nnz, piece->values, models);
}

double slc_row_note_violation(struct row_state *state,
                              unsigned worker,
                              const struct slc_row *row,
                              const double *phi)
{
    struct slc_row_statistics *counts = &state->worker[worker].counts;
    const double violation = state->kernels->violation(state->width, row->x, state->totals, phi);

    if (row->traversals == 1) {
        counts->violation_first = fmax(counts->violation_first, violation);
        counts->unconverged += !(violation < state->options.poisson.tolerance);
    }
    return violation;
}
