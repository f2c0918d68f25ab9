/* Completion by least squares: the normal equations of a row need one traversal. Rows with few
 * nonzeros are solved without them (row_dual.c). */
#include "cpu/row/row_state.h"

#include <math.h>
#include <string.h>

static uint64_t sums(void *context, uint32_t rank)
{
    const uint64_t width = slc_row_width(rank);

    (void)context;
    return width * width + width;
}

static uint64_t no_memory(void *context, uint32_t rank)
{
    (void)context;
    (void)rank;
    return 0;
}

static void add(void *context,
                unsigned worker,
                const struct slc_row *row,
                const struct slc_row_piece *piece,
                double *to)
{
    (void)worker;
    slc_row_add_normal(context, row, piece, to);
}

static enum slc_row_next
step(void *context, unsigned worker, struct slc_row *row, const double *from)
{
    slc_row_solve_normal(context, worker, row, from);
    row_count(context, worker, row);
    return SLC_ROW_DONE;
}

static void
whole(void *context, unsigned worker, struct slc_row *row, const struct slc_row_piece *piece)
{
    struct row_state *state = context;

    row->traversals = 1;
    if (slc_row_dual_fits(state, row->nnz)) {
        slc_row_solve_dual(state, worker, row, piece);
    } else {
        double *sums_of_row =
            state->worker[worker].scratch + 2 * row_square(state) + 3 * state->width;

        memset(sums_of_row, 0, sums(state, state->rank) * sizeof *sums_of_row);
        slc_row_add_normal(state, row, piece, sums_of_row);
        slc_row_solve_normal(state, worker, row, sums_of_row);
    }
    row_count(state, worker, row);
}

void slc_row_measure_squares(void *context,
                             unsigned worker,
                             const struct slc_row *row,
                             const struct slc_row_piece *piece,
                             double measures[SLC_ROW_MEASURES])
{
    const struct row_state *state = context;
    enum { PARTS = 4 };
    double models[SLC_ROW_PIECE + PARTS], squares[PARTS] = {0}, sizes[PARTS] = {0};

    (void)worker;
    if (piece == NULL) {
        return;
    }
    state->kernels->models(piece->nnz, state->width, piece->products, row->x, models);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const double residual = piece->values[i] - models[i];

        squares[i % PARTS] += residual * residual;
        sizes[i % PARTS] += fabs(residual);
    }
    measures[0] += (squares[0] + squares[1]) + (squares[2] + squares[3]);
    measures[1] += (sizes[0] + sizes[1]) + (sizes[2] + sizes[3]);
}

void slc_row_set_als(struct row_state *state)
{
    struct slc_row_solver *solver = &state->solver;

    solver->name = "als";
    solver->sums = sums;
    solver->memory = no_memory;
    solver->add = add;
    solver->step = step;
    solver->whole = whole;
    solver->measure = slc_row_measure_squares;
}
