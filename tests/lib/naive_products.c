/* Reference products: one nonzero at a time, in f64, in list order, after a sort by fibers. */
#include "naive_products.h"

#include <stdbool.h>
#include <stdlib.h>

/* Sort key of the nonzeros. */
struct fiber_order {
    const struct slc_coo_view *tensor;
    unsigned mode;
};

/* Returns a number < 0, 0 or > 0 that orders the fibers of nonzeros a and b; 0: the same fiber. */
static int compare_fibers(const struct fiber_order *by, uint64_t a, uint64_t b)
{
    for (unsigned m = 0; m < by->tensor->order; m++) {
        const uint64_t *coords = by->tensor->coords[m];

        if (m != by->mode && coords[a] != coords[b]) {
            return coords[a] < coords[b] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_nonzeros(const void *left, const void *right, void *context)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    const int fibers = compare_fibers(context, a, b);

    return fibers != 0 ? fibers : (a > b) - (a < b);
}

uint64_t slc_reference_fibers(const struct slc_coo_view *tensor,
                              unsigned mode,
                              uint64_t *order,
                              uint64_t *fiber)
{
    struct fiber_order by = {tensor, mode};

    if (tensor->nnz == 0) {
        return 0;
    }
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        order[i] = i;
    }
    qsort_r(order, tensor->nnz, sizeof *order, compare_nonzeros, &by);
    fiber[0] = 0;
    for (uint64_t k = 1; k < tensor->nnz; k++) {
        fiber[k] = fiber[k - 1] + (compare_fibers(&by, order[k - 1], order[k]) != 0);
    }
    return fiber[tensor->nnz - 1] + 1;
}

void slc_reference_ttv(const struct slc_coo_view *tensor,
                       unsigned mode,
                       const double *vector,
                       const uint64_t *order,
                       const uint64_t *fiber,
                       double *sums)
{
    for (uint64_t k = 0; k < tensor->nnz; k++) {
        const uint64_t i = order[k];
        const bool first = k == 0 || fiber[k] != fiber[k - 1];

        sums[fiber[k]] =
            (first ? 0.0 : sums[fiber[k]]) + tensor->values[i] * vector[tensor->coords[mode][i]];
    }
}

void slc_reference_ttm(const struct slc_coo_view *tensor,
                       unsigned mode,
                       const struct slc_matrix *matrix,
                       const uint64_t *order,
                       const uint64_t *fiber,
                       double *rows)
{
    for (uint64_t k = 0; k < tensor->nnz; k++) {
        const uint64_t i = order[k];
        const bool first = k == 0 || fiber[k] != fiber[k - 1];
        double *row = rows + fiber[k] * matrix->cols;

        for (uint32_t r = 0; r < matrix->cols; r++) {
            row[r] = (first ? 0.0 : row[r]) +
                     tensor->values[i] * slc_matrix_get(matrix, tensor->coords[mode][i], r);
        }
    }
}

void slc_reference_gram(const struct slc_matrix *matrix, double *gram)
{
    const uint32_t cols = matrix->cols;

    for (uint32_t i = 0; i < cols; i++) {
        for (uint32_t j = 0; j < cols; j++) {
            double sum = 0.0;
            for (uint64_t row = 0; row < matrix->rows; row++) {
                sum += slc_matrix_get(matrix, row, i) * slc_matrix_get(matrix, row, j);
            }
            gram[(uint64_t)i * cols + j] = sum;
        }
    }
}
