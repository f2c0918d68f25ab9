/* Splits a bucket that is larger than a sort area, or all buckets together if they were formed
 * under the wrong index base or fiber run. Samples the chunks, chooses splitters, and scatters the
 * entries again. A splitter is a position (key, sequence, ordinal) in the sort order. Therefore
 * even a single coordinate with more duplicates than fit in memory is split, in input order, and
 * every split makes progress. */
#ifndef SLC_CONVERT_BUILD_SPLIT_H
#define SLC_CONVERT_BUILD_SPLIT_H

#include "base/error/error.h"
#include "convert/build/bucket_sort.h"

#include <stdint.h>

struct slc_split_options {
    const struct slc_sort_plan *plan;
    unsigned workers;
    uint64_t area_bytes; /* size of a sort area, which each part should fit */
    void *memory;        /* scratch */
    uint64_t memory_bytes;
    uint8_t *const *chunk_data; /* SLC_BUILD_FETCH_BYTES per worker */
};

/* Splits `count` consecutive buckets together into *parts, in key order (new memory; free it with
 * slc_free). If `count` is 1, each part is smaller than the bucket. The first part inherits
 * lower_shared from the first bucket, and the last part inherits upper_shared from the last bucket.
 * Errors: those of slc_spill_append and slc_spill_fetch. */
enum slc_status slc_build_split(const struct slc_split_options *options,
                                const struct slc_bucket *buckets,
                                uint32_t count,
                                struct slc_bucket **parts,
                                uint32_t *part_count,
                                struct slc_error *err) SLC_NODISCARD;

#endif
