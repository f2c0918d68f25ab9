/* The prepared solver for the rows of a factor, and the sums of an update. Both are the same for
 * every device. cpu/dense/dense.h prepares a solver; the device with the rows applies it. */
#ifndef SLC_BASE_SOLVER_H
#define SLC_BASE_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * X = M D V^-1 E, row by row. If V = L L^T is regular, X (E^-1 L) (D^-1 L)^T = M is solved by
 * substitution with two triangular matrices. If V is singular, X is the product M D V^+ E. Matrices
 * are row-major.
 */
struct slc_solver {
    uint32_t rank;
    uint32_t
        size; /* rows and columns of the matrices below: the rank rounded up to a multiple of 4 */
    bool singular;                              /* a truncated eigendecomposition was needed */
    uint32_t kept;                              /* eigenvalues kept; the rank if not singular */
    double *forward;                            /* D^-1 L of V = L L^T; if singular D V^+ E */
    double *backward;                           /* E^-1 L */
    double *forward_inverse, *backward_inverse; /* inverses of their diagonals */
};

/* Sums of an update over the factor after rounding to the factor's type. The caller owns the
 * arrays. */
struct slc_update_sums {
    double *gram;    /* R x R: factor^T factor; not finite if a number of the column is not */
    double *largest; /* R: largest magnitudes, NaN ignored */
    double *inner;   /* R: sum over i of mttkrp(i, r) * factor(i, r) */
};

#endif
