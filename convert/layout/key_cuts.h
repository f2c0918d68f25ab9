/*
 * Cuts ranges of nonzeros that are too large for memory by their keys. Splitters come from a sample
 * of the keys themselves, and the pieces are counted; what a splitter is hardly matters, for pieces
 * are put together again.
 */
#ifndef SLC_CONVERT_KEY_CUTS_H
#define SLC_CONVERT_KEY_CUTS_H

#include "base/error/error.h"
#include "convert/layout/sorted_gather.h"

#include <stdint.h>

struct slc_key_cuts_options {
    struct slc_gather *gather;
    uint64_t ranges_max; /* that it takes in one call */
    unsigned key_bits;
    uint64_t most_nnz; /* of a range, 2 or more */
};

/*
 * Replaces *ranges (allocated, `count` of them, ascending) by as many as it takes to have none with
 * more than most_nnz nonzeros, and adds the scans that took to *scans: none where no range is too
 * large, else two, and two more for every time that a sample misled.
 * Memory: a sample of some dozens of keys for each piece. Errors: SLC_ERR_MEMORY; those of scans.
 * The ranges are the caller's after one, too.
 */
enum slc_status slc_key_cuts_make(const struct slc_key_cuts_options *options,
                                  struct slc_gather_range **ranges,
                                  uint64_t *count,
                                  unsigned *scans,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
