/* Computes Hadamard products of Gram matrices, and the fit, which needs no pass ([Phipps2019]
 * section 2).
 *
 * All matrices are R x R and f64. One thread computes them in index order, so the result has the
 * same bits for any number of threads. */
#include "engine/solve/cp_state.h"

#include <float.h>
#include <math.h>

void cp_hadamard(struct cp_state *state, unsigned skip)
{
    const size_t entries = (size_t)state->rank * state->rank;

    for (size_t i = 0; i < entries; i++) {
        state->system[i] = 1.0;
    }
    for (unsigned m = 0; m < state->order; m++) {
        const double *gram = state->gram[m];

        if (m == skip) {
            continue;
        }
        for (size_t i = 0; i < entries; i++) {
            state->system[i] *= gram[i];
        }
    }
}

/* Returns ||M||^2 = lambda^T system lambda, where `system` is the Hadamard product of all Gram
 * matrices. */
static double model_norm_squared(const struct cp_state *state)
{
    const double *lambda = state->result->lambda;
    double sum = 0.0;

    for (uint32_t r = 0; r < state->rank; r++) {
        const double *row = state->system + (size_t)r * state->rank;
        double row_sum = 0.0;

        for (uint32_t s = 0; s < state->rank; s++) {
            row_sum += row[s] * lambda[s];
        }
        sum += row_sum * lambda[r];
    }
    return sum;
}

enum slc_status cp_fit(struct cp_state *state, double *fit, struct slc_error *err)
{
    const double norm_squared = state->norm_x * state->norm_x;

    cp_hadamard(state, SLC_MAX_ORDER);
    double residual_squared = norm_squared + model_norm_squared(state) - 2.0 * state->inner;
    if (!isfinite(residual_squared)) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "iteration %u: the residual is not finite (inner product %g, tensor norm "
                        "%g); scale the values of the tensor",
                        state->iteration, state->inner, state->norm_x);
    }
    /* If the fit is almost exact, rounding may make the residual negative. */
    state->residual_squared = fmax(residual_squared, 0.0);
    *fit = 1.0 - sqrt(state->residual_squared) / state->norm_x;
    return SLC_OK;
}

/* Returns true if the change of the fit is below `tolerance`, relative to the fit and to 1 - fit.
 * The squared residual is a difference of numbers near ||X||^2, so its rounding error is about
 * `rounding` times ||X||^2. A change within this error also counts as small. */
static bool is_small(const struct cp_state *state, double tolerance, double fit, double delta)
{
    const double rounding =
        state->plan->request.precision == SLC_F32 ? (double)FLT_EPSILON / 4 : 16 * DBL_EPSILON;
    const double rest = 1.0 - fit;

    return fabs(delta) * rest < tolerance * fmin(fabs(fit), rest) * rest + rounding;
}

void cp_fit_changed(struct cp_state *state, unsigned iteration, double fit, double delta)
{
    const double tolerance = state->options->tolerance;
    const bool small = is_small(state, tolerance > 0.0 ? tolerance : SLC_CP_TOLERANCE, fit, delta);
    const bool grows = delta > state->last_change && !is_small(state, 0.0, fit, delta);

    /* The first iteration has no change. */
    state->small_changes = iteration > 1 && small ? state->small_changes + 1 : 0;
    state->growing_changes = iteration > 2 && grows ? state->growing_changes + 1 : 0;
    state->last_change = delta;
}

bool cp_fit_settled(const struct cp_state *state)
{
    return state->options->tolerance > 0.0 && state->small_changes >= SLC_CP_SMALL_CHANGES;
}

bool cp_fit_rises(const struct cp_state *state)
{
    return state->last_change > 0.0 && (state->small_changes == 0 || state->growing_changes > 1);
}
