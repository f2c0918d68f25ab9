/* Diagnoses the final model from the Gram matrices of its unit columns: components that nearly
 * cancel, and collinear components. */
#include "engine/solve/cp_state.h"

#include <math.h>

/* Returns the cosine of the angle between columns r and s; 0 if a column is zero. */
static double cosine(const double *gram, uint32_t rank, uint32_t r, uint32_t s)
{
    const double norms = sqrt(gram[(size_t)r * rank + r]) * sqrt(gram[(size_t)s * rank + s]);

    return norms > 0.0 ? gram[(size_t)r * rank + s] / norms : 0.0;
}

static void compare_components(const struct cp_state *state, struct slc_cp_diagnosis *diagnosis)
{
    diagnosis->congruence = 1.0;
    diagnosis->largest_congruence = state->rank > 1 ? -1.0 : 0.0;
    for (uint32_t r = 0; r < state->rank; r++) {
        for (uint32_t s = r + 1; s < state->rank; s++) {
            double product = 1.0;

            for (unsigned n = 0; n < state->order; n++) {
                product *= cosine(state->gram[n], state->rank, r, s);
            }
            if (product < diagnosis->congruence) {
                diagnosis->congruence = product;
                diagnosis->cancelling[0] = r;
                diagnosis->cancelling[1] = s;
            }
            if (product > diagnosis->largest_congruence) {
                diagnosis->largest_congruence = product;
                diagnosis->collinear[0] = r;
                diagnosis->collinear[1] = s;
            }
        }
    }
}

enum slc_status cp_diagnose(struct cp_state *state, struct slc_error *err)
{
    struct slc_cp_diagnosis *diagnosis = &state->result->diagnosis;

    if (state->result->iterations == 0) {
        return SLC_OK;
    }
    for (unsigned n = 0; n < state->order; n++) {
        const struct slc_matrix *factor = &state->result->factors[n];

        SLC_TRY(slc_dense_gram(state->dense, factor, state->gram[n], err));
        if (factor->rows >= state->rank) {
            SLC_TRY(slc_dense_condition(state->dense, state->gram[n], state->rank,
                                        &diagnosis->condition[n], err));
        }
    }
    compare_components(state, diagnosis);
    cp_hadamard(state, SLC_MAX_ORDER);
    SLC_TRY(slc_dense_condition(state->dense, state->system, state->rank,
                                &diagnosis->joint_condition, err));
    diagnosis->rising = cp_fit_rises(state);
    return SLC_OK;
}
