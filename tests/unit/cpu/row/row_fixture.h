/* Shared by the tests of row solvers: random rows, and a traversal of a row by a solver. */
#ifndef SLC_TEST_ROW_FIXTURE_H
#define SLC_TEST_ROW_FIXTURE_H

#include "cpu/row/row.h"
#include "slc_test.h"

#include <stdbool.h>
#include <stdint.h>

/* Calls `run` with every instruction set of this machine, then restores the best. */
void with_every_set(void (*run)(void));

/* Returns zeros, aligned to 64 bytes; release with free. */
double *row_numbers(uint64_t count);

enum row_kind { ROW_COUNTS, ROW_REALS, ROW_BITS, ROW_POSITIVE };

/* A row with random products in (0, 1), or (-1, 1) for ROW_REALS and ROW_BITS, and values near a
 * planted model. */
struct row_problem {
    uint32_t rank, width, nnz;
    double *values, *products, *totals;
};
struct row_problem row_problem(enum row_kind kind, uint32_t rank, uint32_t nnz);
void row_problem_free(struct row_problem *problem);

/* How a row is traversed. */
struct row_way {
    uint32_t piece; /* nonzeros of a piece; 0: as many as possible */
    bool streamed;
    unsigned iteration; /* number of the outer iteration; 0 means 2 */
    const double *weights;
};

/* Creates a solver for 2 workers. */
struct slc_row_solver *row_solver(const struct slc_row_options *options, uint32_t rank);

/* Updates x (a vector) as row 1 of mode 1. Returns the number of traversals. `objectives` may be
 * NULL; otherwise it gets the objective by slc_row_solver.measure before each traversal and at the
 * end. */
uint32_t solve_row(struct slc_row_solver *solver,
                   const struct row_problem *problem,
                   const struct row_way *way,
                   double *x,
                   double *objectives);

/* Returns the objective of a row, computed by slc_row_solver.measure. */
double measure_row(struct slc_row_solver *solver, const struct row_problem *problem, double *x);

#endif
