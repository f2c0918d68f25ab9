/* Ranges of indices, of those that are left of a mode. */
#ifndef SLC_CONVERT_RANGES_H
#define SLC_CONVERT_RANGES_H

#include "base/error/error.h"

#include <stdint.h>

/* More are better made by more than one slice. */
enum { SLC_RANGES_MAX = 256 };

/* Indices of a mode, from 0: ascending ranges with gaps or borders between them. count 0: all. */
struct slc_ranges {
    unsigned count;
    struct slc_range {
        uint64_t first, last; /* both are in it; UINT64_MAX: up to the end of the mode */
        uint64_t before;      /* indices of the ranges before; set by slc_reshape */
    } range[SLC_RANGES_MAX];
};

/*
 * Reads "5,10..20,100.." (counted from 1, in any order; what overlaps is united).
 * Errors: SLC_ERR_USAGE.
 */
enum slc_status
slc_ranges_parse(const char *text, struct slc_ranges *ranges, struct slc_error *err) SLC_NODISCARD;

/* Puts ranges in order and unites what overlaps or touches; there is one at least. */
void slc_ranges_unite(struct slc_ranges *ranges);

#endif
