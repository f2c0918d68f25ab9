/* Ranges of indices that are kept in a mode. */
#ifndef SLC_CONVERT_RANGES_H
#define SLC_CONVERT_RANGES_H

#include "base/error/error.h"

#include <stdint.h>

/* Limit of ranges per mode. For more ranges, several slices are better. */
enum { SLC_RANGES_MAX = 256 };

/* Indices of a mode, from 0: ascending, disjoint ranges. count 0: all indices. */
struct slc_ranges {
    unsigned count;
    struct slc_range {
        uint64_t first, last; /* inclusive; UINT64_MAX: up to the end of the mode */
        uint64_t before;      /* indices in earlier ranges; set by slc_reshape */
    } range[SLC_RANGES_MAX];
};

/* Parses "5,10..20,100.." (counted from 1, in any order; overlapping ranges are merged). Errors:
 * SLC_ERR_USAGE. */
enum slc_status
slc_ranges_parse(const char *text, struct slc_ranges *ranges, struct slc_error *err) SLC_NODISCARD;

/* Sorts ranges and merges those that overlap or touch; there must be at least one. */
void slc_ranges_unite(struct slc_ranges *ranges);

#endif
