/* Updates one mode: A(n) = M(n) V(n)^-1, normalized.
 *
 * Column norms are known only after all rows have been solved. Dividing by the norms would then
 * need another sweep over a factor that is no longer in the processor cache. Therefore the stored
 * factor F(n) has columns of nearly unit norm, and the remaining scale is kept separately: A(n) =
 * F(n) diag(scale(n)). An MTTKRP is linear in each column of each factor. So the MTTKRP of the A(n)
 * is the MTTKRP of the stored factors times the product of their scales, and the Gram matrix of
 * A(n) follows from the Gram matrix of F(n). The solver includes these scales in the factorized
 * system (slc_dense_factorize), so they cost nothing per row.
 *
 * To get nearly unit norms, columns are divided by their norm in the previous iteration, rounded to
 * a power of two so that the division is exact. If a stored column then has a norm above
 * SCALE_LIMIT or below 1 / SCALE_LIMIT, the column is scaled.
 *
 * With constraints (cp_constraint.c), a row solver computes the rows instead of V^-1. It receives
 * the rows of the MTTKRP of the A(n), and the rows of A(n) diag(lambda) as the start. */
#include "engine/solve/cp_state.h"

#include <inttypes.h>
#include <math.h>

/* Products of elements of fifteen factors stay in the range of f32 even if every norm is
 * SCALE_LIMIT or 1 / SCALE_LIMIT. */
#define SCALE_LIMIT 256.0

/* The squares of numbers above this limit have all their digits in f32. */
#define UNIT_LIMIT 0x1p-40

/* Returns the largest power of two that is at most `value`, a positive number. */
static double power_below(double value)
{
    int exponent;

    (void)frexp(value, &exponent);
    return ldexp(1.0, exponent - 1);
}

/* Sets state->left[r] to the product over m != mode of scale(m)[r]. */
static void set_left_scales(const struct cp_state *state, unsigned mode)
{
    for (uint32_t r = 0; r < state->rank; r++) {
        state->left[r] = 1.0;
        for (unsigned m = 0; m < state->order; m++) {
            state->left[r] *= m == mode ? 1.0 : state->scale[m][r];
        }
    }
}

/* Sets state->right to the reciprocals of the expected norms, rounded to powers of two. In later
 * iterations, the norms of the previous iteration are expected. In the first iteration, the norm of
 * each component is expected to equal the norm of the tensor. The norm of a component is the norm
 * of its new column times the square root of its diagonal element of V. */
static void set_right_scales(const struct cp_state *state, unsigned mode)
{
    for (uint32_t r = 0; r < state->rank; r++) {
        double norm = state->norm[mode][r];

        if (state->iteration == 1) {
            norm = state->norm_x / sqrt(state->system[(size_t)r * state->rank + r]);
        }
        state->right[r] = isnormal(norm) ? 1.0 / power_below(norm) : 1.0;
        /* The reciprocal of a very small or very large norm is infinite or subnormal. */
        state->right[r] = isnormal(state->right[r]) ? state->right[r] : 1.0;
    }
}

/* Returns the least number by which a column is divided after iteration 1: 1, or a power of two
 * near the norm of the tensor if this norm is below UNIT_LIMIT. With this power of two, columns
 * have the same bits as for the tensor divided by it. With a least number of 1, the norm of a small
 * tensor would remain in a factor, and an MTTKRP with this factor would be as small as the square
 * of the norm. */
static double least_norm(const struct cp_state *state)
{
    return state->norm_x < UNIT_LIMIT ? power_below(state->norm_x) : 1.0;
}

/* Returns the number by which column r of A(n) is divided: its 2-norm in iteration 1, and
 * max(least_norm, max-norm) in later iterations. */
static double column_norm(const struct cp_state *state, const double *gram, uint32_t r)
{
    const double square = gram[(size_t)r * state->rank + r];

    if (!isfinite(square) || state->iteration == 1 || state->plain_units) {
        return sqrt(square) / state->right[r];
    }
    return fmax(least_norm(state), state->largest[r] / state->right[r]);
}

/* Returns true if the rows of factors are solved in host memory, for an executor with memory of its
 * own. */
static bool solves_for_device(const struct cp_state *state)
{
    return state->solver.rows != NULL && state->executor->ops->write_factor != NULL;
}

static enum slc_status
scale_factor(struct cp_state *state, unsigned mode, const double *factor, struct slc_error *err)
{
    if (solves_for_device(state)) {
        SLC_TRY(slc_dense_scale(state->dense, &state->result->factors[mode], factor, err));
        return state->executor->ops->write_factor(state->executor, mode, err);
    }
    return state->executor->ops->scale(state->executor, mode, factor, err);
}

/* Scales stored columns whose norm is above SCALE_LIMIT or below 1 / SCALE_LIMIT. */
static enum slc_status
scale_far_columns(struct cp_state *state, unsigned mode, struct slc_error *err)
{
    double *gram = state->gram[mode];
    double *factor = state->largest; /* reused: state->largest is not needed any more */
    bool far = false;

    for (uint32_t r = 0; r < state->rank; r++) {
        /* In plain units, the norm is not part of the scale. */
        const double norm =
            state->plain_units && state->norm[mode][r] > 0.0 ? state->norm[mode][r] : 1.0;
        const double stored = norm / state->scale[mode][r];

        factor[r] = 1.0;
        if (stored > SCALE_LIMIT || stored < 1.0 / SCALE_LIMIT) {
            factor[r] = 1.0 / power_below(stored);
            far = true;
        }
    }
    if (!far) {
        return SLC_OK;
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        for (uint32_t s = 0; s < state->rank; s++) {
            gram[(size_t)r * state->rank + s] *= factor[r] * factor[s];
        }
        state->scale[mode][r] /= factor[r];
    }
    SLC_TRY(scale_factor(state, mode, factor, err));
    if (state->pending != SLC_MAX_ORDER) {
        struct slc_matrix next = cp_output_view(state, &state->second_output, state->pending);

        SLC_TRY(slc_dense_scale(state->dense, &next, factor, err));
    }
    return SLC_OK;
}

