/* Arbitrary bytes as a .npy file. */
#include "fuzz_store.h"

#include <stdlib.h>

#include "storage/model/npy.h"

/* Reading the header alone yields the same shape as reading the whole file. */
static void same_shape(const char *path, uint64_t rows, uint32_t cols)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t told_rows = 0;
    uint32_t told_cols = 0;

    if (slc_npy_shape(NULL, path, rows, &told_rows, &told_cols, &err) != SLC_OK ||
        told_rows != rows || told_cols != cols) {
        abort();
    }
    if (slc_npy_shape(NULL, path, rows + 1, &told_rows, &told_cols, &err) == SLC_OK) {
        abort();
    }
}

/* Reading rows one at a time yields the rows of the whole. */
static void same_rows(const char *path, const struct slc_matrix *matrix)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_npy_rows *rows;
    double *values = malloc((matrix->cols + (size_t)1) * sizeof *values);

    if (values == NULL ||
        slc_npy_rows_open(NULL, path, matrix->rows, matrix->cols, &rows, &err) != SLC_OK) {
        abort();
    }
    for (uint64_t i = 0; i < matrix->rows; i++) {
        if (slc_npy_rows_read(rows, i, 1, values, &err) != SLC_OK) {
            abort();
        }
        for (uint32_t r = 0; r < matrix->cols; r++) {
            if (values[r] != slc_matrix_get(matrix, i, r) && matrix->type == SLC_F64) {
                abort();
            }
        }
    }
    slc_npy_rows_close(rows);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint64_t rows = 0;
    uint32_t cols = 0;

    fuzz_write(fuzz_path("fuzz.npy"), data, bytes);
    for (int variant = 0; variant < 2; variant++) {
        struct slc_matrix matrix = {0};
        struct slc_error err = SLC_ERROR_INIT;

        if (slc_npy_read(NULL, fuzz_path("fuzz.npy"), variant ? SLC_F32 : SLC_F64, variant ? 3 : 0,
                         variant ? 2 : 0, &matrix, &err) == SLC_OK) {
            double sum = 0;

            for (uint64_t i = 0; i < matrix.rows; i++) {
                for (uint32_t r = 0; r < matrix.cols; r++) {
                    sum += slc_matrix_get(&matrix, i, r);
                }
            }
            same_rows(fuzz_path("fuzz.npy"), &matrix);
            same_shape(fuzz_path("fuzz.npy"), matrix.rows, matrix.cols);
            if (matrix.rows > 0) {
                slc_matrix_set(&matrix, 0, 0, sum);
            }
        }
        slc_matrix_destroy(&matrix);
    }
    /* The header of a file may be valid even if the file is rejected. */
    struct slc_error err = SLC_ERROR_INIT;

    if (slc_npy_shape(NULL, fuzz_path("fuzz.npy"), 0, &rows, &cols, &err) == SLC_OK && cols == 0 &&
        rows > 0) {
        abort();
    }
    return 0;
}
