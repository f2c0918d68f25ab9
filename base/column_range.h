/* Smallest and largest of an array of numbers. */
#ifndef SLC_BASE_COLUMN_RANGE_H
#define SLC_BASE_COLUMN_RANGE_H

#include <stdint.h>

/* Extends *smallest and *largest by `count` numbers. Cost: 0.1 to 0.4 ns per number. */
void slc_column_range(const uint64_t *column,
                      uint32_t count,
                      uint64_t *smallest,
                      uint64_t *largest);

/* The same for the bits of the numbers in `mask`. Gathering bits preserves order, so the range of a
 * field of keys is found without gathering all of them. */
void slc_column_range_masked(
    const uint64_t *column, uint32_t count, uint64_t mask, uint64_t *smallest, uint64_t *largest);

#endif
