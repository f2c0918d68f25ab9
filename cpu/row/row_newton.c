/* Damped Newton steps for a loss on the stored cells of a row.
 *
 * Every traversal evaluates the objective, its gradient and its curvature at a candidate. A
 * candidate is accepted if it decreases the objective by a part of the decrease that the quadratic
 * model predicts. Otherwise the damping grows, and the next candidate starts from the same x. The
 * step d solves (H + damping diag(H)) d = -gradient for the free elements. An element is not free
 * if it is fixed or, for a non-negative model, is 0 and has a positive gradient. */
#include "cpu/row/row_state.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double FIRST_DAMPING = 1e-4, LEAST_DAMPING = 1e-12, MOST_DAMPING = 1e12;
static const double SUFFICIENT = 1e-4;
/* Relative changes of the objective up to this size may be rounding errors. */
static const double ROUNDING = 64 * DBL_EPSILON;

/* State of a row between traversals. In the memory of the row, this struct is followed by the
 * accepted x, its gradient and its matrix. */
struct step_row {
    double damping;
    double objective; /* objective at the accepted x */
    double predicted; /* change of the objective predicted by the quadratic model, below 0 */
    uint32_t steps;   /* number of candidates evaluated after the first x */
};
enum { ROW_NUMBERS = 8 };
_Static_assert(sizeof(struct step_row) <= ROW_NUMBERS * sizeof(double), "size of step_row");

static struct step_row *step_row(const struct slc_row *row)
{
    return (struct step_row *)(void *)row->memory;
}

static double *accepted_of(const struct slc_row *row)
{
    return row->memory + ROW_NUMBERS;
}

static double *gradient_of(const struct row_state *state, const struct slc_row *row)
{
    return accepted_of(row) + state->width;
}

static double *matrix_of(const struct row_state *state, const struct slc_row *row)
{
    return gradient_of(state, row) + state->width;
}

/* Returns the length of the sums: the matrix, the gradient and the loss. */
static uint64_t sums(void *context, uint32_t rank)
{
    const uint64_t width = slc_row_width(rank);

    (void)context;
    return width * width + width + slc_row_width(1);
}

static uint64_t memory(void *context, uint32_t rank)
{
    const uint64_t width = slc_row_width(rank);

    (void)context;
    return ROW_NUMBERS + 2 * width + width * width;
}

static void start(void *context, unsigned worker, struct slc_row *row)
{
    (void)context;
    (void)worker;
    step_row(row)->damping = FIRST_DAMPING;
}

static void add(void *context,
                unsigned worker,
                const struct slc_row *row,
                const struct slc_row_piece *piece,
                double *to)
{
    const struct row_state *state = context;
    const struct slc_row_loss *loss = &state->options.loss;
    double models[SLC_ROW_PIECE], losses[SLC_ROW_PIECE], first[SLC_ROW_PIECE];
    double second[SLC_ROW_PIECE], *gradient = to + row_square(state);

    (void)worker;
    state->kernels->models(piece->nnz, state->width, piece->products, row->x, models);
    loss->evaluate(loss, piece->nnz, piece->values, models, losses, first, second);
    state->kernels->normal(piece->nnz, state->width, piece->products, second, to);
    state->kernels->combine(piece->nnz, state->width, piece->products, first, gradient);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        gradient[state->width] += losses[i];
    }
}

static void measure(void *context,
                    unsigned worker,
                    const struct slc_row *row,
                    const struct slc_row_piece *piece,
                    double measures[SLC_ROW_MEASURES])
{
    const struct row_state *state = context;
    const struct slc_row_loss *loss = &state->options.loss;
    double models[SLC_ROW_PIECE], losses[SLC_ROW_PIECE];

    (void)worker;
    if (piece == NULL) {
        return;
    }
    state->kernels->models(piece->nnz, state->width, piece->products, row->x, models);
    loss->evaluate(loss, piece->nnz, piece->values, models, losses, NULL, NULL);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        measures[0] += losses[i];
        measures[1] += fabs(piece->values[i] - models[i]);
    }
}

/* Makes the candidate in row->x the accepted x. */
static void accept_candidate(const struct row_state *state,
                             struct slc_row *row,
                             const double *from,
                             double objective)
{
    const double *loss_gradient = from + row_square(state);
    double *gradient = gradient_of(state, row), *matrix = matrix_of(state, row);

    memcpy(accepted_of(row), row->x, state->width * sizeof *row->x);
    memcpy(matrix, from, row_square(state) * sizeof *matrix);
    for (uint32_t r = 0; r < state->rank; r++) {
        const double ridge = 2.0 * row_ridge(state, r, row->nnz);

        gradient[r] = loss_gradient[r] + ridge * row->x[r];
        matrix[r * (uint64_t)state->width + r] += ridge;
    }
    step_row(row)->objective = objective;
}

/* Copies the damped matrix of the free elements. Other elements get columns of the identity and 0
 * on the right-hand side. */
