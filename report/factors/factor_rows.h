/* Reads a factor from memory or a file in small parts, finds the top rows of its columns, and
 * divides columns into bands for pictures. */
#ifndef SLC_REPORT_FACTOR_ROWS_H
#define SLC_REPORT_FACTOR_ROWS_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_factor_rows {
    const struct slc_files *files; /* NULL means the operating system */
    const char *path;              /* path of the factor's .npy file; NULL means `matrix` */
    const struct slc_matrix *matrix;
    uint64_t length; /* number of rows */
    uint32_t rank;   /* number of columns */
};

/* Returns the bytes of memory that the functions below allocate. */
uint64_t slc_factor_rows_memory_bytes(uint32_t rank);

/* A band of rows of a column, for pictures. The bands of a column have about the same number of
 * rows. A band stores the smallest and the largest value of the rows, so that no peak is lost in a
 * large mode. */

struct slc_band {
    double low;
    double high;
};

struct slc_column_bands {
    struct slc_factor_rows factor;
    const uint32_t *columns; /* numbers of `column_count` columns, from 0 */
    uint32_t column_count;
    uint32_t bands; /* number of bands per column, at least 1 */
};

/* Returns the number of bands per column: query->bands, but at most the number of rows. */
uint32_t slc_column_bands_count(const struct slc_column_bands *query);

/* Fills `found` (column_count x slc_column_bands_count) with the bands of each column. If a column
 * has `count` bands, band k has the rows from k * length / count, rounded up, to the start of the
 * next band. Cost: reads the factor once. Errors: those of slc_npy_rows_read; SLC_ERR_MEMORY. On
 * error, `found` is undefined. */
enum slc_status slc_column_bands_find(const struct slc_column_bands *query,
                                      struct slc_band *found,
                                      struct slc_error *err) SLC_NODISCARD;

/* Top rows of the columns of a factor. The top rows of a column characterize a component. A heap
 * per column has the top rows so far, so that memory depends on the number of rows requested, not
 * on the mode size. */

struct slc_top_row {
    uint64_t row;
    double value;
};

struct slc_top_rows_query {
    struct slc_factor_rows factor;
    const uint32_t *columns; /* numbers of `column_count` columns, from 0 */
    uint32_t column_count;
    uint64_t rows;  /* number of top rows per column */
    bool by_signed; /* true selects the largest values, false the largest magnitudes */
};

/* Returns the number of top rows per column: query->rows, but at most the number of rows. */
uint64_t slc_top_rows_count(const struct slc_top_rows_query *query);

/* Fills `found` (column_count x slc_top_rows_count) with the top rows of each column in descending
 * order. Of two rows with equal values, the row with the lower number comes first. Cost: reads the
 * factor once. Errors: those of slc_npy_rows_read; SLC_ERR_MEMORY. On error, `found` is
 * undefined. */
enum slc_status slc_top_rows_find(const struct slc_top_rows_query *query,
                                  struct slc_top_row *found,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
