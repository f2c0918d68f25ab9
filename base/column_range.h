/* Smallest and largest of many numbers. */
#ifndef SLC_BASE_COLUMN_RANGE_H
#define SLC_BASE_COLUMN_RANGE_H

#include <stdint.h>

/* Widens *smallest and *largest by `count` numbers. Cost: 0.1 to 0.4 ns each. */
void slc_column_range(const uint64_t *column,
                      uint32_t count,
                      uint64_t *smallest,
                      uint64_t *largest);

/*
 * The same of what the numbers have in `mask`. As gathering bits keeps their order, the ends of a
 * field of keys are found without gathering all of them.
 */
void slc_column_range_masked(
    const uint64_t *column, uint32_t count, uint64_t mask, uint64_t *smallest, uint64_t *largest);

#endif
