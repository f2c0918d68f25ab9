/*
 * How far a build that can be resumed has come in sorting: what is known of all nonzeros in and
 * before a bucket, as of those that its push filled. The nonzeros themselves are in the block file,
 * whose own journal says which of them are safe (storage/block/writer.h): a later run takes the
 * last fact about no more than these, begins behind its bucket, and leaves out the nonzeros that
 * are in the file beyond it.
 */
#ifndef SLC_CONVERT_BUILD_PROGRESS_H
#define SLC_CONVERT_BUILD_PROGRESS_H

#include "base/error/error.h"
#include "convert/build/bucket_sort.h"
#include "convert/build/sort/splitters.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_build_fact {
    uint32_t buckets; /* the first so many */
    uint64_t nnz;     /* that they have, duplicates combined and zeros dropped */
    struct slc_sort_counts counts;
};

struct slc_build_progress {
    const struct slc_files *files; /* NULL: nothing is noted */
    const char *folder;            /* borrowed */
    uint64_t tag;                  /* of the build: facts of another do not count */
    double seconds;                /* between two states */
    uint64_t saved_ns;
    uint32_t count;
    struct slc_build_fact facts[SLC_BUCKETS_MAX];
};

/*
 * Reads what an earlier run noted, and keeps what is about at most `kept_nnz` nonzeros. *fact: the
 * last of these, all zero where there is none. Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status slc_build_progress_load(struct slc_build_progress *progress,
                                        uint64_t kept_nnz,
                                        struct slc_build_fact *fact,
                                        struct slc_error *err) SLC_NODISCARD;

/* Adds a fact, and saves all when it is time. Errors: as slc_state_save. */
enum slc_status slc_build_progress_add(struct slc_build_progress *progress,
                                       const struct slc_build_fact *fact,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
