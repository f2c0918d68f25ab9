/* Evaluates a model at one index. */
#include "storage/model/model.h"

#include <string.h>

/* Number of columns multiplied at a time; their products stay in the L1 cache. */
enum { PANEL = 256 };

static void multiply_row(
    const struct slc_matrix *factor, uint64_t row, uint32_t first, uint32_t count, double *product)
{
    if (factor->type == SLC_F64) {
        const double *numbers = slc_matrix_row_f64(factor, row) + first;

        for (uint32_t r = 0; r < count; r++) {
            product[r] *= numbers[r];
        }
    } else {
        const float *numbers = slc_matrix_row_f32(factor, row) + first;

        for (uint32_t r = 0; r < count; r++) {
            product[r] *= (double)numbers[r];
        }
    }
}

double slc_model_value(const struct slc_model_view *model, const uint64_t *index)
{
    double sum = 0.0;

    for (uint32_t first = 0; first < model->rank; first += PANEL) {
        const uint32_t count = model->rank - first < PANEL ? model->rank - first : PANEL;
        double product[PANEL];

        memcpy(product, model->lambda + first, count * sizeof product[0]);
        for (unsigned n = 0; n < model->order; n++) {
            multiply_row(model->factors[n], index[n], first, count, product);
        }
        for (uint32_t r = 0; r < count; r++) {
            sum += product[r];
        }
    }
    return sum;
}
