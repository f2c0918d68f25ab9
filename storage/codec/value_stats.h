/* Statistics of values: range, integers, zeros, and the distinct values if they are few. The
 * statistics of a tensor are those of its tiles, merged in any order. */
#ifndef SLC_STORAGE_VALUE_STATS_H
#define SLC_STORAGE_VALUE_STATS_H

#include <stdbool.h>
#include <stdint.h>

/* Largest number of distinct values that are listed. */
enum { SLC_DISTINCT_MAX = 16 };

struct slc_value_stats {
    /* Number of distinct values: 0 if the statistics are not known or there are no values;
     * SLC_DISTINCT_MAX + 1 if there are more than SLC_DISTINCT_MAX. */
    unsigned distinct;
    bool integers; /* every value is an integer of magnitude <= 2^53 */
    uint64_t zeros;
    double low, high;                /* smallest and largest value */
    double listed[SLC_DISTINCT_MAX]; /* the distinct values, ascending; 0 if there are too many */
};

/* Sets zeros, distinct and listed from `count` finite values; the caller has set the other members.
 * Cost: about a nanosecond per value, or almost nothing if the first values differ. */
void slc_value_stats_collect(struct slc_value_stats *stats, const double *values, uint32_t count);

/* Merges the statistics of other values into *stats. */
void slc_value_stats_merge(struct slc_value_stats *stats, const struct slc_value_stats *other);

/* Returns true if both statistics are equal. */
bool slc_value_stats_same(const struct slc_value_stats *a, const struct slc_value_stats *b);

#endif
