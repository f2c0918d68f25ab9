/* Wraps a solver of the caller, to count its rows. */
#include "cpu/row/row_state.h"

static const struct slc_row_solver *given_of(const void *context)
{
    return ((const struct row_state *)context)->options.given;
}

static uint64_t sums(void *context, uint32_t rank)
{
    return given_of(context)->sums(given_of(context)->context, rank);
}

static uint64_t memory(void *context, uint32_t rank)
{
    return given_of(context)->memory(given_of(context)->context, rank);
}

static void start(void *context, unsigned worker, struct slc_row *row)
{
    given_of(context)->start(given_of(context)->context, worker, row);
}

static void add(void *context,
                unsigned worker,
                const struct slc_row *row,
                const struct slc_row_piece *piece,
                double *to)
{
    given_of(context)->add(given_of(context)->context, worker, row, piece, to);
}

static enum slc_row_next
step(void *context, unsigned worker, struct slc_row *row, const double *from)
{
    const enum slc_row_next next =
        given_of(context)->step(given_of(context)->context, worker, row, from);

    if (next == SLC_ROW_DONE) {
        row_count(context, worker, row);
    }
    return next;
}

static void
whole(void *context, unsigned worker, struct slc_row *row, const struct slc_row_piece *piece)
{
    struct row_state *state = context;

    given_of(context)->whole(given_of(context)->context, worker, row, piece);
    state->worker[worker].counts.traversals++;
    row_count(state, worker, row);
}

static void measure(void *context,
                    unsigned worker,
                    const struct slc_row *row,
                    const struct slc_row_piece *piece,
                    double measures[SLC_ROW_MEASURES])
{
    given_of(context)->measure(given_of(context)->context, worker, row, piece, measures);
}

static void end(void *context)
{
    given_of(context)->end(given_of(context)->context);
}

void slc_row_set_given(struct row_state *state)
{
    const struct slc_row_solver *given = state->options.given;
    struct slc_row_solver *solver = &state->solver;

    solver->name = given->name;
    solver->sums = sums;
    solver->memory = memory;
    solver->start = given->start != NULL ? start : NULL;
    solver->add = add;
    solver->step = step;
    solver->whole = given->whole != NULL ? whole : NULL;
    solver->measure = given->measure != NULL ? measure : slc_row_measure_squares;
    solver->end = given->end != NULL ? end : NULL;
}
