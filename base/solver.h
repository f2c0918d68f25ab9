/* A prepared solver for the rows of a factor, and the sums of an update. Both types are the same
 * for every device. cpu/dense/dense.h prepares a solver; the device that holds the rows of the
 * factor applies it. */
#ifndef SLC_BASE_SOLVER_H
#define SLC_BASE_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

struct slc_row_solver; /* base/row_solver.h */

/* Solves X = M D V^-1 E row by row, with diagonal matrices D and E. If V = L L^T is regular, X
 * (E^-1 L) (D^-1 L)^T = M is solved by substitution with the two triangular matrices. If V is
 * singular, X is the product M D V^+ E. Matrices are row-major. */
struct slc_solver {
    uint32_t rank;
    uint32_t
        /* number of rows and of columns of the matrices below: the rank rounded up to a multiple of
         * 4 */
        size;
    /* true if V is singular and V^+ was computed by a truncated eigendecomposition */
    bool singular;
    /* number of eigenvalues that were kept; equal to the rank if V is not singular */
    uint32_t kept;
    /* D^-1 L with V = L L^T; if V is singular, D V^+ E */
    double *forward;
    double *backward; /* E^-1 L */
    /* inverses of the diagonal elements of `forward` and `backward` */
    double *forward_inverse, *backward_inverse;
    /* If not NULL, this solver of MTTKRP rows computes the rows, and the matrices above are not
     * used. It receives the rows of M D, and starts with the rows of X S, where X is the factor
     * before the update and S a diagonal matrix. Its solution times E is stored. Borrowed, like the
     * R numbers of each diagonal matrix. */
    const struct slc_row_solver *rows;
    const double *left, *start, *right; /* D, S, E */
};

/* Sums over all rows of the updated factor, computed from its numbers after rounding to its type.
 * The caller owns the arrays. */
struct slc_update_sums {
    /* R x R: factor^T factor; element (r, s) is not finite if column r or s of the factor has a
     * number that is not finite */
    double *gram;
    double *largest; /* R: largest magnitude per column, without NaN */
    double *inner;   /* R: sum over i of mttkrp(i, r) * factor(i, r) */
};

#endif
