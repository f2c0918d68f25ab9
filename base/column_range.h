/* Smallest and largest of many numbers. */
#ifndef SLC_BASE_COLUMN_RANGE_H
#define SLC_BASE_COLUMN_RANGE_H

#include <stdint.h>

/* Widens *smallest and *largest by `count` numbers. Cost: 0.1 to 0.4 ns each. */
void slc_column_range(const uint64_t *column,
                      uint32_t count,
                      uint64_t *smallest,
                      uint64_t *largest);

#endif
