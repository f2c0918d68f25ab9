/* Projected damped Newton steps for Poisson models, row by row [Hansen2015].
 *
 * An update of a row needs one traversal for its gradient and Hessian, and one or more traversals
 * for the line search. Elements near zero with a positive gradient are active: they stay if they
 * are zero, and otherwise move along the negative gradient. The step d of the free elements solves
 * (H + damping I) d = -gradient. The line search tries step lengths 1, 1/2, .. 2^-9, projects x +
 * step d to numbers of at least 0, and accepts the first candidate that decreases the objective
 * sufficiently. If no candidate does, the update is a multiplicative update. The damping follows
 * from the ratio of the decrease by a step of length 1 to the decrease that the quadratic model
 * predicts.
 *
 * A streamed row evaluates all candidates in one traversal; the choice is the same. */
#include "cpu/row/row_state.h"

#include <math.h>
#include <string.h>

enum {
    CANDIDATES = 10,
    /* Candidates are evaluated for this number of nonzeros at a time, whose products stay in the L1
     * cache. */
    SEARCH_BLOCK = 128,
    MOST_DAMPINGS = 40
};
/* Minimum decrease of a candidate, relative to the decrease that a linear model predicts. */
static const double SUFFICIENT = 1e-4;
/* A candidate whose model sums to less than this over all cells is rejected. */
static const double LEAST_SUM = 1e-7;

/* State of a row between traversals. In the memory of the row, vectors follow this struct. */
struct newton_row {
    double damping;
    double before;    /* objective at x */
    double unit;      /* objective of the first candidate, or infinity */
    double predicted; /* change of the objective predicted by the quadratic model, at most 0 */
    double violation;
    uint32_t updates;   /* complete updates of the row */
    uint32_t candidate; /* first candidate of this traversal, from 1; 0: the traversal computes
                           gradient and Hessian */
    uint32_t count;     /* number of candidates of this traversal */
};
enum { ROW_NUMBERS = 8 };
_Static_assert(sizeof(struct newton_row) <= ROW_NUMBERS * sizeof(double), "size of newton_row");

static struct newton_row *newton_row(const struct slc_row *row)
{
    return (struct newton_row *)(void *)row->memory;
}

static double *direction_of(const struct slc_row *row)
{
    return row->memory + ROW_NUMBERS;
}

static double *phi_of(const struct row_state *state, const struct slc_row *row)
{
    return row->memory + ROW_NUMBERS + state->width;
}

static uint64_t sums(void *context, uint32_t rank)
{
    const uint64_t width = slc_row_width(rank);

    (void)context;
    return slc_row_width(CANDIDATES) + width * width + width;
}

static uint64_t memory(void *context, uint32_t rank)
{
    (void)context;
    return ROW_NUMBERS + 2 * (uint64_t)slc_row_width(rank);
}

static void start(void *context, unsigned worker, struct slc_row *row)
{
    const struct row_state *state = context;

    (void)worker;
    newton_row(row)->damping = state->options.poisson.damping;
}

/* Computes candidate c: x + 2^(1 - c) direction, projected. Returns false if it is rejected without
 * an evaluation. `decrease` is the change of the objective in a linear model. */
static bool compute_candidate(const struct row_state *state,
                              const struct slc_row *row,
                              uint32_t c,
                              double *candidate,
                              double *decrease)
{
    const double *direction = direction_of(row), *phi = phi_of(state, row);
    const double length = ldexp(1.0, 1 - (int)c);
    double sum = 0.0;

    *decrease = 0.0;
    for (uint32_t r = 0; r < state->rank; r++) {
        const double moved = row->x[r] + length * direction[r];

        candidate[r] = moved > 0.0 ? moved : 0.0;
        *decrease += (state->totals[r] - phi[r]) * (candidate[r] - row->x[r]);
        sum += candidate[r] * state->totals[r];
    }
    for (uint32_t r = state->rank; r < state->width; r++) {
        candidate[r] = 0.0;
    }
    return *decrease <= 0.0 && sum >= LEAST_SUM;
}