static void
copy_damped(const struct row_state *state, const struct slc_row *row, double *u, double *d)
{
    const uint64_t width = state->width;
    const double *x = accepted_of(row), *gradient = gradient_of(state, row);
    const double damping = step_row(row)->damping;

    memcpy(u, matrix_of(state, row), row_square(state) * sizeof *u);
    memset(d, 0, width * sizeof *d);
    for (uint32_t r = 0; r < state->rank; r++) {
        const bool active = state->options.loss.nonnegative && x[r] <= 0.0 && gradient[r] > 0.0;

        if (active || row_is_fixed(state, r)) {
            for (uint32_t i = 0; i < state->rank; i++) {
                u[(i < r ? i : r) * width + (i < r ? r : i)] = i == r ? 1.0 : 0.0;
            }
        } else {
            u[r * width + r] += damping * u[r * width + r] + DBL_MIN;
            d[r] = -gradient[r];
        }
    }
}

/* Returns gradient d + 1/2 d^T H d. */
static double predict(const struct row_state *state, const struct slc_row *row, const double *d)
{
    const double *gradient = gradient_of(state, row), *matrix = matrix_of(state, row);
    double sum = 0.0;

    for (uint32_t r = 0; r < state->rank; r++) {
        const double *upper = matrix + r * (uint64_t)state->width;
        double product = 0.5 * upper[r] * d[r];

        for (uint32_t s = r + 1; s < state->rank; s++) {
            product += upper[s] * d[s];
        }
        sum += (gradient[r] + product) * d[r];
    }
    return sum;
}

/* Computes a candidate from the accepted x. Returns false, with the accepted x in row->x, if x is a
 * minimum within the tolerance. */
static bool compute_candidate(struct row_state *state, unsigned worker, struct slc_row *row)
{
    struct step_row *newton = step_row(row);
    const double *x = accepted_of(row);
    double *u = state->worker[worker].scratch, *d = u + row_square(state);

    for (; newton->damping <= MOST_DAMPING; newton->damping *= 4.0) {
        double most = 0.0, moved = 0.0;

        copy_damped(state, row, u, d);
        if (state->kernels->cholesky(state->rank, state->width, NULL, u) < state->rank) {
            continue;
        }
        state->kernels->substitute(state->rank, state->width, u, d);
        for (uint32_t r = 0; r < state->rank; r++) {
            row->x[r] = state->options.loss.nonnegative ? fmax(x[r] + d[r], 0.0) : x[r] + d[r];
            if (row_is_fixed(state, r)) {
                row->x[r] = x[r];
            }
            d[r] = row->x[r] - x[r];
            most = fmax(most, fabs(row->x[r]));
            moved = fmax(moved, fabs(d[r]));
        }
        newton->predicted = predict(state, row, d);
        if (moved <= state->options.cells.tolerance * most) {
            break;
        }
        if (newton->predicted < 0.0) {
            return true;
        }
    }
    memcpy(row->x, x, state->rank * sizeof *x);
    return false;
}

static enum slc_row_next
finish_row(struct row_state *state, unsigned worker, struct slc_row *row, bool solved)
{
    memcpy(row->x, accepted_of(row), state->rank * sizeof *row->x);
    state->worker[worker].counts.unconverged += !solved;
    row_count(state, worker, row);
    return SLC_ROW_DONE;
}

static enum slc_row_next
step(void *context, unsigned worker, struct slc_row *row, const double *from)
{
    struct row_state *state = context;
    struct step_row *newton = step_row(row);
    double objective = from[row_square(state) + state->width];

    if (row->nnz == 0) {
        for (uint32_t r = 0; r < state->rank; r++) {
            row->x[r] = row_is_fixed(state, r) ? row->x[r] : 0.0;
        }
        row_count(state, worker, row);
        return SLC_ROW_DONE;
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        objective += row_ridge(state, r, row->nnz) * row->x[r] * row->x[r];
    }
    if (row->traversals == 1) {
        accept_candidate(state, row, from, objective);
    } else {
        const double decrease = newton->objective - objective;
        const double noise = ROUNDING * fabs(newton->objective);
        const double ratio =
            -newton->predicted <= noise && -decrease <= noise ? 1.0 : decrease / -newton->predicted;

        newton->steps++;
        if (ratio > SUFFICIENT) {
            accept_candidate(state, row, from, objective);
            newton->damping = fmax(LEAST_DAMPING, newton->damping * (ratio > 0.75   ? 0.1
                                                                     : ratio < 0.25 ? 2.0
                                                                                    : 1.0));
        } else {
            newton->damping *= 10.0;
        }
    }
    if (newton->steps >= state->options.cells.inner) {
        return finish_row(state, worker, row, false);
    }
    return compute_candidate(state, worker, row) ? SLC_ROW_AGAIN
                                                 : finish_row(state, worker, row, true);
}

void slc_row_set_newton(struct row_state *state)
{
    struct slc_row_solver *solver = &state->solver;

    solver->name = "newton";
    solver->sums = sums;
    solver->memory = memory;
    solver->start = start;
    solver->add = add;
    solver->step = step;
    solver->measure = measure;
}
