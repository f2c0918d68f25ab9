/* Reads and writes single elements of a matrix, for oracles and tests (see base/meson.build). */
#include "base/matrix.h"

double slc_matrix_get(const struct slc_matrix *m, uint64_t row, uint32_t col)
{
    return m->type == SLC_F32 ? (double)slc_matrix_row_f32(m, row)[col]
                              : slc_matrix_row_f64(m, row)[col];
}

void slc_matrix_set(struct slc_matrix *m, uint64_t row, uint32_t col, double value)
{
    if (m->type == SLC_F32) {
        slc_matrix_row_f32(m, row)[col] = (float)value;
    } else {
        slc_matrix_row_f64(m, row)[col] = value;
    }
}
