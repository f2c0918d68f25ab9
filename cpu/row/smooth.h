/* Solves all rows of a factor whose consecutive rows are coupled by the penalty `smooth`.
 *
 * Without other terms, A V + ridge A + 2 smooth L A = M, where L is the Laplacian of the path
 * through the rows. In the basis of the eigenvectors of V, this is one tridiagonal system per
 * column. With constraints or an l1 penalty, the solver uses ADMM as in cpu/row/admm.h, but with
 * all rows in one step: it alternates between such systems, with rho added to V, and the
 * constraints on each row. */
#ifndef SLC_CPU_ROW_SMOOTH_H
#define SLC_CPU_ROW_SMOOTH_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/solver.h"
#include "cpu/row/row_terms.h"

struct slc_smooth_problem {
    const struct slc_row_terms *terms; /* terms of the mode, with smooth > 0 */
    const double *gram;                /* R x R: V */
    const struct slc_solver *solver;   /* only its scales `left`, `start` and `right` are used */
    const struct slc_matrix *mttkrp;
    struct slc_matrix *factor; /* in: start; out: solution */
    /* With constraints, steps end at these limits, as in struct slc_admm_options. */
    double tolerance;
    unsigned steps;
};

/* Returns the numbers of the scratch of slc_smooth_solve; UINT64_MAX on overflow. */
uint64_t slc_smooth_elements(uint64_t rows, uint32_t rank);

/* Solves the rows, in the order of the factor. A start that satisfies the constraints is kept if
 * the objective of the solution would be larger. Order: one thread computes everything. Cost: 2
 * rows R^2 multiply-adds per step, one step without constraints. Errors: SLC_ERR_NUMERIC if V has a
 * NaN or an infinity. */
enum slc_status slc_smooth_solve(const struct slc_smooth_problem *problem,
                                 double *scratch,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
