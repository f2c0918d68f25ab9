/* Parses and merges ranges of indices that are kept in a mode. */
#ifndef SLC_CONVERT_RANGES_H
#define SLC_CONVERT_RANGES_H

#include "base/error/error.h"

#include <stdint.h>

/* Most ranges per mode. For more ranges, make several slices. */
enum { SLC_RANGES_MAX = 256 };

/* Indices of a mode (starting at 0) as ascending, disjoint ranges. If `count` is 0, all indices. */
struct slc_ranges {
    unsigned count;
    struct slc_range {
        uint64_t first, last; /* inclusive; UINT64_MAX: up to the end of the mode */
        uint64_t before;      /* number of indices in earlier ranges; set by slc_reshape */
    } range[SLC_RANGES_MAX];
};

/* Parses ranges such as "5,10..20,100..", whose indices start at 1. The ranges may be in any order
 * and are merged if they overlap or touch. Errors: SLC_ERR_USAGE. */
enum slc_status
slc_ranges_parse(const char *text, struct slc_ranges *ranges, struct slc_error *err) SLC_NODISCARD;

/* Sorts the ranges (at least one must exist) and merges ranges that overlap or touch. */
void slc_ranges_unite(struct slc_ranges *ranges);

#endif
