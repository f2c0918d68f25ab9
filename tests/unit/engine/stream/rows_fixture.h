/* Shared by the tests of row passes: skewed tensors, a row solver that makes a fixed number of
 * traversals, and the same update by plain loops. */
#ifndef SLC_TEST_ROWS_FIXTURE_H
#define SLC_TEST_ROWS_FIXTURE_H

#include "engine/stream/holdout.h"
#include "engine/stream/row_pass.h"
#include "sorted_fixture.h"

#include <stdatomic.h>

enum { ROWS_RANK = 5, ROWS_SUMS = ROWS_RANK + 2, ROWS_MEMORY = 3 };

/* A tensor and a store with its sorted layouts. */
struct rows_store {
    char path[512];
    struct slc_made_tensor tensor;
    bool all_sorted; /* every mode has a sorted layout */
};

struct rows_shape {
    const char *name;
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    unsigned heavy_mode; /* half of the nonzeros are moved to row heavy_row of this mode */
    uint64_t heavy_row;  /* SLC_NOWHERE: none */
    uint32_t tile_nnz;   /* nonzeros per tile; 0: full tiles */
    uint64_t target_nnz; /* nonzeros per partition */
    uint64_t block_bytes;
    uint32_t sorted; /* modes with a sorted layout */
};

void make_rows_store(struct rows_store *made, const struct rows_shape *shape);
void destroy_rows_store(struct rows_store *made);

/* The solver and what it has observed. */
struct rows_solver {
    struct slc_row_solver solver;
    struct slc_row_mode about;
    uint32_t traversals; /* per row */
    uint64_t fail_row;   /* returns NaN for this row; SLC_NOWHERE: none */
    uint64_t stop_after; /* calls of `add` after which `stop` is set; SLC_NOWHERE: never */
    volatile int stop;
    atomic_uint_fast64_t adds;
    atomic_uint begins, ends, wrong; /* wrong: broken promises of the pass */
    double weights[ROWS_RANK];
};

void rows_solver_init(struct rows_solver *solver,
                      const struct rows_store *made,
                      unsigned mode,
                      unsigned workers,
                      uint32_t traversals);

/* Factors with fixed numbers. Release with destroy_rows_factors. */
void make_rows_factors(const struct rows_store *made,
                       enum slc_value_type type,
                       struct slc_matrix *factors);
void destroy_rows_factors(const struct rows_store *made, struct slc_matrix *factors);

/* The update by plain loops in f64. `holdout` may be NULL; its nonzeros are dropped. */
void rows_reference(const struct rows_store *made,
                    const struct rows_solver *solver,
                    const struct slc_holdout *holdout,
                    struct slc_matrix *factors,
                    double measures[SLC_ROW_MEASURES]);

/* A request for a plan of row updates. */
struct slc_plan_request rows_request(uint32_t traversals);

#endif
