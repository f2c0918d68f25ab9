/* Solves rows of the MTTKRP by coordinate descent (HALS, [Cichocki2009]): least squares with an l1
 * and a ridge penalty, with bounds on every number, such as 0 or more.
 *
 * For a row m of the MTTKRP and the Gram matrix V of the other factors, the solver minimizes
 *     1/2 x V x^T - m x^T + ridge / 2 sum x_r^2 + l1 sum |x_r|,  low <= x_r <= high.
 * Each sweep sets every x_r in turn to its minimizer, so the objective never increases. The sweeps
 * start with the current row and end when a sweep reduces the objective little ([Gillis2012]
 * section 4.2). A number whose component is zero in another mode does not affect the objective and
 * keeps its value. */
#ifndef SLC_CPU_ROW_DESCENT_H
#define SLC_CPU_ROW_DESCENT_H

#include "base/row_solver.h"
#include "cpu/row/row_terms.h"

struct slc_descent_options {
    const struct slc_row_terms *terms; /* one per mode, without simplex; borrowed */
    double tolerance; /* a row ends when a sweep gains at most this fraction of its largest gain */
    unsigned sweeps;  /* maximum number of sweeps */
};

/* Creates a solver for `workers` threads. Ownership: release with slc_descent_destroy, which
 * accepts an all-zero struct. Order: a row has the same bits for any number of workers. Cost per
 * row and sweep: R^2 multiply-adds. Errors: SLC_ERR_MEMORY; `begin` returns SLC_ERR_NUMERIC if V
 * has a NaN or an infinity. */
enum slc_status slc_descent_create(unsigned workers,
                                   uint32_t rank,
                                   const struct slc_descent_options *options,
                                   struct slc_row_solver *solver,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_descent_destroy(struct slc_row_solver *solver);
/* Returns the bytes that slc_descent_create allocates, for memory plans. */
uint64_t slc_descent_memory_bytes(unsigned workers, uint32_t rank);

#endif
