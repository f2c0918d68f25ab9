/* Sorts nonzeros stored in columns (separate arrays of key words and values) by ascending key. The
 * radix sort starts at the most significant digit and moves nonzeros between two sets of columns.
 * Keys must be distinct. Upper bits on which all keys agree are skipped. */
#ifndef SLC_CONVERT_COLUMN_SORT_H
#define SLC_CONVERT_COLUMN_SORT_H

#include "base/key.h"

#include <stddef.h>
#include <stdint.h>

struct slc_key_columns {
    uint64_t *lo, *hi; /* hi: NULL if keys have at most 64 bits */
    double *values;
};

/* Returns the key of nonzero `i`. */
static inline slc_u128 slc_key_columns_get(struct slc_key_columns columns, uint64_t i)
{
    return slc_key_join(columns.lo[i], columns.hi == NULL ? 0 : columns.hi[i]);
}

/* Returns the same columns, starting at nonzero `at`. */
static inline struct slc_key_columns slc_key_columns_from(struct slc_key_columns columns,
                                                          uint64_t at)
{
    return (struct slc_key_columns){
        columns.lo + at, columns.hi == NULL ? columns.hi : columns.hi + at, columns.values + at};
}

/* Sorts `count` nonzeros in `columns`; `scratch` has the same size. */
void slc_column_sort(struct slc_key_columns columns,
                     struct slc_key_columns scratch,
                     uint64_t count);

#endif
