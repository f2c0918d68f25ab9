/* Shared by the tests of row passes: skewed tensors, a row solver that makes a fixed number of
 * traversals, and the same update by plain loops. */
#ifndef SLC_TEST_ROWS_FIXTURE_H
#define SLC_TEST_ROWS_FIXTURE_H

#include "engine/stream/holdout.h"
#include "engine/stream/rows/row_pass.h"
#include "sorted_fixture.h"

#include <stdatomic.h>

enum { SORTED_VARIANTS = 7, SORTED_SHAPES = 7 };
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
    uint32_t traversals; /* number of traversals per row */
    uint64_t fail_row;   /* returns NaN for this row; SLC_NOWHERE: none */
    bool flushes;        /* the processor can flush subnormal numbers */
    uint64_t stop_after; /* calls of `add` after which `stop` is set; SLC_NOWHERE: never */
    volatile int stop;
    atomic_uint_fast64_t adds;
    atomic_uint begins, ends, wrong; /* `wrong` counts violations of the contract by the pass */
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

/* Makes the update by plain loops in f64. `holdout` may be NULL; its nonzeros are dropped. */
void rows_reference(const struct rows_store *made,
                    const struct rows_solver *solver,
                    const struct slc_holdout *holdout,
                    struct slc_matrix *factors,
                    double measures[SLC_ROW_MEASURES]);

/* How an update is made. */
struct variant {
    unsigned threads;
    enum slc_io_kind io;
    enum slc_schedule schedule;
    bool cache;
    bool some;      /* true: caches every second block */
    unsigned slots; /* 0: as planned; otherwise this number, but at least the smallest possible */
    uint32_t buffer_nnz; /* 0: the planned value */
    uint32_t product_nnz;
    uint64_t gather_nnz;
};

/* An open run over a store. */
struct rows_run {
    struct sorted_run run;
    struct slc_row_passes *passes;
    struct slc_matrix factors[SLC_MAX_ORDER];
    char *scratch;
};

/* Nonzeros of a segment: 512 in most tests, so that rows of small tensors have several segments. */
extern uint32_t rows_segment_nnz;

extern const struct variant sorted_variants[SORTED_VARIANTS];
extern const struct rows_shape sorted_shapes[SORTED_SHAPES];

/* Plans and opens a run. Returns false if io_uring is unavailable. */
bool open_run(struct rows_run *rows,
              const struct rows_store *made,
              const struct variant *variant,
              enum slc_value_type type,
              const struct slc_files *files);
void close_rows(struct rows_run *rows, const struct rows_store *made);
void open_passes(struct rows_run *rows);
struct slc_row_pass make_pass(struct rows_run *rows, struct rows_solver *solver, bool measures);

/* Returns the largest difference of two matrices, relative to the largest magnitude. */
double rows_distance(const struct slc_matrix *a, const struct slc_matrix *b);
bool same_bits(const struct slc_matrix *a, const struct slc_matrix *b);

/* A request for a plan of row updates. */
struct slc_plan_request rows_request(uint32_t traversals);

#endif
