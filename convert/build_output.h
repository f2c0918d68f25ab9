/*
 * From sorted buckets to the block file: joins coordinates that span buckets, cuts tiles by ordinal
 * and extent, encodes them in parallel and appends them in order. What is written depends on the
 * sequence of nonzeros alone: not on buckets, workers or memory.
 */
#ifndef SLC_CONVERT_BUILD_OUTPUT_H
#define SLC_CONVERT_BUILD_OUTPUT_H

#include "base/error.h"
#include "convert/bucket_sort.h"
#include "storage/writer.h"

struct slc_output_options {
    const struct slc_sort_plan *plan; /* borrowed */
    const uint64_t *dims;
    enum slc_codec codec;
    unsigned workers;
    struct slc_writer *writer; /* borrowed */
};

struct slc_output;

/* Memory: an encoder per worker and (workers + 1) * SLC_BUILD_STAGE_BYTES. Takes NULL in destroy.
 */
enum slc_status slc_output_create(const struct slc_output_options *options,
                                  struct slc_output **output,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_output_destroy(struct slc_output *output);

/* The next bucket in key order. `sorted` must stay until slc_output_encode. */
enum slc_status slc_output_add(struct slc_output *output,
                               const struct slc_bucket *bucket,
                               const struct slc_sorted *sorted,
                               struct slc_error *err) SLC_NODISCARD;

/* Encodes and appends every complete tile; afterwards no bucket is borrowed any more. */
enum slc_status slc_output_encode(struct slc_output *output, struct slc_error *err) SLC_NODISCARD;

/* The last tile. */
enum slc_status slc_output_finish(struct slc_output *output, struct slc_error *err) SLC_NODISCARD;

/* Duplicates and zeros met here and in the buckets; seconds of encoding, and of appending therein.
 */
const struct slc_sort_counts *slc_output_counts(const struct slc_output *output);
void slc_output_seconds(const struct slc_output *output, double *encode, double *write);

#endif
