/* Constraints and penalties on the rows of a factor, which solvers of MTTKRP rows apply. */
#ifndef SLC_CPU_ROW_TERMS_H
#define SLC_CPU_ROW_TERMS_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: no constraint and no penalty. Penalties are added to half of the squared error. */
struct slc_row_terms {
    double ridge;     /* ridge / 2 times the sum of squares */
    double l1;        /* l1 times the sum of magnitudes */
    double smooth;    /* smooth times the sum of squared differences of consecutive rows */
    bool nonnegative; /* every number is 0 or more */
    bool simplex;     /* every number is 0 or more, and the numbers of a row add up to 1 */
    bool bounded;     /* every number is between low and high */
    double low, high;
};

/* Replaces a row v by the minimizer x of 1/2 |x - v|^2 + threshold sum |x_r| under the constraints.
 * If the row must be on the simplex, the sum of the magnitudes is always 1, and the threshold has
 * no effect. */
void slc_row_terms_apply(const struct slc_row_terms *terms,
                         uint32_t rank,
                         double threshold,
                         double *row);

#endif
