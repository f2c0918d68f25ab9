/* Ends a decomposition like the functions arrange and fixsigns of the Tensor Toolbox. Columns get
 * unit 2-norm, and their norms are moved into lambda. Components are sorted by descending lambda
 * (components with equal lambda keep their order). Signs depend only on the components, not on the
 * signs with which the iterations ended. First, rows of relabelled modes are permuted to the order
 * of the input, so that relabelling does not affect which of two elements with equal magnitude
 * determines a sign.
 *
 * Cost: three sweeps over the factors. */
#include "engine/solve/cp_state.h"
#include "engine/stream/relabel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

struct component {
    double lambda;
    uint32_t index;
};

static int compare_components(const void *left, const void *right)
{
    const struct component *a = left;
    const struct component *b = right;

    if (a->lambda != b->lambda) {
        return a->lambda > b->lambda ? -1 : 1;
    }
    return a->index < b->index ? -1 : 1;
}

static enum slc_status restore_rows(struct cp_state *state, struct slc_error *err)
{
    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(
            slc_relabel_rows(state->store, n, SLC_ROWS_OF_INPUT, &state->result->factors[n], err));
    }
    return SLC_OK;
}

/* Moves the 2-norms of the columns into lambda. Sets signs[n * R + r] and opposites[n * R + r] for
 * column r of factor n as slc_dense_column_norms does. */
static enum slc_status
absorb_norms(struct cp_state *state, double *signs, double *opposites, struct slc_error *err)
{
    double *lambda = state->result->lambda;
    /* reused: it has at least R numbers and is not needed any more */
    double *norms = state->system;

    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(slc_dense_column_norms(state->dense, &state->result->factors[n], norms,
                                       signs + (size_t)n * state->rank,
                                       opposites + (size_t)n * state->rank, err));
        for (uint32_t r = 0; cp_keeps_units(state, n) && r < state->rank; r++) {
            signs[(size_t)n * state->rank + r] = 1.0;
            norms[r] = 1.0 / state->scale[n][r]; /* the column is multiplied by its scale */
        }
        for (uint32_t r = 0; r < state->rank; r++) {
            /* The reciprocal of a subnormal norm can overflow, so the column is treated as zero. */
            lambda[r] *= state->scale[n][r] * (norms[r] < DBL_MIN ? 0.0 : norms[r]);
            norms[r] = norms[r] < DBL_MIN ? 0.0 : 1.0 / norms[r];
        }
        SLC_TRY(slc_dense_scale(state->dense, &state->result->factors[n], norms, err));
    }
    return SLC_OK;
}

/* Returns the mode of component r that stays negative if the product of its signs is negative: the
 * mode whose sign is least certain, because its elements of the opposite sign are the largest
 * relative to its element of largest magnitude; of several equal modes, the last one. Modes that
 * keep their units are not flipped. */
static unsigned
least_certain_mode(const struct cp_state *state, const double *opposites, uint32_t r)
{
    unsigned least = SLC_MAX_ORDER;

    for (unsigned n = 0; n < state->order; n++) {
        if (!cp_keeps_units(state, n) &&
            (least == SLC_MAX_ORDER || opposites[(size_t)n * state->rank + r] >=
                                           opposites[(size_t)least * state->rank + r])) {
            least = n;
        }
    }
    return least;
}

/* Sets signs to -1 for columns that are flipped, and to +1 for all other columns. The number of
 * flips per component is even. Afterwards the element of largest magnitude is positive in all
 * modes, or in all modes but one. */
static void choose_flips(const struct cp_state *state, double *signs, const double *opposites)
{
    for (uint32_t r = 0; r < state->rank; r++) {
        double product = 1.0;

        for (unsigned n = 0; n < state->order; n++) {
            product *= signs[(size_t)n * state->rank + r];
        }
        if (product < 0.0) {
            signs[(size_t)least_certain_mode(state, opposites, r) * state->rank + r] *= -1.0;
        }
    }
}

static enum slc_status arrange_components(struct cp_state *state,
                                          const double *signs,
                                          uint32_t *order,
                                          struct slc_error *err)
{
    for (unsigned n = 0; n < state->order; n++) {
        struct slc_matrix *factor = &state->result->factors[n];

        SLC_TRY(slc_dense_scale(state->dense, factor, signs + (size_t)n * state->rank, err));
        SLC_TRY(slc_dense_permute(state->dense, factor, order, err));
    }
    return SLC_OK;
}

enum slc_status cp_finish(struct cp_state *state, struct slc_error *err)
{
    const uint32_t rank = state->rank;
    double *lambda = state->result->lambda;
    struct component *components = slc_calloc(rank, sizeof *components);
    uint32_t *order = slc_calloc(rank, sizeof *order);
    double *signs = slc_calloc(2 * (size_t)rank * state->order, sizeof *signs);
    enum slc_status status;

    if (components == NULL || order == NULL || signs == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory to sort the components");
        goto done;
    }
    status = restore_rows(state, err);
    if (status != SLC_OK) {
        goto done;
    }
    status = absorb_norms(state, signs, signs + (size_t)rank * state->order, err);
    if (status != SLC_OK) {
        goto done;
    }
    for (uint32_t r = 0; r < rank; r++) {
        if (!isfinite(lambda[r])) {
            status = slc_fail(err, SLC_ERR_NUMERIC,
                              "the weight of component %u is not finite; scale the values of the "
                              "tensor or compute in f64",
                              r + 1);
            goto done;
        }
        components[r].lambda = lambda[r];
        components[r].index = r;
    }
    /* Biases stay last, in their order. */
    qsort(components, rank - state->result->biases, sizeof *components, compare_components);
    for (uint32_t r = 0; r < rank; r++) {
        lambda[r] = components[r].lambda;
        order[r] = components[r].index;
    }
    choose_flips(state, signs, signs + (size_t)rank * state->order);
    status = arrange_components(state, signs, order, err);

done:
    slc_free(components);
    slc_free(order);
    slc_free(signs);
    return status == SLC_OK ? cp_diagnose(state, err) : status;
}
