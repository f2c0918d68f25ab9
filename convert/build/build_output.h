/*
 * From sorted buckets to tiles: joins coordinates that span buckets, cuts tiles by ordinal and
 * extent and lists them for encoding. What is written depends on the sequence of nonzeros alone:
 * not on buckets, workers or memory. Called by one thread at a time.
 */
#ifndef SLC_CONVERT_BUILD_OUTPUT_H
#define SLC_CONVERT_BUILD_OUTPUT_H

#include "base/error/error.h"
#include "convert/build/bucket_sort.h"
#include "convert/build/build_progress.h"
#include "convert/build/build_tiles.h"

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
