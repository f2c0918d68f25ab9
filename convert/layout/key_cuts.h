/* Cuts ranges of nonzeros that do not fit in memory into smaller key ranges. Splitters come from a
 * sample of the keys, and the nonzeros of the resulting pieces are counted. The choice of splitters
 * does not affect the output, because pieces are joined again. */
#ifndef SLC_CONVERT_KEY_CUTS_H
#define SLC_CONVERT_KEY_CUTS_H

#include "base/error/error.h"
#include "convert/layout/sorted_gather.h"

#include <stdint.h>

struct slc_key_cuts_options {
    struct slc_gather *gather;
    uint64_t ranges_max; /* maximum number of ranges per scan */
    unsigned key_bits;
    uint64_t most_nnz; /* maximum number of nonzeros per resulting range, 2 or more */
};

/* Replaces *ranges, an allocated array of *count ascending ranges, with ranges of at most most_nnz
 * nonzeros. Adds the number of scans to *scans: none if no range is too large, otherwise two, plus
 * two more whenever some pieces are still too large. Memory: a sample with a few dozen keys per
 * piece. Errors: SLC_ERR_MEMORY; errors of scans. The caller always owns the ranges. */
enum slc_status slc_key_cuts_make(const struct slc_key_cuts_options *options,
                                  struct slc_gather_range **ranges,
                                  uint64_t *count,
                                  unsigned *scans,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
