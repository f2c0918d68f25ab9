/* Allocates and fills dense matrices with padded rows. */
#include "base/matrix.h"

#include "base/memory/checked.h"
#include "base/topology/placement.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Smaller matrices have too few pages to gain from huge pages. */
static const uint64_t huge_pages_from_bytes = UINT64_C(4) << 20;

uint32_t slc_matrix_pitch(enum slc_value_type type, uint32_t cols)
{
    uint32_t line = 64 / slc_value_bytes(type);
    uint32_t pitch = 1;

    if (cols >= line) {
        return (cols + line - 1) / line * line;
    }
    while (pitch < cols) {
        pitch *= 2;
    }
    return pitch;
}

static bool matrix_bytes(enum slc_value_type type, uint64_t rows, uint32_t cols, uint64_t *bytes)
{
    uint64_t row_bytes = (uint64_t)slc_matrix_pitch(type, cols) * slc_value_bytes(type);

    return slc_mul_u64(rows, row_bytes, bytes) && *bytes <= SIZE_MAX / 2;
}

static enum slc_pages matrix_pages(uint64_t bytes)
{
    return bytes >= huge_pages_from_bytes ? SLC_PAGES_HUGE : SLC_PAGES_SMALL;
}

uint64_t slc_matrix_footprint(enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    uint64_t bytes;

    if (!matrix_bytes(type, rows, cols, &bytes)) {
        return UINT64_MAX;
    }
    return slc_buffer_footprint(bytes, matrix_pages(bytes));
}

enum slc_status slc_matrix_create(struct slc_matrix *matrix,
                                  enum slc_value_type type,
                                  uint64_t rows,
                                  uint32_t cols,
                                  struct slc_error *err)
{
    static const struct slc_matrix empty;
    uint64_t bytes;

    *matrix = empty;
    if (!matrix_bytes(type, rows, cols, &bytes)) {
        return slc_fail(err, SLC_ERR_MEMORY,
                        "a matrix of %" PRIu64 " x %" PRIu32 " does not fit in the address space",
                        rows, cols);
    }
    SLC_TRY(slc_buffer_create(&matrix->buffer, (size_t)bytes, matrix_pages(bytes), err));
    /* Spread the pages over all memory nodes, because all workers read all rows. */
    slc_buffer_spread(&matrix->buffer);
    matrix->type = type;
    matrix->rows = rows;
    matrix->cols = cols;
    matrix->pitch = slc_matrix_pitch(type, cols);
    return SLC_OK;
}

void slc_matrix_destroy(struct slc_matrix *matrix)
{
    static const struct slc_matrix empty;

    slc_buffer_destroy(&matrix->buffer);
    *matrix = empty;
}

enum slc_status slc_matrix_refuse(
    const struct slc_matrix *m, uint64_t row, uint64_t col, double value, struct slc_error *err)
{
    const char *beyond = isfinite(value) ? ", beyond the range of f32" : "";

    return m->cols == 1
               ? slc_fail(err, SLC_ERR_INPUT,
                          "number %" PRIu64
                          " of the vector, counting from 1, is %g%s; all numbers must be "
                          "finite",
                          row + 1, value, beyond)
               : slc_fail(err, SLC_ERR_INPUT,
                          "row %" PRIu64 ", column %" PRIu64 ", counting from 1, is %g%s; all "
                          "numbers must be finite",
                          row + 1, col + 1, value, beyond);
}

enum slc_status slc_matrix_create_from(struct slc_matrix *matrix,
                                       enum slc_value_type type,
                                       uint64_t rows,
                                       uint32_t cols,
                                       const double *from,
                                       struct slc_error *err)
{
    enum slc_status status = slc_matrix_create(matrix, type, rows, cols, err);

    for (uint64_t i = 0; i < rows && status == SLC_OK; i++, from += cols) {
        for (uint32_t r = 0; r < cols && status == SLC_OK; r++) {
            if (!isfinite(type == SLC_F64 ? from[r] : (double)(float)from[r])) {
                status = slc_matrix_refuse(matrix, i, r, from[r], err);
            } else if (type == SLC_F64) {
                slc_matrix_row_f64(matrix, i)[r] = from[r];
            } else {
                slc_matrix_row_f32(matrix, i)[r] = (float)from[r];
            }
        }
    }
    if (status != SLC_OK) {
        slc_matrix_destroy(matrix);
    }
    return status;
}

void slc_matrix_get_rows(const struct slc_matrix *m, uint64_t first, uint64_t count, double *to)
{
    for (uint64_t i = first; i < first + count; i++, to += m->cols) {
        if (m->type == SLC_F64) {
            memcpy(to, slc_matrix_row_f64(m, i), m->cols * sizeof *to);
        } else {
            const float *row = slc_matrix_row_f32(m, i);

            for (uint32_t r = 0; r < m->cols; r++) {
                to[r] = (double)row[r];
            }
        }
    }
}
