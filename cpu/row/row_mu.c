/* Multiplicative updates of Poisson models [Chi2012]: x = x phi / totals, where phi is the sum of
 * v / m times the products. Each update needs one traversal and does not increase the objective. */
#include "cpu/row/row_state.h"

#include <math.h>
#include <string.h>

static uint64_t sums(void *context, uint32_t rank)
{
    (void)context;
    return slc_row_width(rank);
}

static uint64_t no_memory(void *context, uint32_t rank)
{
    (void)context;
    (void)rank;
    return 0;
}

static unsigned char *flags_of(const struct row_state *state, const struct slc_row *row)
{
    unsigned char *flags = state->options.poisson.flags[state->mode.mode];

    return flags == NULL ? NULL : flags + row->index * slc_row_flag_bytes(state->rank);
}

/* Adds zero_offset to zeros that violate the KKT conditions (struct slc_row_poisson_options). */
static void start(void *context, unsigned worker, struct slc_row *row)
{
    const struct row_state *state = context;
    const struct slc_row_poisson_options *options = &state->options.poisson;
    const unsigned char *flags = flags_of(state, row);

    (void)worker;
    for (uint32_t r = 0; flags != NULL && r < state->rank; r++) {
        const double weight = state->mode.weights == NULL ? 1.0 : state->mode.weights[r];

        if ((flags[r / 8] >> r % 8 & 1) != 0 && row->x[r] < options->zero_tolerance * weight) {
            row->x[r] += options->zero_offset * weight;
        }
    }
}

static void add(void *context,
                unsigned worker,
                const struct slc_row *row,
                const struct slc_row_piece *piece,
                double *to)
{
    const struct row_state *state = context;

    (void)worker;
    state->kernels->poisson(&(struct slc_row_poisson_span){.nnz = piece->nnz,
                                                           .width = state->width,
                                                           .floor = state->options.poisson.floor,
                                                           .values = piece->values,
                                                           .products = piece->products,
                                                           .x = row->x,
                                                           .phi = to});
}

/* Stores for each element whether phi exceeded its total. */
static void set_flags(const struct row_state *state, const struct slc_row *row, const double *phi)
{
    unsigned char *flags = flags_of(state, row);

    for (uint32_t r = 0; flags != NULL && r < state->rank; r++) {
        const unsigned bit = 1U << r % 8;
        const unsigned others = flags[r / 8] & ~bit;

        flags[r / 8] = (unsigned char)(phi[r] > state->totals[r] ? others | bit : others);
    }
}

static enum slc_row_next
step(void *context, unsigned worker, struct slc_row *row, const double *phi)
{
    struct row_state *state = context;
    const double violation = slc_row_note_violation(state, worker, row, phi);
    const bool solved = violation < state->options.poisson.tolerance;

    if (!solved) {
        state->kernels->rescale(state->width, state->totals, phi, row->x);
    }
    if (!solved && row->traversals < state->options.poisson.inner) {
        return SLC_ROW_AGAIN;
    }
    struct slc_row_statistics *counts = &state->worker[worker].counts;

    counts->violation_last = fmax(counts->violation_last, violation);
    set_flags(state, row, phi);
    row_count(state, worker, row);
    return SLC_ROW_DONE;
}

/* All updates of a row that is a single piece. */
static void
whole(void *context, unsigned worker, struct slc_row *row, const struct slc_row_piece *piece)
{
    const struct row_state *state = context;
    double *phi = state->worker[worker].scratch;

    do {
        memset(phi, 0, state->width * sizeof *phi);
        add(context, worker, row, piece, phi);
        row->traversals++;
    } while (step(context, worker, row, phi) == SLC_ROW_AGAIN);
}

void slc_row_set_mu(struct row_state *state)
{
    struct slc_row_solver *solver = &state->solver;

    solver->name = "mu";
    solver->sums = sums;
    solver->memory = no_memory;
    solver->start = start;
    solver->add = add;
    solver->step = step;
    solver->whole = whole;
    solver->measure = slc_row_measure_poisson;
}
