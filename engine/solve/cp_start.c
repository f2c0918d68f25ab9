/* Allocates the memory of a CP-ALS run and computes the starting factors.
 *
 * All memory is allocated here, before the first pass: factors (in the result), one output for the
 * MTTKRPs of all modes, and one buffer with all R x R matrices and vectors of R numbers. */
#include "base/memory/checked.h"
#include "engine/solve/cp_state.h"
#include "engine/stream/relabel.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Returns the number of elements of all R x R matrices and vectors of a run. It cannot overflow. */
static uint64_t squares_elements(unsigned order, uint32_t rank)
{
    return (order + 1U) * (uint64_t)rank * rank + (2 * order + 4U) * (uint64_t)rank;
}

uint64_t slc_cp_als_memory_bytes(unsigned order, uint32_t rank, unsigned workers, uint64_t rows_max)
{
    const uint64_t squares = squares_elements(order, rank) * sizeof(double);
    uint64_t sum;

    /* Weights, signs and sorting need at most 320 bytes per component. */
    if (!slc_add_u64(squares, slc_dense_memory_bytes(workers, rank, rows_max), &sum) ||
        !slc_add_u64(sum, slc_solver_memory_bytes(rank), &sum) ||
        !slc_add_u64(sum, SLC_CHECKPOINT_MEMORY_BYTES, &sum) ||
        !slc_add_u64(sum, 2 * SLC_PAGE_BYTES + (uint64_t)rank * 320, &sum)) {
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

/* Divides state->squares into matrices and vectors. */
static void divide_squares(struct cp_state *state)
{
    const size_t rank = state->rank;
    const size_t square = rank * rank;
    double *next = state->squares.data;

    for (unsigned n = 0; n < state->order; n++, next += square) {
        state->gram[n] = next;
    }
    state->system = next;
    next += square;
    for (unsigned n = 0; n < state->order; n++, next += 2 * rank) {
        state->scale[n] = next;
        state->norm[n] = next + rank;
    }
    state->left = next;
    state->right = next + rank;
    state->largest = next + 2 * rank;
    state->column_inner = next + 3 * rank;
}

enum slc_status cp_state_create(struct cp_state *state, struct slc_error *err)
{
    const enum slc_value_type type = state->plan->request.precision;
    const uint64_t rows_max = longest_mode(state);
    struct slc_matrix output = {0};

    SLC_TRY(slc_dense_create(state->plan->threads, state->rank, rows_max, &state->dense, err));
    SLC_TRY(slc_solver_create(&state->solver, state->rank, err));
    SLC_TRY(slc_buffer_create(&state->squares,
                              squares_elements(state->order, state->rank) * sizeof(double),
                              SLC_PAGES_SMALL, err));
    divide_squares(state);
    /* The output has the size of a matrix for the largest mode. The state keeps only the memory of
     * this matrix. */
    if (state->plan->request.gpu == NULL || state->plan->request.hybrid.kind != SLC_HYBRID_NONE) {
        SLC_TRY(slc_matrix_create(&output, type, rows_max, state->rank, err));
    }
    state->output = output.buffer;
    state->result->lambda = slc_calloc(state->rank, sizeof(double));
    SLC_TRY(slc_check_memory(state->result->lambda != NULL, err, "for %" PRIu32 " weights",
                             state->rank));
    return cp_fused_create(state, err);
}

void cp_state_destroy(struct cp_state *state)
{
    cp_holdout_end(state);
    slc_run_names_close(&state->init.names);
    slc_executor_destroy(state->executor);
    slc_dense_destroy(state->dense);
    slc_solver_destroy(&state->solver);
    slc_buffer_destroy(&state->squares);
    slc_buffer_destroy(&state->output);
    slc_buffer_destroy(&state->second_output);
    if (state->second_backend != NULL) {
        state->second_backend->ops->destroy(state->second_backend);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_row_ranges_destroy(&state->ranges[n]);
    }
    slc_free(state->solved);
    slc_free(state->identity);
    slc_free(state->past);
}

enum slc_status cp_factors_create(struct cp_state *state, struct slc_error *err)
{
    const enum slc_value_type type = state->plan->request.precision;

    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(
            slc_matrix_create(&state->result->factors[n], type, state->dims[n], state->rank, err));
    }
    return SLC_OK;
}

static enum slc_status random_factors(struct cp_state *state, struct slc_error *err)
{
    SLC_TRY(cp_factors_create(state, err));
    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(slc_dense_fill_uniform(state->dense, &state->result->factors[n],
                                       state->options->seed, n, err));
    }
    return SLC_OK;
}

enum slc_status cp_start(struct cp_state *state, struct slc_error *err)
{
    enum slc_status status =
        state->options->init_folder != NULL ? cp_init_read(state, err) : random_factors(state, err);

    /* Starting factors are read or generated with rows in the order of the input, and permuted
     * here. */
    for (unsigned n = 0; status == SLC_OK && n < state->order; n++) {
        status =
            slc_relabel_rows(state->store, n, SLC_ROWS_OF_STORE, &state->result->factors[n], err);
    }
    for (unsigned n = 0; status == SLC_OK && n < state->order; n++) {
        /* The starting factor of the mode that is updated first is never used, so its Gram matrix
         * is not needed. */
        if (n != state->mode_order[0]) {
            status = slc_dense_gram(state->dense, &state->result->factors[n], state->gram[n], err);
        }
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        state->result->lambda[r] = 1.0;
        for (unsigned n = 0; n < state->order; n++) {
            state->scale[n][r] = 1.0;
        }
    }
    return status;
}
