/*
 * Splitting a bucket that is larger than a sort area (or all buckets, when they were formed under
 * the wrong index base): its chunks are sampled, splitters chosen, and its entries scattered once
 * more. Splitters are whole ordinals, (key, sequence, position), so even a single coordinate that
 * repeats beyond memory is split, in input order, and every split makes progress.
 */
#ifndef SLC_CONVERT_BUILD_SPLIT_H
#define SLC_CONVERT_BUILD_SPLIT_H

#include "base/error/error.h"
#include "convert/build/bucket_sort.h"

#include <stdint.h>

struct slc_split_options {
    const struct slc_sort_plan *plan;
    unsigned workers;
    uint64_t area_bytes; /* of one bucket's sort: what the parts have to fit */
    void *memory;        /* workers * area_bytes, scratch */
    uint64_t memory_bytes;
    uint8_t *const *chunk_data; /* SLC_BUILD_FETCH_BYTES per worker */
};

/*
 * Splits the union of `count` buckets into *parts (fresh memory, slc_free) in key order. A single
 * bucket too large for an area gives parts that are all smaller than it. The first inherits the
 * first one's lower_shared, the last the last one's upper_shared. Errors: as slc_spill_append and
 * slc_spill_fetch.
 */
enum slc_status slc_build_split(const struct slc_split_options *options,
                                const struct slc_bucket *buckets,
                                uint32_t count,
                                struct slc_bucket **parts,
                                uint32_t *part_count,
                                struct slc_error *err) SLC_NODISCARD;

#endif
