/* A factor streamed piece by piece: from memory, or from its file some rows at a time. */
#ifndef SLC_REPORT_FACTOR_ROWS_H
#define SLC_REPORT_FACTOR_ROWS_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_factor_rows {
    const struct slc_files *files; /* NULL: the system's */
    const char *path;              /* of the factor, .npy; NULL: it is in memory */
    const struct slc_matrix *matrix;
    uint64_t length; /* its rows */
    uint32_t rank;   /* its columns */
};

/* What slc_factor_rows_each takes. */
uint64_t slc_factor_rows_memory_bytes(uint32_t rank);

/*
 * A factor's columns as pictures see them: cut into bands of about equally many rows, of each of
 * which the smallest and the largest value are kept, so that no peak is lost however long the mode.
 * The factor is in memory, or read from its file some rows at a time.
 */

struct slc_band {
    double low;
    double high;
};

struct slc_column_bands {
    struct slc_factor_rows factor;
    const uint32_t *columns; /* `column_count` of them, from 0 */
    uint32_t column_count;
    uint32_t bands; /* wanted of each column, at least 1 */
};

/* How many bands are delivered of each column: no more than it has rows. */
uint32_t slc_column_bands_count(const struct slc_column_bands *wanted);

/*
 * Fills `found` (column_count x slc_column_bands_count). Of `count` bands the k-th holds the rows
 * from k * length / count, rounded up, to those of the next. Cost: one trip through the factor.
 * Errors: those of slc_npy_rows_read; SLC_ERR_MEMORY. `found` is undefined then.
 */
enum slc_status slc_column_bands_find(const struct slc_column_bands *wanted,
                                      struct slc_band *found,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * The strongest rows of a factor's columns: what a component stands for. The factor is in memory,
 * or read from its file some rows at a time, and a heap per column keeps the best so far, so that
 * memory goes with what is asked for and not with the length of the mode.
 */

struct slc_top_row {
    uint64_t row;
    double value;
};

struct slc_top_rows_query {
    struct slc_factor_rows factor;
    const uint32_t *columns; /* `column_count` of them, from 0 */
    uint32_t column_count;
    uint64_t rows;  /* wanted of each column */
    bool by_signed; /* the largest values, not the largest absolute ones */
};

/* How many rows are delivered of each column: no more than there are. */
uint64_t slc_top_rows_count(const struct slc_top_rows_query *wanted);

/*
 * Fills `found` (column_count x slc_top_rows_count) with the strongest rows of each column, the
 * strongest first, of equal ones the one with the lower number. Cost: one trip through the factor.
 * Errors: those of slc_npy_rows_read; SLC_ERR_MEMORY. `found` is undefined then.
 */
enum slc_status slc_top_rows_find(const struct slc_top_rows_query *wanted,
                                  struct slc_top_row *found,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
