/* Creates row solvers: checks options, allocates memory, and joins the statistics of workers. */
#include "cpu/row/row.h"

#include "base/memory/checked.h"
#include "cpu/kernel/kernels.h"
#include "cpu/row/row_state.h"

#include <math.h>
#include <string.h>

struct slc_row_poisson_options slc_row_poisson_defaults(void)
{
    return (struct slc_row_poisson_options){.inner = 10,
                                            .tolerance = 1e-4,
                                            .floor = 1e-10,
                                            .zero_tolerance = 1e-10,
                                            .zero_offset = 1e-2,
                                            .inner_first = 2,
                                            .damping = 1e-5,
                                            .active = 1e-8};
}

uint64_t slc_row_scratch_numbers(enum slc_row_method method, uint32_t rank)
{
    const uint64_t width = slc_row_width(rank);
    const uint64_t square = width * width;

    switch (method) {
    case SLC_ROW_METHOD_GIVEN:
        return 0;
    case SLC_ROW_METHOD_MU:
        return width;
    case SLC_ROW_METHOD_PDNR:
    case SLC_ROW_METHOD_NEWTON:
        return square + width;
    case SLC_ROW_METHOD_ALS:
        return 3 * square + 4 * width;
    default:
        return slc_max_u64(2 * square + 3 * width,
                           width * slc_row_piece_nnz(rank) + SLC_ROW_PIECE + 2 * width);
    }
}

/* Returns the bytes of the buffer: workers, totals, scratch. */
static uint64_t buffer_bytes(enum slc_row_method method, uint32_t rank, unsigned workers)
{
    const uint64_t numbers =
        slc_row_width(rank) + (uint64_t)workers * slc_row_scratch_numbers(method, rank);

    return workers * sizeof(struct row_worker) + numbers * sizeof(double);
}

uint64_t slc_row_solver_memory_bytes(enum slc_row_method method, uint32_t rank, unsigned workers)
{
    return sizeof(struct row_state) +
           slc_buffer_footprint(buffer_bytes(method, rank, workers), SLC_PAGES_SMALL);
}

static enum slc_status begin(void *context, const struct slc_row_mode *mode, struct slc_error *err)
{
    struct row_state *state = context;
    const struct slc_row_cell_options *cells = &state->options.cells;
    const struct slc_row_solver *given =
        state->options.method == SLC_ROW_METHOD_GIVEN ? state->options.given : NULL;

    if (mode->rank != state->rank || mode->workers > state->workers ||
        mode->mode >= SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the row solver is for rank %u and %u workers, but mode %u has rank %u and "
                        "%u workers",
                        state->rank, state->workers, mode->mode + 1, mode->rank, mode->workers);
    }
    state->mode = *mode;
    state->ridge = cells->ridge[mode->mode];
    state->fixed = cells->fixed[mode->mode];
    if (mode->totals != NULL) {
        memcpy(state->totals, mode->totals, state->rank * sizeof *state->totals);
    }
    for (unsigned w = 0; w < state->workers; w++) {
        state->worker[w].counts = (struct slc_row_statistics){0};
    }
    if (given != NULL && given->begin != NULL) {
        return given->begin(given->context, mode, err);
    }
    return SLC_OK;
}

static enum slc_status check_poisson(const struct slc_row_poisson_options *options,
                                     struct slc_error *err)
{
    if (options->inner == 0 || options->inner_first == 0 || !(options->floor > 0.0) ||
        !(options->tolerance >= 0.0) || !(options->zero_tolerance >= 0.0) ||
        !(options->zero_offset >= 0.0) || !(options->damping > 0.0) || !(options->active >= 0.0)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a Poisson row solver needs at least 1 update, a floor and a damping above "
                        "0, and tolerances of at least 0");
    }
    return SLC_OK;
}

static enum slc_status
check_cells(const struct slc_row_options *options, uint32_t rank, struct slc_error *err)
{
    const struct slc_row_cell_options *cells = &options->cells;

    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        for (uint32_t r = 0; cells->ridge[m] != NULL && r < rank; r++) {
            if (!(cells->ridge[m][r] >= 0.0) || !isfinite(cells->ridge[m][r])) {
                return slc_fail(err, SLC_ERR_USAGE,
                                "the ridge of mode %u, component %u is %g, but must be a number of "
                                "at least 0",
                                m + 1, r + 1, cells->ridge[m][r]);
            }
        }
    }
    if (options->method != SLC_ROW_METHOD_ALS &&
        (cells->inner == 0 || !(cells->tolerance >= 0.0))) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "an iterative row solver needs at least 1 step and a tolerance of at least "
                        "0");
    }
    if (options->method == SLC_ROW_METHOD_NEWTON && options->loss.evaluate == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "the Newton row solver needs a loss");
    }
    return SLC_OK;
}

