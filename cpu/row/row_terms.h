/* Constraints and penalties on the rows of a factor, which solvers of MTTKRP rows apply. */
#ifndef SLC_CPU_ROW_TERMS_H
#define SLC_CPU_ROW_TERMS_H

#include <stdbool.h>

/* All zero: no constraint and no penalty. Penalties are added to half of the squared error. */
struct slc_row_terms {
    double ridge;     /* ridge / 2 times the sum of squares */
    double l1;        /* l1 times the sum of magnitudes */
    bool nonnegative; /* every number is 0 or more */
    bool simplex;     /* every number is 0 or more, and the numbers of a row add up to 1 */
    bool bounded;     /* every number is between low and high */
    double low, high;
};

#endif
