/*
 * A factor's columns as pictures see them: cut into bands of about equally many rows, of each of
 * which the smallest and the largest value are kept, so that no peak is lost however long the mode.
 * The factor is in memory, or read from its file some rows at a time.
 */
#ifndef SLC_REPORT_COLUMN_BANDS_H
#define SLC_REPORT_COLUMN_BANDS_H

#include "base/error/error.h"
#include "report/factors/factor_rows.h"

#include <stdint.h>

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

#endif
