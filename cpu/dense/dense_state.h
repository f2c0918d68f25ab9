/* Scratch and division of rows, which the files of dense algebra share.
 * Rows are divided into panels, and the panels into at most SLC_DENSE_GROUPS groups. The division
 * depends only on the number of rows and the rank. Each group sums its panels in order, and the
 * groups are added in order. Therefore the order of additions is the same for any number of
 * workers, and partial results need bounded memory for any number of rows. */
#ifndef SLC_CPU_DENSE_STATE_H
#define SLC_CPU_DENSE_STATE_H

#include "base/memory/memory.h"
#include "cpu/dense/dense.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_DENSE_GROUPS = 64,
    /* Number of columns of a block of a Gram matrix, so that 128 x 128 sums and two panels stay in
     * the cache. */
    SLC_GRAM_BLOCK = 128,
    SLC_GRAM_ROWS = 512,
    /* Largest number of elements (1 MiB) and rows of a panel. */
    SLC_PANEL_ELEMENTS = 131072,
    SLC_PANEL_ROWS = 1024,
    /* Maximum number of elements of all partial Gram matrices: 8 MiB, unless one Gram matrix is
     * larger. */
    SLC_GRAM_ELEMENTS = 1048576,
    /* Number of elements per column: two partial results per group. The same memory is used for
     * eigenvalues and LAPACK's workspace. */
    SLC_COLUMN_ELEMENTS = 2 * SLC_DENSE_GROUPS
};

struct slc_dense {
    unsigned workers;
    uint32_t rank_max;
    uint64_t rows_max;
    struct slc_buffer buffer;
    double *grams;           /* partial Gram matrices, or eigenvectors */
    double *columns;         /* SLC_COLUMN_ELEMENTS per column */
    double *panels;          /* two panels per worker */
    uint64_t panel_elements; /* elements per panel */
};

/* Division of rows into groups of panels. */
struct slc_row_cut {
    uint64_t rows;
    uint64_t panel_rows;
    uint64_t group_rows; /* a multiple of panel_rows */
    uint64_t groups;
};

struct slc_row_cut slc_row_cut(uint64_t rows, uint64_t panel_rows, uint64_t groups_max);

static inline uint64_t slc_group_end(const struct slc_row_cut *cut, uint64_t group)
{
    const uint64_t end = (group + 1) * cut->group_rows;

    return end < cut->rows ? end : cut->rows;
}

static inline uint64_t slc_panel_end(const struct slc_row_cut *cut, uint64_t row, uint64_t limit)
{
    const uint64_t end = row + cut->panel_rows;

    return end < limit ? end : limit;
}

/* Returns the number of rows of a panel that has all `cols` columns. */
uint64_t slc_panel_rows(uint32_t cols);

/* Returns one of the worker's two panels. */
static inline double *
slc_dense_panel(const struct slc_dense *dense, unsigned worker, unsigned which)
{
    return dense->panels + (2 * (uint64_t)worker + which) * dense->panel_elements;
}

/* Checks a matrix. Errors: SLC_ERR_USAGE if it exceeds the size for which scratch was created. */
enum slc_status slc_dense_check(const struct slc_dense *dense,
                                const struct slc_matrix *matrix,
                                struct slc_error *err) SLC_NODISCARD;

/* Loads columns [column, column + cols) of rows [begin, end) as contiguous f64. */
void slc_dense_load(const struct slc_matrix *matrix,
                    uint64_t begin,
                    uint64_t end,
                    uint32_t column,
                    uint32_t cols,
                    double *to);
/* Stores contiguous f64 in rows [begin, end). */
void slc_dense_store(struct slc_matrix *matrix, uint64_t begin, uint64_t end, const double *from);

/* Solve rows with solver->rows: slc_dense_apply rows [begin, end) on one worker,
 * slc_dense_apply_all all rows. Shapes have been checked. Errors: those of the row solver. */
enum slc_status slc_dense_apply(struct slc_dense *dense,
                                const struct slc_solver *solver,
                                const struct slc_matrix *mttkrp,
                                struct slc_matrix *factor,
                                uint64_t begin,
                                uint64_t end,
                                unsigned worker,
                                struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_dense_apply_all(struct slc_dense *dense,
                                    const struct slc_solver *solver,
                                    const struct slc_matrix *mttkrp,
                                    struct slc_matrix *factor,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
