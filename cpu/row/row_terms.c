#include "cpu/row/row_terms.h"

#include <math.h>

/* Replaces a row by the nearest row on the simplex: subtracts a number from all elements and sets
 * negative elements to 0. The number follows from the positive elements, whose set shrinks in each
 * step until it no longer changes. */
static void project_on_simplex(double *row, uint32_t rank)
{
    double shift = -INFINITY;
    uint32_t count = rank + 1, last;

    do {
        double sum = 0.0;

        last = count;
        count = 0;
        for (uint32_t r = 0; r < rank; r++) {
            if (row[r] > shift) {
                sum += row[r];
                count++;
            }
        }
        shift = count > 0 ? (sum - 1.0) / count : shift;
    } while (count > 0 && count < last);
    for (uint32_t r = 0; r < rank; r++) {
        row[r] = row[r] > shift ? row[r] - shift : 0.0;
    }
}

void slc_row_terms_apply(const struct slc_row_terms *terms,
                         uint32_t rank,
                         double threshold,
                         double *row)
{
    if (terms->simplex) {
        project_on_simplex(row, rank);
        return;
    }
    for (uint32_t r = 0; r < rank; r++) {
        double value = fmax(row[r] - threshold, fmin(row[r] + threshold, 0.0));

        value = terms->bounded ? fmin(fmax(value, terms->low), terms->high) : value;
        row[r] = (terms->nonnegative ? fmax(value, 0.0) : value) + 0.0;
    }
}
