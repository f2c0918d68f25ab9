/*
 * From sorted buckets to tiles: joins coordinates that span buckets, cuts tiles by ordinal and
 * extent and lists them for encoding. What is written depends on the sequence of nonzeros alone:
 * not on buckets, workers or memory. Called by one thread at a time.
 */
#ifndef SLC_CONVERT_BUILD_OUTPUT_H
#define SLC_CONVERT_BUILD_OUTPUT_H

#include "base/error/error.h"
#include "convert/build/bucket_sort.h"
#include "convert/build/build_tiles.h"
#include "convert/build/sort/splitters.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How far a build that can be resumed has come in sorting: what is known of all nonzeros in and
 * before a bucket, as of those that its push filled. The nonzeros themselves are in the block file,
 * whose own journal says which of them are safe (storage/block/writer.h): a later run takes the
 * last fact about no more than these, begins behind its bucket, and leaves out the nonzeros that
 * are in the file beyond it.
 */
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

struct slc_output_options {
    const struct slc_sort_plan *plan; /* borrowed */
    const uint64_t *dims;
    unsigned workers;
    struct slc_tiles *tiles; /* borrowed */
    /* Of a build that can be resumed: what is known of the buckets before the first that comes, ..
     */
    struct slc_build_fact fact;
    /* .. and how many nonzeros behind these are in the file already, and the key of the last. */
    uint64_t written;
    slc_u128 last_key;
    struct slc_build_progress *progress; /* where to note what is done; NULL: nowhere */
};

struct slc_output;

/* Memory: (workers + 1) * SLC_BUILD_STAGE_BYTES. Takes NULL in destroy. */
enum slc_status slc_output_create(const struct slc_output_options *options,
                                  struct slc_output **output,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_output_destroy(struct slc_output *output);

/*
 * The next bucket in key order. `sorted` must stay until *borrowed (convert/build/build_tiles.h),
 * which this call may only raise, is 0. `worker` may have to encode meanwhile. Errors:
 * SLC_ERR_DAMAGED where nonzeros are not those that are in the file already.
 */
enum slc_status slc_output_add(struct slc_output *output,
                               unsigned worker,
                               const struct slc_bucket *bucket,
                               const struct slc_sorted *sorted,
                               uint32_t *borrowed,
                               struct slc_error *err) SLC_NODISCARD;

/* The last tile; returns when all are in the file. No other thread is active any more. */
enum slc_status slc_output_finish(struct slc_output *output, struct slc_error *err) SLC_NODISCARD;

/* Duplicates and zeros met here and in the buckets. */
const struct slc_sort_counts *slc_output_counts(const struct slc_output *output);

#endif
