/*
 * Memory and start of a CP-ALS run.
 *
 * All memory is taken here, before the first pass: factors (in the result), one output for the
 * MTTKRP of every mode, and one buffer with all R x R matrices.
 */
#include "base/checked.h"
#include "engine/relabel.h"
#include "engine/solve/cp_state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Bytes of the Gram matrices and the system; false on overflow. */
static bool squares_bytes(unsigned order, uint32_t rank, uint64_t *bytes)
{
    /* At most 2^24 entries of 8 bytes: no overflow before the count of matrices. */
    const uint64_t square = (uint64_t)rank * rank * sizeof(double);

    return slc_mul_u64(square, order + 1U, bytes);
}

uint64_t slc_cp_als_memory_bytes(unsigned order, uint32_t rank, unsigned workers, uint64_t rows_max)
{
    uint64_t squares, sum;

    /* One more square for the solver; 256 bytes a component for weights, signs and sorting. */
    if (!squares_bytes(order + 2, rank, &squares) ||
        !slc_add_u64(squares, slc_dense_memory_bytes(workers, rank, rows_max), &sum) ||
        !slc_add_u64(sum, 2 * SLC_PAGE_BYTES + (uint64_t)rank * 256, &sum)) {
        return UINT64_MAX;
    }
    return sum;
}

static uint64_t longest_mode(const struct cp_state *state)
{
    uint64_t rows = 0;

    for (unsigned n = 0; n < state->order; n++) {
        rows = slc_max_u64(rows, state->dims[n]);
    }
    return rows;
}

enum slc_status cp_state_create(struct cp_state *state, struct slc_error *err)
{
    const enum slc_value_type type = state->plan->request.precision;
    const uint64_t rows_max = longest_mode(state);
    struct slc_matrix output = {0};
    uint64_t bytes;
    enum slc_status status;

    if (!squares_bytes(state->order, state->rank, &bytes) || bytes > SIZE_MAX) {
        return slc_fail(err, SLC_ERR_MEMORY, "rank %" PRIu32 " is too large", state->rank);
    }
    status = slc_dense_create(state->plan->threads, state->rank, rows_max, &state->dense, err);
    if (status != SLC_OK) {
        return status;
    }
    status = slc_solver_create(&state->solver, state->rank, err);
    if (status != SLC_OK) {
        return status;
    }
    status = slc_buffer_create(&state->squares, (size_t)bytes, SLC_PAGES_SMALL, err);
    if (status != SLC_OK) {
        return status;
    }
    for (unsigned n = 0; n < state->order; n++) {
        state->gram[n] = (double *)state->squares.data + (size_t)n * state->rank * state->rank;
    }
    state->system =
        (double *)state->squares.data + (size_t)state->order * state->rank * state->rank;
    /* One matrix of the longest mode's shape; the state keeps only its memory. */
    status = slc_matrix_create(&output, type, rows_max, state->rank, err);
    if (status != SLC_OK) {
        return status;
    }
    state->output = output.buffer;
    state->result->lambda = slc_calloc(state->rank, sizeof(double));
    if (state->result->lambda == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %" PRIu32 " weights", state->rank);
    }
    return SLC_OK;
}

void cp_state_destroy(struct cp_state *state)
{
    slc_dense_destroy(state->dense);
    slc_solver_destroy(&state->solver);
    slc_buffer_destroy(&state->squares);
    slc_buffer_destroy(&state->output);
}

struct slc_matrix cp_output_view(const struct cp_state *state, unsigned mode)
{
    struct slc_matrix view = state->result->factors[mode];

    /* Same type, rows and pitch as the factor; the buffer holds at least as many rows. */
    view.buffer = state->output;
    return view;
}

static enum slc_status random_factors(struct cp_state *state, struct slc_error *err)
{
    const enum slc_value_type type = state->plan->request.precision;

    for (unsigned n = 0; n < state->order; n++) {
        struct slc_matrix *factor = &state->result->factors[n];
        enum slc_status status;

        status = slc_matrix_create(factor, type, state->dims[n], state->rank, err);
        if (status != SLC_OK) {
            return status;
        }
        status = slc_dense_fill_uniform(state->dense, factor, state->options->seed, n, err);
        if (status != SLC_OK) {
            return status;
        }
    }
    return SLC_OK;
}

/* A NaN would spread through every factor; an infinity becomes one. */
static enum slc_status check_start(const char *folder,
                                   unsigned mode,
                                   const struct slc_matrix *factor,
                                   struct slc_error *err)
{
    for (uint64_t i = 0; i < factor->rows; i++) {
        for (uint32_t r = 0; r < factor->cols; r++) {
            const double value = slc_matrix_get(factor, i, r);

            if (!isfinite(value)) {
                return slc_fail(err, SLC_ERR_INPUT,
                                "%s/mode-%u.npy: row %" PRIu64 ", column %" PRIu32
                                " is %g; a start has to be finite",
                                folder, mode + 1, i + 1, r + 1, value);
            }
        }
    }
    return SLC_OK;
}

static enum slc_status read_factors(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_als_options *options = state->options;
    double *lambda = state->result->lambda;
    uint32_t rank = state->rank;
    bool found = false;
    enum slc_status status;

    status = slc_model_read(options->files, options->init_folder, state->plan->request.precision,
                            state->order, state->dims, SLC_MAX_ORDER, &rank, state->result->factors,
                            err);
    for (unsigned n = 0; status == SLC_OK && n < state->order; n++) {
        status = check_start(options->init_folder, n, &state->result->factors[n], err);
    }
    if (status != SLC_OK || options->iterations > 0) {
        return status;
    }
    /* Nothing will absorb the weights of this start, so they are part of the result. */
    status = slc_model_read_lambda(options->files, options->init_folder, state->rank, lambda,
                                   &found, err);
    if (status != SLC_OK || !found) {
        return status;
    }
    return slc_dense_scale(state->dense, &state->result->factors[0], lambda, err);
}

enum slc_status cp_start(struct cp_state *state, struct slc_error *err)
{
    enum slc_status status;

    status =
        state->options->init_folder != NULL ? read_factors(state, err) : random_factors(state, err);
    /* A start is given, or drawn, for the indices of the input. */
    for (unsigned n = 0; status == SLC_OK && n < state->order; n++) {
        status =
            slc_relabel_rows(state->store, n, SLC_ROWS_OF_STORE, &state->result->factors[n], err);
    }
    for (unsigned n = 0; status == SLC_OK && n < state->order; n++) {
        /* The first mode's start is never read: its Gram matrix is formed by its update. */
        if (n != state->mode_order[0]) {
            status = slc_dense_gram(state->dense, &state->result->factors[n], state->gram[n], err);
        }
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        state->result->lambda[r] = 1.0;
    }
    return status;
}
