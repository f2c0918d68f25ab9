/* Reference MTTKRP: one nonzero at a time, in f64, in the order of the list. Cost: nnz * order *
 * rank. */
#include "cpu/reference/reference.h"

#include <math.h>
#include <stdbool.h>

static void add_nonzero(const struct slc_coo_view *tensor,
                        const struct slc_matrix *const *factors,
                        unsigned mode,
                        uint64_t i,
                        uint32_t rank,
                        bool magnitude,
                        double *row)
{
    for (uint32_t r = 0; r < rank; r++) {
        double product = tensor->values[i];
        for (unsigned m = 0; m < tensor->order; m++) {
            if (m != mode) {
                product *= slc_matrix_get(factors[m], tensor->coords[m][i], r);
            }
        }
        row[r] += magnitude ? fabs(product) : product;
    }
}

static void add_mttkrp(const struct slc_coo_view *tensor,
                       const struct slc_matrix *const *factors,
                       unsigned mode,
                       uint64_t output_rows,
                       uint32_t rank,
                       bool magnitude,
                       double *output)
{
    for (uint64_t k = 0; k < output_rows * rank; k++) {
        output[k] = 0.0;
    }
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        add_nonzero(tensor, factors, mode, i, rank, magnitude,
                    output + tensor->coords[mode][i] * rank);
    }
}

void slc_reference_mttkrp(const struct slc_coo_view *tensor,
                          const struct slc_matrix *const *factors,
                          unsigned mode,
                          uint64_t output_rows,
                          uint32_t rank,
                          double *output)
{
    add_mttkrp(tensor, factors, mode, output_rows, rank, false, output);
}

void slc_reference_mttkrp_magnitude(const struct slc_coo_view *tensor,
                                    const struct slc_matrix *const *factors,
                                    unsigned mode,
                                    uint64_t output_rows,
                                    uint32_t rank,
                                    double *output)
{
    add_mttkrp(tensor, factors, mode, output_rows, rank, true, output);
}