/* Adds the sums of v log(m) of the candidates. */
static void add_candidates(const struct row_state *state,
                           const struct slc_row *row,
                           const struct slc_row_piece *piece,
                           double *logs)
{
    const struct newton_row *newton = newton_row(row);
    double x[SLC_MAX_RANK] __attribute__((aligned(64))), models[SEARCH_BLOCK], decrease;

    for (uint32_t i = 0; i < piece->nnz; i += SEARCH_BLOCK) {
        const uint32_t nnz = piece->nnz - i < SEARCH_BLOCK ? piece->nnz - i : SEARCH_BLOCK;

        for (uint32_t k = 0; k < newton->count; k++) {
            if (compute_candidate(state, row, newton->candidate + k, x, &decrease)) {
                state->kernels->models(nnz, state->width,
                                       piece->products + (uint64_t)i * state->width, x, models);
                logs[k] += state->kernels->log_sum(nnz, piece->values + i, models);
            }
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
    double curvature[SLC_ROW_PIECE], models[SLC_ROW_PIECE];
    double *normal = to + slc_row_width(CANDIDATES);

    (void)worker;
    if (newton_row(row)->candidate > 0) {
        add_candidates(state, row, piece, to);
        return;
    }
    state->kernels->poisson(&(struct slc_row_poisson_span){.nnz = piece->nnz,
                                                           .width = state->width,
                                                           .floor = state->options.poisson.floor,
                                                           .values = piece->values,
                                                           .products = piece->products,
                                                           .x = row->x,
                                                           .phi = normal + row_square(state),
                                                           .curvature = curvature,
                                                           .models = models});
    state->kernels->normal(piece->nnz, state->width, piece->products, curvature, normal);
    to[0] += state->kernels->log_sum(piece->nnz, piece->values, models);
}

/* Returns the objective at x; `logs` is the sum of v log(m). */
static double objective(const struct row_state *state, const double *x, double logs)
{
    double sum = 0.0;

    for (uint32_t r = 0; r < state->rank; r++) {
        sum += x[r] * state->totals[r];
    }
    return sum - logs;
}

/* Sets free[r] for the free elements, and the direction of the others. */
static void choose_active(const struct row_state *state,
                          const struct slc_row *row,
                          const double *phi,
                          bool *free)
{
    double *direction = direction_of(row);
    double moved = 0.0;

    for (uint32_t r = 0; r < state->rank; r++) {
        const double step = fmin(row->x[r], state->totals[r] - phi[r]);

        moved += step * step;
    }
    const double near = fmin(state->options.poisson.active, sqrt(moved));

    for (uint32_t r = 0; r < state->rank; r++) {
        const double gradient = state->totals[r] - phi[r];

        free[r] = !(row->x[r] <= near && gradient > 0.0);
        direction[r] = free[r] || row->x[r] == 0.0 ? 0.0 : -gradient;
    }
}

/* Solves (H + damping I) d = -gradient for the free elements; increases the damping until the
 * matrix is positive definite in working precision. Returns false if it stays indefinite. */
static bool solve_free(struct row_state *state,
                       unsigned worker,
                       const struct slc_row *row,
                       const double *normal,
                       const bool *free)
{
    const uint32_t rank = state->rank, width = state->width;
    struct newton_row *newton = newton_row(row);
    const double *phi = phi_of(state, row);
    double *u = state->worker[worker].scratch, *step = u + row_square(state);

    for (unsigned trial = 0; trial < MOST_DAMPINGS; trial++, newton->damping *= 10.0) {
        memcpy(u, normal, row_square(state) * sizeof *u);
        for (uint32_t r = 0; r < rank; r++) {
            u[r * (uint64_t)width + r] += newton->damping;
            for (uint32_t i = 0; !free[r] && i < rank; i++) {
                u[(i < r ? i : r) * (uint64_t)width + (i < r ? r : i)] = i == r ? 1.0 : 0.0;
            }
        }
        if (state->kernels->cholesky(rank, width, NULL, u) == rank) {
            memset(step, 0, width * sizeof *step);
            for (uint32_t r = 0; r < rank; r++) {
                step[r] = free[r] ? phi[r] - state->totals[r] : 0.0;
            }
            state->kernels->substitute(rank, width, u, step);
            return true;
        }
    }
    return false;
}

/* Computes the direction and the decrease that the quadratic model predicts. */
static void compute_direction(struct row_state *state,
                              unsigned worker,
                              const struct slc_row *row,
                              const double *normal)
{
    struct newton_row *newton = newton_row(row);
    const double *phi = phi_of(state, row);
    const double *step = state->worker[worker].scratch + row_square(state);
    double *direction = direction_of(row);
    bool free[SLC_MAX_RANK];

    choose_active(state, row, phi, free);
    const bool solved = solve_free(state, worker, row, normal, free);

    newton->predicted = 0.0;
    for (uint32_t r = 0; r < state->rank; r++) {
        if (free[r]) {
            const double gradient = state->totals[r] - phi[r];

            direction[r] = solved ? step[r] : -gradient;
            newton->predicted += 0.5 * direction[r] * gradient;
        }
    }
}

/* Sets the candidates of the next traversal, starting with candidate c. Returns false if this and
 * all later candidates are rejected. */
static bool choose_candidates(const struct row_state *state, const struct slc_row *row, uint32_t c)
{
    struct newton_row *newton = newton_row(row);
    double x[SLC_MAX_RANK], decrease;

    while (c <= CANDIDATES && !compute_candidate(state, row, c, x, &decrease)) {
        c++;
    }
    newton->candidate = c;
    newton->count = row->streamed ? CANDIDATES + 1 - c : 1;
    return c <= CANDIDATES;
}

static void change_damping(struct newton_row *newton, double decrease)
{
    const double ratio = decrease / -newton->predicted;

    if (newton->predicted == 0.0) {
        newton->damping *= 10.0;
    } else if (ratio < 0.25) {
        newton->damping *= 3.5;
    } else if (ratio > 0.75) {
        newton->damping *= 2.0 / 7.0;
    }
}

static enum slc_row_next
finish_row(struct row_state *state, unsigned worker, const struct slc_row *row)
{
    struct slc_row_statistics *counts = &state->worker[worker].counts;

    counts->violation_last = fmax(counts->violation_last, newton_row(row)->violation);
    row_count(state, worker, row);
    return SLC_ROW_DONE;
}

/* Ends a line search: moves x to candidate c; if c is 0, makes a multiplicative update. */
static enum slc_row_next
finish_search(struct row_state *state, unsigned worker, struct slc_row *row, uint32_t c)
{
    const struct slc_row_poisson_options *options = &state->options.poisson;
    struct newton_row *newton = newton_row(row);
    const double *phi = phi_of(state, row);

    if (c > 0) {
        double x[SLC_MAX_RANK], decrease;

        (void)compute_candidate(state, row, c, x, &decrease);
        memcpy(row->x, x, state->rank * sizeof *x);
        change_damping(newton, isinf(newton->unit) ? 0.0 : newton->before - newton->unit);
    } else {
        for (uint32_t r = 0; r < state->rank; r++) {
            if (state->totals[r] > 0.0) {
                row->x[r] *= phi[r] / state->totals[r];
            }
        }
        change_damping(newton, 0.0);
    }
    newton->candidate = 0;
    newton->updates++;
    if (newton->updates < (state->mode.iteration == 1 ? options->inner_first : options->inner)) {
        return SLC_ROW_AGAIN;
    }
    return finish_row(state, worker, row);
}

/* Accepts the first candidate whose objective decreases sufficiently, or tries more candidates. */
static enum slc_row_next
step_search(struct row_state *state, unsigned worker, struct slc_row *row, const double *logs)
{
    struct newton_row *newton = newton_row(row);
    double x[SLC_MAX_RANK], decrease, last = INFINITY;
    uint32_t c = newton->candidate;

    for (uint32_t k = 0; k < newton->count; k++, c++) {
        last = INFINITY;
        if (compute_candidate(state, row, c, x, &decrease)) {
            last = objective(state, x, logs[k]);
            newton->unit = c == 1 ? last : newton->unit;
            /* An objective is infinite if the model is 0 at a nonzero; `before` may be infinite. */
            if (last < INFINITY && last <= newton->before + SUFFICIENT * decrease) {
                return finish_search(state, worker, row, c);
            }
        }
    }
    if (c <= CANDIDATES && choose_candidates(state, row, c)) {
        return SLC_ROW_AGAIN;
    }
    /* The last candidate is good enough if it decreases the objective at all. */
    return finish_search(state, worker, row,
                         c > CANDIDATES && last < INFINITY && last <= newton->before ? CANDIDATES
                                                                                     : 0);
}

static enum slc_row_next
step(void *context, unsigned worker, struct slc_row *row, const double *from)
{
    struct row_state *state = context;
    struct newton_row *newton = newton_row(row);
    const double *normal = from + slc_row_width(CANDIDATES);
    double *phi = phi_of(state, row);

    if (row->nnz == 0) {
        memset(row->x, 0, state->rank * sizeof *row->x);
        return finish_row(state, worker, row);
    }
    if (newton->candidate > 0) {
        return step_search(state, worker, row, from);
    }
    memcpy(phi, normal + row_square(state), state->rank * sizeof *phi);
    newton->violation = slc_row_note_violation(state, worker, row, phi);
    if (newton->violation < state->options.poisson.tolerance) {
        return finish_row(state, worker, row);
    }
    newton->before = objective(state, row->x, from[0]);
    newton->unit = INFINITY;
    compute_direction(state, worker, row, normal);
    return choose_candidates(state, row, 1) ? SLC_ROW_AGAIN : finish_search(state, worker, row, 0);
}

void slc_row_set_pdnr(struct row_state *state)
{
    struct slc_row_solver *solver = &state->solver;

    solver->name = "pdnr";
    solver->sums = sums;
    solver->memory = memory;
    solver->start = start;
    solver->add = add;
    solver->step = step;
    solver->measure = slc_row_measure_poisson;
}
