/*
 * See pseudo_inverse.h.
 *
 * Q is never formed: A V S^-1 is the orthonormal basis that matters, from A itself, and has lost no
 * more than forming it would have.
 */
#include "cpu/dense/pseudo_inverse.h"

#include "base/memory/checked.h"

#include <cblas.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

enum {
    PANEL_ROWS = 256,
    LAPACK_WORK = 64 /* numbers per column: its blocks are 32 or 64 wide */
};

struct inverse {
    uint32_t cols;
    uint64_t height; /* of the stack: what the panels before have left, and a panel */
    struct slc_buffer memory;
    double *stack;            /* height x cols, column-major */
    double *v, *v_scaled;     /* cols x cols: V S^-1 row-major, and S^-1 V^T */
    double *values, *tau;     /* cols each */
    double *panel;            /* PANEL_ROWS x cols */
    double *work;             /* LAPACK's */
    lapack_int work_elements; /* of it */
};

static uint64_t stack_height(uint32_t cols)
{
    return cols + slc_max_u64(cols, PANEL_ROWS);
}

static uint64_t elements(uint32_t cols)
{
    return stack_height(cols) * cols + 2 * (uint64_t)cols * cols + 2 * (uint64_t)cols +
           (uint64_t)PANEL_ROWS * cols + LAPACK_WORK * (uint64_t)cols;
}

uint64_t slc_pseudo_inverse_memory_bytes(uint32_t cols)
{
    return slc_buffer_footprint(elements(cols) * sizeof(double), SLC_PAGES_SMALL);
}

static enum slc_status inverse_create(struct inverse *work, uint32_t cols, struct slc_error *err)
{
    const uint64_t square = (uint64_t)cols * cols;

    SLC_TRY(
        slc_buffer_create(&work->memory, elements(cols) * sizeof(double), SLC_PAGES_SMALL, err));
    work->cols = cols;
    work->height = stack_height(cols);
    work->stack = work->memory.data;
    work->v = work->stack + work->height * cols;
    work->v_scaled = work->v + square;
    work->values = work->v_scaled + square;
    work->tau = work->values + cols;
    work->panel = work->tau + cols;
    work->work = work->panel + (uint64_t)PANEL_ROWS * cols;
    work->work_elements = (lapack_int)(LAPACK_WORK * cols);
    return SLC_OK;
}

/* The triangle T of A = Q T, on top of the stack, zeros below its diagonal. */
static enum slc_status
triangle(struct inverse *work, const struct slc_matrix *matrix, struct slc_error *err)
{
    const uint32_t cols = work->cols;
    const uint64_t room = work->height - cols;

    for (uint64_t begin = 0; begin < matrix->rows; begin += room) {
        const uint64_t rows = slc_min_u64(matrix->rows - begin, room);

        for (uint32_t r = 0; r < cols; r++) {
            double *column = work->stack + r * work->height;

            for (uint64_t i = r + UINT64_C(1); i < cols; i++) {
                column[i] = 0.0;
            }
            for (uint64_t i = 0; i < rows; i++) {
                column[cols + i] = slc_matrix_row_f64(matrix, begin + i)[r];
            }
        }
        if (LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, (lapack_int)(cols + rows), (lapack_int)cols,
                                work->stack, (lapack_int)work->height, work->tau, work->work,
                                work->work_elements) != 0) {
            return slc_fail(err, SLC_ERR_NUMERIC, "a factor could not be made orthogonal");
        }
    }
    for (uint32_t r = 0; r < cols; r++) {
        double *column = work->stack + r * work->height;

        for (uint64_t i = r + UINT64_C(1); i < cols; i++) {
            column[i] = 0.0;
        }
    }
    return SLC_OK;
}

/* V S^-1 and S^-1 V^T of T; returns how many singular values count in *independent. */
static enum slc_status
decompose(struct inverse *work, uint64_t rows, uint32_t *independent, struct slc_error *err)
{
    const uint32_t cols = work->cols;
    const lapack_int n = (lapack_int)cols;
    double smallest;

    /* Column-major V^T, so row s of it is at v_scaled[s], v_scaled[s + cols], .. */
    if (LAPACKE_dgesvd_work(LAPACK_COL_MAJOR, 'N', 'A', n, n, work->stack, (lapack_int)work->height,
                            work->values, NULL, 1, work->v_scaled, n, work->work,
                            work->work_elements) != 0 ||
        !isfinite(work->values[0])) {
        return slc_fail(err, SLC_ERR_NUMERIC, "the singular values of a factor were not found");
    }
    smallest = work->values[0] * DBL_EPSILON * (double)slc_max_u64(rows, cols);
    *independent = 0;
    for (uint32_t s = 0; s < cols; s++) {
        const bool counts = work->values[s] > smallest && work->values[s] >= DBL_MIN;
        const double scale = counts ? 1.0 / work->values[s] : 0.0;

        *independent += counts;
        for (uint32_t r = 0; r < cols; r++) {
            work->v[(uint64_t)r * cols + s] = scale * work->v_scaled[s + (uint64_t)r * cols];
        }
    }
    for (uint32_t s = 0; s < cols; s++) {
        for (uint32_t r = 0; r < cols; r++) {
            work->v_scaled[(uint64_t)s * cols + r] = work->v[(uint64_t)r * cols + s];
        }
    }
    return SLC_OK;
}

/* A V S^-1 S^-1 V^T, a panel at a time. */
static void replace_rows(struct inverse *work, struct slc_matrix *matrix)
{
    const int cols = (int)work->cols;

    for (uint64_t begin = 0; begin < matrix->rows; begin += PANEL_ROWS) {
        const int rows = (int)slc_min_u64(matrix->rows - begin, PANEL_ROWS);
        double *row = slc_matrix_row_f64(matrix, begin);

        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, cols, cols, 1.0, row,
                    (int)matrix->pitch, work->v, cols, 0.0, work->panel, cols);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, cols, cols, 1.0, work->panel,
                    cols, work->v_scaled, cols, 0.0, row, (int)matrix->pitch);
    }
}

enum slc_status
slc_pseudo_inverse(struct slc_matrix *matrix, uint32_t *independent, struct slc_error *err)
{
    struct inverse work = {.memory = SLC_BUFFER_INIT};
    enum slc_status status = inverse_create(&work, matrix->cols, err);

    SLC_THEN(status, triangle(&work, matrix, err));
    SLC_THEN(status, decompose(&work, matrix->rows, independent, err));
    if (status == SLC_OK) {
        replace_rows(&work, matrix);
    }
    slc_buffer_destroy(&work.memory);
    return status;
}
