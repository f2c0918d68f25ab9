/*
 * What solving for the rows of a factor takes and what it finds out: the same for every device.
 * cpu/dense/dense.h prepares a solver; whoever holds the rows applies it.
 */
#ifndef SLC_BASE_SOLVER_H
#define SLC_BASE_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * X = M D V^-1 E, row by row: with V = L L^T, X (E^-1 L) (D^-1 L)^T = M, by substitution with two
 * triangular matrices; where V is singular, by one product. Matrices are row-major.
 */
struct slc_solver {
    uint32_t rank;
    uint32_t size;    /* of the matrices below, row-major: the rank rounded up to a multiple of 4 */
    bool singular;    /* the truncated eigen-decomposition was needed */
    uint32_t kept;    /* eigenvalues kept; rank when not singular */
    double *forward;  /* D^-1 L of V = L L^T; when singular D V^+ E */
    double *backward; /* E^-1 L */
    double *forward_inverse, *backward_inverse; /* of their diagonals */
};

/* What an update finds out about the factor, as rounded to its type; the caller's arrays. */
struct slc_update_sums {
    double *gram;    /* R x R: factor^T factor; not finite where a number of the column is not */
    double *largest; /* R: largest magnitudes, NaN ignored */
    double *inner;   /* R: sum over i of mttkrp(i, r) * factor(i, r) */
};

#endif
