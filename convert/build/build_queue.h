/*
 * Buckets still to be written, in key order. One that is split has its parts on a level of their
 * own, above what comes after it.
 */
#ifndef SLC_CONVERT_BUILD_QUEUE_H
#define SLC_CONVERT_BUILD_QUEUE_H

#include "convert/build/bucket_sort.h"
#include "convert/build/builder_internal.h"

struct slc_build_level {
    struct slc_build_level *below;
    struct slc_bucket *buckets;
    uint32_t count;
    uint32_t next;
};

/* Owns: slc_build_queue_clear; all zeros is empty. */
struct slc_build_queue {
    struct slc_build_level *top;
};

/*
 * The buckets that the push filled, with the keys that each may hold, become the first level; the
 * builder's buffers are given back. Adds to *filled how many have entries. `regroup`: they were cut
 * for other keys, so that each may hold any. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_build_queue_take(struct slc_build_queue *queue,
                                     struct slc_builder *builder,
                                     const struct slc_key_layout *layout,
                                     bool regroup,
                                     uint64_t *filled,
                                     struct slc_error *err) SLC_NODISCARD;

/* Buckets before all others; takes them (slc_free), after an error too. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_build_queue_push(struct slc_build_queue *queue,
                                     struct slc_bucket *buckets,
                                     uint32_t count,
                                     struct slc_error *err) SLC_NODISCARD;

/* The next bucket, NULL at the end. It stays on its level until `next` of that is moved. */
struct slc_bucket *slc_build_queue_front(struct slc_build_queue *queue);

void slc_build_queue_clear(struct slc_build_queue *queue);

#endif
