/*
 * Turns sorted buckets into tiles: joins coordinates that span buckets, ends tiles by number of
 * nonzeros and by extent, and queues them for encoding. The output depends only on the sequence of
 * nonzeros, not on buckets, workers or memory. Threads: one at a time.
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
 * Progress of the sort of a resumable build: counts of all nonzeros up to the end of a push bucket.
 * The nonzeros themselves are in the block file, whose journal records which of them are safe
 * (storage/block/writer.h). A resumed run uses the last fact that covers only safe nonzeros,
 * continues after that fact's last bucket, and skips the nonzeros that the file already holds
 * beyond the fact.
 */
struct slc_build_fact {
    uint32_t buckets; /* number of buckets covered */
    uint64_t nnz;     /* in these buckets, after combining duplicates and dropping zeros */
    struct slc_sort_counts counts;
};

struct slc_build_progress {
    const struct slc_files *files; /* NULL: progress is not recorded */
    const char *folder;            /* borrowed */
    uint64_t tag;                  /* identifies the build: facts with another tag are ignored */
    double seconds;                /* minimum time between two saves */
    uint64_t saved_ns;
    uint32_t count;
    struct slc_build_fact facts[SLC_BUCKETS_MAX];
};

/* Reads the facts of an earlier run and keeps those that cover at most `kept_nnz` nonzeros. *fact:
 * the last fact kept; all zero if there is none. Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_build_progress_load(struct slc_build_progress *progress,
                                        uint64_t kept_nnz,
                                        struct slc_build_fact *fact,
                                        struct slc_error *err) SLC_NODISCARD;

/* Adds a fact, and saves all facts if `seconds` have passed since the last save. Errors: as
 * slc_state_save. */
enum slc_status slc_build_progress_add(struct slc_build_progress *progress,
                                       const struct slc_build_fact *fact,
                                       struct slc_error *err) SLC_NODISCARD;

struct slc_output_options {
    const struct slc_sort_plan *plan; /* borrowed */
    const uint64_t *dims;
    unsigned workers;
    struct slc_tiles *tiles; /* borrowed */
    /* Resumable builds: the fact that covers all buckets before the first bucket to be added. */
    struct slc_build_fact fact;
    /* Number of nonzeros beyond `fact` that are already in the file, and the key of the last
     * nonzero in the file. */
    uint64_t written;
    slc_u128 last_key;
    struct slc_build_progress *progress; /* receives facts; NULL: none */
};

struct slc_output;

/* Memory: (workers + 1) * SLC_BUILD_STAGE_BYTES. slc_output_destroy accepts NULL. */
enum slc_status slc_output_create(const struct slc_output_options *options,
                                  struct slc_output **output,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_output_destroy(struct slc_output *output);

/*
 * Adds the next bucket in key order. `sorted` must stay valid until *borrowed
 * (convert/build/build_tiles.h) is 0; this call may increase *borrowed. `worker` may have to encode
 * tiles during the call. Errors: SLC_ERR_DAMAGED if nonzeros differ from those already in the file.
 */
enum slc_status slc_output_add(struct slc_output *output,
                               unsigned worker,
                               const struct slc_bucket *bucket,
                               const struct slc_sorted *sorted,
                               uint32_t *borrowed,
                               struct slc_error *err) SLC_NODISCARD;

/* Adds the last tile and returns when all tiles are in the file. Needs: no other thread is active.
 */
enum slc_status slc_output_finish(struct slc_output *output, struct slc_error *err) SLC_NODISCARD;

/* Duplicates and zeros that the bucket sorts and this module found. */
const struct slc_sort_counts *slc_output_counts(const struct slc_output *output);

#endif
