/*
 * The strongest rows of a factor's columns: what a component stands for. The factor is in memory,
 * or read from its file some rows at a time, and a heap per column keeps the best so far, so that
 * memory goes with what is asked for and not with the length of the mode.
 */
#ifndef SLC_REPORT_TOP_ROWS_H
#define SLC_REPORT_TOP_ROWS_H

#include "base/error/error.h"
#include "report/factors/factor_rows.h"

#include <stdbool.h>
#include <stdint.h>

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
