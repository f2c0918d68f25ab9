/* Streams a factor from memory or a file: finds the top rows of its columns, and cuts columns into
 * bands for pictures. */
#ifndef SLC_REPORT_FACTOR_ROWS_H
#define SLC_REPORT_FACTOR_ROWS_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_factor_rows {
    const struct slc_files *files; /* NULL: the operating system */
    const char *path;              /* of the factor, .npy; NULL: `matrix` */
    const struct slc_matrix *matrix;
    uint64_t length; /* number of rows */
    uint32_t rank;   /* number of columns */
};

/* Returns the memory of the functions below. */
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
    const uint32_t *columns; /* `column_count` of them, from 0 */
    uint32_t column_count;
    uint32_t bands; /* per column, at least 1 */
};

/* Returns the number of bands per column: query->bands, but at most the number of rows. */
uint32_t slc_column_bands_count(const struct slc_column_bands *query);

/*
 * Fills `found` (column_count x slc_column_bands_count). If a column has `count` bands, band k has
 * the rows from k * length / count, rounded up, to the start of the next band. Cost: reads the
 * factor once. Errors: those of slc_npy_rows_read; SLC_ERR_MEMORY. `found` is then undefined.
 */
enum slc_status slc_column_bands_find(const struct slc_column_bands *query,
                                      struct slc_band *found,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Top rows of the columns of a factor, which characterize a component. The factor is streamed and a
 * heap per column keeps the top rows so far, so that memory depends on the number of rows
 * requested, not on the mode size.
 */

struct slc_top_row {
    uint64_t row;
    double value;
};

struct slc_top_rows_query {
    struct slc_factor_rows factor;
    const uint32_t *columns; /* `column_count` of them, from 0 */
    uint32_t column_count;
    uint64_t rows;  /* per column */
    bool by_signed; /* the largest values, not the largest magnitudes */
};

/* Returns the number of top rows per column: query->rows, but at most the number of rows. */
uint64_t slc_top_rows_count(const struct slc_top_rows_query *query);

/*
 * Fills `found` (column_count x slc_top_rows_count) with the top rows of each column in descending
 * order; of equal values the lower row comes first. Cost: reads the factor once. Errors: those of
 * slc_npy_rows_read; SLC_ERR_MEMORY. `found` is then undefined.
 */
enum slc_status slc_top_rows_find(const struct slc_top_rows_query *query,
                                  struct slc_top_row *found,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