/* Moves norms into lambda and scale, and computes the Gram matrix of the normalized factor. */
static enum slc_status
normalize_factor(struct cp_state *state, unsigned mode, struct slc_error *err)
{
    double *gram = state->gram[mode];
    double *scale = state->scale[mode];

    for (uint32_t r = 0; r < state->rank; r++) {
        const double norm = column_norm(state, gram, r);

        if (!isfinite(norm)) {
            return slc_fail(err, SLC_ERR_NUMERIC,
                            "iteration %u, mode %u: component %" PRIu32
                            " is not finite; scale the values of the tensor or compute in f64",
                            state->iteration, mode + 1, r + 1);
        }
        state->result->lambda[r] = state->plain_units ? 1.0 : norm;
        state->norm[mode][r] = norm;
        scale[r] = state->plain_units ? 1.0 / state->right[r]
                   : norm == 0.0      ? 1.0
                                      : 1.0 / (norm * state->right[r]);
    }
    SLC_TRY(scale_far_columns(state, mode, err));
    for (uint32_t r = 0; r < state->rank; r++) {
        for (uint32_t s = 0; s < state->rank; s++) {
            gram[(size_t)r * state->rank + s] *= scale[r] * scale[s];
        }
    }
    return SLC_OK;
}

enum slc_status
cp_update_begin(struct cp_state *state, unsigned mode, bool *singular, struct slc_error *err)
{
    cp_hadamard(state, mode);
    set_left_scales(state, mode);
    set_right_scales(state, mode);
    if (state->solver.rows != NULL) {
        *singular = false;
        return cp_constraint_begin(state, mode, err);
    }
    for (uint32_t r = 0; r < state->rank; r++) {
        state->system[(size_t)r * state->rank + r] += state->options->terms[mode].ridge;
    }
    enum slc_status status = slc_dense_factorize(state->dense, state->system, state->left,
                                                 state->right, &state->solver, err);
    *singular = state->solver.singular;
    return status;
}

static struct slc_update_sums sums_of(const struct cp_state *state, unsigned mode)
{
    return (struct slc_update_sums){state->gram[mode], state->largest, state->column_inner};
}

/* Computes the inner product of tensor and model, and normalizes the factor. */
static enum slc_status finish_factor(struct cp_state *state, unsigned mode, struct slc_error *err)
{
    state->inner = 0.0;
    for (uint32_t r = 0; r < state->rank; r++) {
        state->inner += state->left[r] / state->right[r] * state->column_inner[r];
    }
    return normalize_factor(state, mode, err);
}

enum slc_status cp_update_end(struct cp_state *state,
                              unsigned mode,
                              const struct slc_buffer *output,
                              struct slc_error *err)
{
    const struct slc_matrix mttkrp = cp_output_view(state, output, mode);
    const struct slc_update_sums sums = sums_of(state, mode);

    SLC_TRY(slc_dense_update_sums(state->dense, &state->solver, &mttkrp,
                                  &state->result->factors[mode], &sums, err));
    return finish_factor(state, mode, err);
}

/* Solves the rows in host memory: copies the MTTKRP from the device, and the factor to the
 * device. */
static enum slc_status update_on_host(struct cp_state *state,
                                      unsigned mode,
                                      const struct slc_matrix *mttkrp,
                                      const struct slc_update_sums *sums,
                                      struct slc_error *err)
{
    const struct slc_executor_ops *ops = state->executor->ops;
    struct slc_matrix *factor = &state->result->factors[mode];

    SLC_TRY(ops->read_output(state->executor, mode, err));
    if (state->options->terms[mode].smooth > 0.0) {
        SLC_TRY(cp_smooth_update(state, mode, mttkrp, err));
        SLC_TRY(slc_dense_update_sums(state->dense, &state->solver, mttkrp, factor, sums, err));
    } else {
        SLC_TRY(slc_dense_update(state->dense, &state->solver, mttkrp, factor, sums, err));
    }
    return ops->write_factor != NULL ? ops->write_factor(state->executor, mode, err) : SLC_OK;
}

enum slc_status cp_update(struct cp_state *state,
                          unsigned mode,
                          const struct slc_buffer *output,
                          bool *singular,
                          struct slc_error *err)
{
    const struct slc_matrix mttkrp = cp_output_view(state, output, mode);
    const struct slc_update_sums sums = sums_of(state, mode);

    SLC_TRY(cp_update_begin(state, mode, singular, err));
    if (solves_for_device(state) || state->options->terms[mode].smooth > 0.0) {
        SLC_TRY(update_on_host(state, mode, &mttkrp, &sums, err));
    } else {
        SLC_TRY(state->executor->ops->update_rows(state->executor, mode, &mttkrp, &state->solver,
                                                  &sums, err));
    }
    return finish_factor(state, mode, err);
}
