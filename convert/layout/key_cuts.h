/*
 * Cuts ranges of nonzeros that are too large for memory by their keys. Splitters come from a sample
 * of the keys, and the resulting pieces are counted. The exact splitters do not affect the output,
 * since pieces are joined again.
 */
#ifndef SLC_CONVERT_KEY_CUTS_H
#define SLC_CONVERT_KEY_CUTS_H

#include "base/error/error.h"
#include "convert/layout/sorted_gather.h"

#include <stdint.h>

struct slc_key_cuts_options {
    struct slc_gather *gather;
    uint64_t ranges_max; /* limit of ranges per scan */
    unsigned key_bits;
    uint64_t most_nnz; /* of a range, 2 or more */
};

/*
 * Replaces *ranges (allocated, `count` of them, ascending) by ranges of at most most_nnz nonzeros,
 * and adds the number of scans to *scans: none if no range is too large, else two, plus two for
 * every sample that misled. Memory: a sample of some dozens of keys per piece. Errors:
 * SLC_ERR_MEMORY; those of scans. The caller owns the ranges after an error, too.
 */
enum slc_status slc_key_cuts_make(const struct slc_key_cuts_options *options,
                                  struct slc_gather_range **ranges,
                                  uint64_t *count,
                                  unsigned *scans,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
