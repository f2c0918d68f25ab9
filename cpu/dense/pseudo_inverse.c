/* Computes a pseudo-inverse by a QR factorization in panels and an SVD of its triangle.
 *
 * Q is never formed. The orthonormal basis A V S^-1 is computed from A itself, which is as accurate
 * as computing it from Q. */
#include "cpu/dense/pseudo_inverse.h"

#include "base/memory/checked.h"

#include <cblas.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

enum {
    PANEL_ROWS = 256,
    LAPACK_WORK = 64 /* numbers of LAPACK's workspace per column: the larger of LAPACK's block
                        sizes, 32 and 64 */
};

struct inverse {
    uint32_t cols;
    /* Number of rows of the stack: the triangle of the previous panels, followed by the rows of one
     * panel. */
    uint64_t height;
    struct slc_buffer memory;
    double *stack;            /* height x cols, column-major */
    double *v, *v_scaled;     /* cols x cols each: V S^-1, row-major, and S^-1 V^T */
    double *values, *tau;     /* cols elements each */
    double *panel;            /* PANEL_ROWS x cols */
    double *work;             /* LAPACK's workspace */
    lapack_int work_elements; /* elements of `work` */
};

static uint64_t stack_height(uint32_t cols)
{
    return cols + slc_max_u64(cols, PANEL_ROWS);
}

static uint64_t scratch_elements(uint32_t cols)
{
    return stack_height(cols) * cols + 2 * (uint64_t)cols * cols + 2 * (uint64_t)cols +
           (uint64_t)PANEL_ROWS * cols + LAPACK_WORK * (uint64_t)cols;
}

uint64_t slc_pseudo_inverse_memory_bytes(uint32_t cols)
{
    return slc_buffer_footprint(scratch_elements(cols) * sizeof(double), SLC_PAGES_SMALL);
}

static enum slc_status create_inverse(struct inverse *work, uint32_t cols, struct slc_error *err)
{
    const uint64_t square = (uint64_t)cols * cols;

    SLC_TRY(slc_buffer_create(&work->memory, scratch_elements(cols) * sizeof(double),
                              SLC_PAGES_SMALL, err));
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

/* Computes the triangle T of A = Q T on top of the stack, with zeros below its diagonal. */
static enum slc_status
compute_triangle(struct inverse *work, const struct slc_matrix *matrix, struct slc_error *err)
{
    const uint32_t cols = work->cols;
    const uint64_t panel_rows = work->height - cols;

    for (uint64_t begin = 0; begin < matrix->rows; begin += panel_rows) {
        const uint64_t rows = slc_min_u64(matrix->rows - begin, panel_rows);

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
            return slc_fail(err, SLC_ERR_NUMERIC, "the QR factorization of a factor failed");
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

/* Computes V S^-1 and S^-1 V^T of T, and sets *independent to the number of significant singular
 * values. */
static enum slc_status
compute_svd(struct inverse *work, uint64_t rows, uint32_t *independent, struct slc_error *err)
{
    const uint32_t cols = work->cols;
    const lapack_int n = (lapack_int)cols;
    double smallest;

    /* LAPACK returns V^T column-major, so its row s is at v_scaled[s], v_scaled[s + cols], .. */
    if (LAPACKE_dgesvd_work(LAPACK_COL_MAJOR, 'N', 'A', n, n, work->stack, (lapack_int)work->height,
                            work->values, NULL, 1, work->v_scaled, n, work->work,
                            work->work_elements) != 0 ||
        !isfinite(work->values[0])) {
        return slc_fail(err, SLC_ERR_NUMERIC, "the singular values of a factor did not converge");
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

/* Replaces the rows of A with the rows of A V S^-1 S^-1 V^T, panel by panel. */
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
    enum slc_status status = create_inverse(&work, matrix->cols, err);

    SLC_THEN(status, compute_triangle(&work, matrix, err));
    SLC_THEN(status, compute_svd(&work, matrix->rows, independent, err));
    if (status == SLC_OK) {
        replace_rows(&work, matrix);
    }
    slc_buffer_destroy(&work.memory);
    return status;
}
