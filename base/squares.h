/* Sums of squares that neither overflow nor underflow. Numbers whose squares are normal numbers are
 * added as usual, so that a sum of such numbers has the bits of an ordinary sum. Smaller and larger
 * numbers are scaled by a power of two and added to sums of their own. */
#ifndef SLC_BASE_SQUARES_H
#define SLC_BASE_SQUARES_H

#include <math.h>

struct slc_squares {
    double middle; /* sum of the ordinary squares */
    double small;  /* sum of squares times 2^1074 of numbers below SLC_SQUARES_SMALL */
    double large;  /* sum of squares times 2^-1076 of numbers above SLC_SQUARES_LARGE */
};

#define SLC_SQUARES_SMALL 0x1p-511
#define SLC_SQUARES_LARGE 0x1p480

/* Adds the square of x to *sum. NaN and infinities stay in the sum. */
static inline void slc_squares_add(struct slc_squares *sum, double x)
{
    const double size = fabs(x);

    if (size < SLC_SQUARES_SMALL) {
        sum->small += (x * 0x1p537) * (x * 0x1p537);
    } else if (size > SLC_SQUARES_LARGE) {
        sum->large += (x * 0x1p-538) * (x * 0x1p-538);
    } else {
        sum->middle += x * x;
    }
}

static inline void slc_squares_add_sum(struct slc_squares *sum, const struct slc_squares *other)
{
    sum->middle += other->middle;
    sum->small += other->small;
    sum->large += other->large;
}

/* Returns the sum, which may overflow or underflow. */
static inline double slc_squares_total(const struct slc_squares *sum)
{
    return sum->middle + sum->large * 0x1p538 * 0x1p538 + sum->small * 0x1p-537 * 0x1p-537;
}

/* Returns the square root of the sum divided by `count`: the root mean square of `count` numbers,
 * or the 2-norm for a count of 1. Intermediate results do not overflow. */
static inline double slc_squares_root(const struct slc_squares *sum, double count)
{
    const double middle = sum->middle + sum->small * 0x1p-537 * 0x1p-537;

    if (sum->large > 0.0) {
        return sqrt((sum->large + middle * 0x1p-538 * 0x1p-538) / count) * 0x1p538;
    }
    return middle >= 0x1p-900 || !(sum->small > 0.0)
               ? sqrt(middle / count)
               : sqrt((sum->middle * 0x1p537 * 0x1p537 + sum->small) / count) * 0x1p-537;
}

#endif
