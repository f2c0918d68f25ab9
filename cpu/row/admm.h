/* Solves rows of the MTTKRP by the alternating direction method of multipliers (AO-ADMM,
 * [Huang2016] section 3, [Smith2017] section 4): least squares with an l1 and a ridge penalty, with
 * bounds on every number, or with rows on the simplex.
 *
 * For a row m of the MTTKRP and the Gram matrix V of the other factors, the solver minimizes
 *     1/2 x V x^T - m x^T + ridge / 2 sum x_r^2 + l1 sum |x_r|
 * under the constraints of struct slc_row_terms. V + rho I is factorized once per mode, with rho
 * the mean of the diagonal of V. Each row ends separately, when its own steps are small. The dual
 * variables are not kept between updates. They start with the gradient at the current row, because
 * at a solution the dual variables equal the gradient. Let the start row be the current row, moved
 * to the nearest row within the constraints. If the solved row has a larger objective than the
 * start row, the result is the start row. So the objective never increases. */
#ifndef SLC_CPU_ROW_ADMM_H
#define SLC_CPU_ROW_ADMM_H

#include "base/row_solver.h"
#include "cpu/dense/dense.h"
#include "cpu/row/row_terms.h"

struct slc_admm_options {
    const struct slc_row_terms *terms; /* one per mode; borrowed */
    /* A row ends when its squared primal step is at most `tolerance` times the squared norm of the
     * row, and its squared dual step at most `tolerance` times that of its dual variables. */
    double tolerance;
    unsigned steps;          /* maximum number of steps */
    struct slc_dense *dense; /* scratch for the factorization; borrowed */
};

/* Creates a solver for `workers` threads. Ownership: release with slc_admm_destroy, which accepts
 * an all-zero struct. Order: a row has the same bits for any number of workers; up to rank 64 also
 * for any range of rows. Cost per row and step: R^2 multiply-adds. Errors: SLC_ERR_MEMORY; `begin`
 * returns SLC_ERR_NUMERIC if V has a NaN or an infinity. */
enum slc_status slc_admm_create(unsigned workers,
                                uint32_t rank,
                                const struct slc_admm_options *options,
                                struct slc_row_solver *solver,
                                struct slc_error *err) SLC_NODISCARD;
void slc_admm_destroy(struct slc_row_solver *solver);
/* Returns the bytes that slc_admm_create allocates, for memory plans. */
uint64_t slc_admm_memory_bytes(unsigned workers, uint32_t rank);

#endif
