/* Diagnoses the final model from the Gram matrices of its unit columns: components that nearly
 * cancel, and collinear components. Biases (cp.h) are left out. */
#include "engine/solve/cp_state.h"

#include <math.h>
#include <string.h>

/* Returns the cosine of the angle between columns r and s; 0 if a column is zero. */
static double cosine(const double *gram, uint32_t rank, uint32_t r, uint32_t s)
{
    const double norms = sqrt(gram[(size_t)r * rank + r]) * sqrt(gram[(size_t)s * rank + s]);

    return norms > 0.0 ? gram[(size_t)r * rank + s] / norms : 0.0;
}

static void
compare_components(const struct cp_state *state, uint32_t rank, struct slc_cp_diagnosis *diagnosis)
{
    diagnosis->congruence = 1.0;
    diagnosis->largest_congruence = rank > 1 ? -1.0 : 0.0;
    for (uint32_t r = 0; r < rank; r++) {
        for (uint32_t s = r + 1; s < rank; s++) {
            double product = 1.0;

            for (unsigned n = 0; n < state->order; n++) {
                product *= cosine(state->gram[n], rank, r, s);
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
    const uint32_t rank = state->rank - state->result->biases;

    if (state->result->iterations == 0) {
        return SLC_OK;
    }
    for (unsigned n = 0; n < state->order; n++) {
        const struct slc_matrix *factor = &state->result->factors[n];

        SLC_TRY(slc_dense_gram(state->dense, factor, state->gram[n], err));
        for (uint32_t r = 1; r < rank && rank < state->rank; r++) {
            memmove(state->gram[n] + (size_t)r * rank, state->gram[n] + (size_t)r * state->rank,
                    rank * sizeof(double));
        }
        if (factor->rows >= rank) {
            SLC_TRY(slc_dense_condition(state->dense, state->gram[n], rank,
                                        &diagnosis->condition[n], err));
        }
    }
    compare_components(state, rank, diagnosis);
    cp_hadamard(state, SLC_MAX_ORDER);
    SLC_TRY(
        slc_dense_condition(state->dense, state->system, rank, &diagnosis->joint_condition, err));
    diagnosis->rising = cp_fit_rises(state);
    return SLC_OK;
}
