/*
 * Splits a bucket that is larger than a sort area (or all buckets, if they were formed under the
 * wrong index base or fiber run): samples its chunks, chooses splitters, and scatters its entries
 * again. Splitters are whole ordinals, (key, sequence, position), so even a single coordinate with
 * more duplicates than fit memory is split, in input order, and every split makes progress.
 */
#ifndef SLC_CONVERT_BUILD_SPLIT_H
#define SLC_CONVERT_BUILD_SPLIT_H

#include "base/error/error.h"
#include "convert/build/bucket_sort.h"

#include <stdint.h>

struct slc_split_options {
    const struct slc_sort_plan *plan;
    unsigned workers;
    uint64_t area_bytes; /* area for sorting one bucket; the parts must fit it */
    void *memory;        /* workers * area_bytes, scratch */
    uint64_t memory_bytes;
    uint8_t *const *chunk_data; /* SLC_BUILD_FETCH_BYTES per worker */
};

/*
 * Splits the union of `count` buckets into *parts (new memory, slc_free) in key order. If a single
 * bucket is too large for an area, each of its parts is smaller than the bucket. The first part
 * inherits lower_shared of the first bucket, the last part upper_shared of the last. Errors: as
 * slc_spill_append and slc_spill_fetch.
 */
enum slc_status slc_build_split(const struct slc_split_options *options,
                                const struct slc_bucket *buckets,
                                uint32_t count,
                                struct slc_bucket **parts,
                                uint32_t *part_count,
                                struct slc_error *err) SLC_NODISCARD;

#endif
