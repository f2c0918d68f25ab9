/* State of the solvers of cpu/row/, and the steps that several of them use. */
#ifndef SLC_CPU_ROW_STATE_H
#define SLC_CPU_ROW_STATE_H

#include "base/memory/memory.h"
#include "cpu/kernel/row_kernels.h"
#include "cpu/row/row.h"

/* Memory of one worker. */
struct row_worker {
    struct slc_row_statistics counts;
    double *scratch; /* slc_row_scratch_numbers, aligned to 64 bytes */
} __attribute__((aligned(64)));

struct row_state {
    struct slc_row_solver solver; /* its context is this struct */
    struct slc_row_options options;
    const struct slc_row_kernels *kernels;
    unsigned workers;
    uint32_t rank, width;
    struct slc_row_mode mode;
    double *totals;             /* vector: the mode's totals, or zeros */
    const double *ridge;        /* ridge of the mode; may be NULL */
    const unsigned char *fixed; /* marks of the mode's fixed columns; may be NULL */
    struct row_worker *worker;
    struct slc_buffer memory;
};

static inline uint64_t row_square(const struct row_state *state)
{
    return (uint64_t)state->width * state->width;
}

/* Returns the number of doubles in a worker's scratch. MU needs a vector for the sums of a row;
 * Newton and PDNR need a matrix and a vector; ALS needs three matrices and four vectors, for the
 * normal equations and their sums. CCD needs two matrices and three vectors for normal equations
 * or, if that is more, the columns, residuals and vectors of a piece. */
uint64_t slc_row_scratch_numbers(enum slc_row_method method, uint32_t rank);

/* Set the functions of a method. */
void slc_row_set_mu(struct row_state *state);
void slc_row_set_pdnr(struct row_state *state);
void slc_row_set_als(struct row_state *state);
void slc_row_set_ccd(struct row_state *state);
void slc_row_set_newton(struct row_state *state);
void slc_row_set_given(struct row_state *state);

static inline bool row_is_fixed(const struct row_state *state, uint32_t r)
{
    return state->fixed != NULL && state->fixed[r] != 0;
}

/* Returns the ridge of column r for a row with `nnz` nonzeros. */
static inline double row_ridge(const struct row_state *state, uint32_t r, uint64_t nnz)
{
    if (state->ridge == NULL) {
        return 0.0;
    }
    return state->ridge[r] * (state->options.cells.ridge_by_count ? (double)nnz : 1.0);
}

/* Counts a row that is done. */
static inline void row_count(struct row_state *state, unsigned worker, const struct slc_row *row)
{
    state->worker[worker].counts.rows++;
    state->worker[worker].counts.traversals += row->traversals;
}

/* Computes the values of a piece, minus the model of the fixed columns. */
void slc_row_subtract_fixed(const struct row_state *state,
                            const struct slc_row *row,
                            const struct slc_row_piece *piece,
                            double *residuals);
/* Returns true if slc_row_solve_dual solves a row with `nnz` nonzeros, which are a single piece. */
bool slc_row_dual_fits(const struct row_state *state, uint64_t nnz);
void slc_row_solve_dual(struct row_state *state,
                        unsigned worker,
                        struct slc_row *row,
                        const struct slc_row_piece *piece);
/* The sums of normal equations: the matrix, and the right side after it. */
void slc_row_add_normal(const struct row_state *state,
                        const struct slc_row *row,
                        const struct slc_row_piece *piece,
                        double *sums);
/* Solves the normal equations with the ridge for the columns that are not fixed. If they are
 * singular, x is the solution with the least norm. */
void slc_row_solve_normal(struct row_state *state,
                          unsigned worker,
                          struct slc_row *row,
                          const double *sums);

/* Measures of Poisson models (row_poisson.c) and of squared residuals (row_als.c). */
void slc_row_measure_poisson(void *context,
                             unsigned worker,
                             const struct slc_row *row,
                             const struct slc_row_piece *piece,
                             double measures[SLC_ROW_MEASURES]);
void slc_row_measure_squares(void *context,
                             unsigned worker,
                             const struct slc_row *row,
                             const struct slc_row_piece *piece,
                             double measures[SLC_ROW_MEASURES]);
/* Records the KKT violation of the current traversal of a row, and returns it. */
double slc_row_note_violation(struct row_state *state,
                              unsigned worker,
                              const struct slc_row *row,
                              const double *phi);

#endif