static enum slc_status check_given(const struct slc_row_solver *given, struct slc_error *err)
{
    if (given == NULL || given->name == NULL || given->input != SLC_ROW_NONZEROS ||
        given->sums == NULL || given->memory == NULL || given->add == NULL || given->step == NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a row solver of nonzeros needs a name and the functions sums, memory, add "
                        "and step");
    }
    return SLC_OK;
}

static enum slc_status check_options(const struct slc_row_options *options,
                                     uint32_t rank,
                                     unsigned workers,
                                     struct slc_error *err)
{
    if (rank < 1 || rank > SLC_MAX_RANK || workers < 1 || workers > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a row solver needs a rank from 1 to %d and 1 to %d workers, not rank %u "
                        "and %u workers",
                        SLC_MAX_RANK, SLC_MAX_THREADS, rank, workers);
    }
    if (options->method == SLC_ROW_METHOD_MU || options->method == SLC_ROW_METHOD_PDNR) {
        return check_poisson(&options->poisson, err);
    }
    if (options->method == SLC_ROW_METHOD_GIVEN) {
        return check_given(options->given, err);
    }
    if ((unsigned)options->method >= SLC_ROW_METHODS) {
        return slc_fail(err, SLC_ERR_USAGE, "%d is no method of row solvers", (int)options->method);
    }
    return check_cells(options, rank, err);
}

static void set_memory(struct row_state *state)
{
    const uint64_t numbers = slc_row_scratch_numbers(state->options.method, state->rank);
    double *next;

    state->worker = state->memory.data;
    state->totals = (double *)(void *)(state->worker + state->workers);
    next = state->totals + state->width;
    for (unsigned w = 0; w < state->workers; w++, next += numbers) {
        state->worker[w].scratch = next;
    }
}

enum slc_status slc_row_solver_create(const struct slc_row_options *options,
                                      uint32_t rank,
                                      unsigned workers,
                                      struct slc_row_solver **solver,
                                      struct slc_error *err)
{
    static void (*const set[SLC_ROW_METHODS])(struct row_state *) = {
        [SLC_ROW_METHOD_MU] = slc_row_set_mu,         [SLC_ROW_METHOD_PDNR] = slc_row_set_pdnr,
        [SLC_ROW_METHOD_ALS] = slc_row_set_als,       [SLC_ROW_METHOD_CCD] = slc_row_set_ccd,
        [SLC_ROW_METHOD_NEWTON] = slc_row_set_newton, [SLC_ROW_METHOD_GIVEN] = slc_row_set_given,
    };
    struct row_state *state;
    enum slc_status status;

    *solver = NULL;
    SLC_TRY(check_options(options, rank, workers, err));
    state = slc_calloc(1, sizeof *state);
    SLC_TRY(slc_check_memory(state != NULL, err, "for a row solver"));
    state->options = *options;
    state->kernels = slc_kernels()->rows;
    state->workers = workers;
    state->rank = rank;
    state->width = slc_row_width(rank);
    status = slc_buffer_create(&state->memory, buffer_bytes(options->method, rank, workers),
                               SLC_PAGES_SMALL, err);
    if (status != SLC_OK) {
        slc_free(state);
        return status;
    }
    set_memory(state);
    state->solver =
        (struct slc_row_solver){.input = SLC_ROW_NONZEROS, .context = state, .begin = begin};
    set[options->method](state);
    *solver = &state->solver;
    return SLC_OK;
}

void slc_row_solver_destroy(struct slc_row_solver *solver)
{
    if (solver != NULL) {
        struct row_state *state = solver->context;

        slc_buffer_destroy(&state->memory);
        slc_free(state);
    }
}

struct slc_row_statistics slc_row_solver_statistics(const struct slc_row_solver *solver)
{
    const struct row_state *state = solver->context;
    struct slc_row_statistics sum = {0};

    for (unsigned w = 0; w < state->workers; w++) {
        const struct slc_row_statistics *part = &state->worker[w].counts;

        sum.rows += part->rows;
        sum.traversals += part->traversals;
        sum.unconverged += part->unconverged;
        sum.singular += part->singular;
        sum.violation_first = fmax(sum.violation_first, part->violation_first);
        sum.violation_last = fmax(sum.violation_last, part->violation_last);
    }
    return sum;
}

void slc_row_solver_set_tolerance(struct slc_row_solver *solver, double tolerance)
{
    struct row_state *state = solver->context;

    state->options.poisson.tolerance = tolerance;
    state->options.cells.tolerance = tolerance;
}
