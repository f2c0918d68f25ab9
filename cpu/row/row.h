/* Row solvers that need the nonzeros of a row (base/row_solver.h): Poisson models, completion by
 * least squares, and other losses on the stored cells. A solver is created once for a rank and a
 * number of workers, and then updates the modes one after another. All memory is allocated when a
 * solver is created. m is the model at a nonzero with value v: the inner product of x and the
 * products of the nonzero.
 *
 * A column that is marked in `fixed` keeps its x; only the other columns are solved for. Completion
 * with biases has such columns: components that are ones in all modes but one. */
#ifndef SLC_CPU_ROW_H
#define SLC_CPU_ROW_H

#include "base/error/error.h"
#include "base/loss.h"
#include "base/memory/limits.h"
#include "base/row_solver.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_row_method {
    SLC_ROW_METHOD_MU,     /* Poisson: multiplicative updates [Chi2012] */
    SLC_ROW_METHOD_PDNR,   /* Poisson: projected damped Newton [Hansen2015] */
    SLC_ROW_METHOD_ALS,    /* completion: normal equations of each row */
    SLC_ROW_METHOD_CCD,    /* completion: cyclic coordinate descent */
    SLC_ROW_METHOD_NEWTON, /* any loss on the stored cells: damped Newton */
    SLC_ROW_METHOD_GIVEN,  /* a solver of the caller */
    SLC_ROW_METHODS
};

/* Statistics of the rows that were updated since `begin`. They do not depend on the number of
 * workers or the order of rows. */
struct slc_row_statistics {
    uint64_t rows;
    uint64_t traversals; /* total over all rows, the number of inner iterations */
    /* Poisson: rows that did not satisfy the tolerance at their first traversal; other losses: rows
     * that did not satisfy it at their last traversal */
    uint64_t unconverged;
    uint64_t singular; /* rows whose normal equations were singular */
    /* Poisson: largest violation of the KKT conditions, |min(x, totals - phi)|, over all rows, at
     * their first and at their last traversal. violation_first describes the model before the
     * update. */
    double violation_first, violation_last;
};

/* Options of SLC_ROW_METHOD_MU and SLC_ROW_METHOD_PDNR. The objective of a row is the negative
 * Poisson log-likelihood of all its cells, x totals - sum of v log(m), without log(v!). Values must
 * not be negative. x must not be negative. */
struct slc_row_poisson_options {
    unsigned inner;   /* maximum number of updates of a row */
    double tolerance; /* a row is solved if its KKT violation is below this number */
    double floor;     /* minimum of a model value in a division, above 0 */
    /* MU: adds zero_offset to the elements of the normalized row that are below zero_tolerance and
     * whose phi exceeded their total at the end of the previous update. Otherwise such zeros, which
     * violate the KKT conditions, would stay zero. `flags` records these elements:
     * slc_row_flag_bytes(rank) bytes per row of mode n, initially zero, and part of the state of a
     * run. NULL: zeros stay zero. */
    double zero_tolerance, zero_offset;
    unsigned char *flags[SLC_MAX_ORDER];
    /* PDNR */
    unsigned inner_first; /* maximum number of updates of a row in the first outer iteration */
    double damping;       /* damping of the first step of a row */
    double active;        /* elements of at most this size are fixed in a step if their gradient is
                             positive */
};

/* Returns the options of CP-APR without flags: inner 10, inner_first 2, tolerance 1e-4, floor
 * 1e-10, zero_tolerance 1e-10, zero_offset 1e-2, damping 1e-5, active 1e-8. */
struct slc_row_poisson_options slc_row_poisson_defaults(void);

static inline uint64_t slc_row_flag_bytes(uint32_t rank)
{
    return ((uint64_t)rank + 7) / 8;
}

/* Options of SLC_ROW_METHOD_ALS and SLC_ROW_METHOD_CCD, and a part of the options of
 * SLC_ROW_METHOD_NEWTON. The objective of a row is the loss, the sum of (v - m)^2 for ALS and CCD,
 * plus the sum of ridge[r] x[r]^2. */
struct slc_row_cell_options {
    const double *ridge[SLC_MAX_ORDER];        /* R numbers >= 0 per mode; NULL: zeros */
    bool ridge_by_count;                       /* multiply `ridge` by the row's nnz */
    const unsigned char *fixed[SLC_MAX_ORDER]; /* R flags per mode; NULL: none fixed */
    /* `inner` is the maximum number of sweeps (CCD) or steps (Newton) of a row. A row is solved if
     * a sweep or step changes no element by more than `tolerance` times the largest element. */
    unsigned inner;
    double tolerance;
};

/* A loss of a value and a model, for SLC_ROW_METHOD_NEWTON. */
struct slc_row_loss {
    bool nonnegative; /* x must not be negative */
    double delta;     /* huber: the residual at which the loss becomes linear, above 0 */
    /* Computes, for `count` cells, the losses, their first derivatives by m, and positive estimates
     * of the second derivatives: exact, expected (Fisher scoring), or upper bounds. `first` and
     * `second` may both be NULL. */
    void (*evaluate)(const struct slc_row_loss *loss,
                     uint32_t count,
                     const double *values,
                     const double *models,
                     double *losses,
                     double *first,
                     double *second);
};

/* Returns a loss [Hong2020]. `delta` is the parameter of Huber's loss. */
struct slc_row_loss slc_row_loss(enum slc_loss loss, double delta);

/* The options of one method; the arrays in it are borrowed until the solver is destroyed. */
struct slc_row_options {
    enum slc_row_method method;
    struct slc_row_poisson_options poisson;
    struct slc_row_cell_options cells;
    struct slc_row_loss loss;
    /* SLC_ROW_METHOD_GIVEN: a solver of nonzeros. Borrowed. Without `measure`, squared residuals
     * are measured. */
    const struct slc_row_solver *given;
};

/* Creates a solver. Ownership: release with slc_row_solver_destroy, which accepts NULL. Errors:
 * SLC_ERR_USAGE for options out of range, SLC_ERR_MEMORY. */
enum slc_status slc_row_solver_create(const struct slc_row_options *options,
                                      uint32_t rank,
                                      unsigned workers,
                                      struct slc_row_solver **solver,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_row_solver_destroy(struct slc_row_solver *solver);
/* Returns the bytes that slc_row_solver_create allocates, for memory plans. */
uint64_t slc_row_solver_memory_bytes(enum slc_row_method method, uint32_t rank, unsigned workers);

/* Return the statistics since the last `begin`, and set the tolerance. Needs: the solver was made
 * by slc_row_solver_create, and no worker is in the solver. */
struct slc_row_statistics slc_row_solver_statistics(const struct slc_row_solver *solver);
void slc_row_solver_set_tolerance(struct slc_row_solver *solver, double tolerance);

#endif
