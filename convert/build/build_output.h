/* Cuts sorted buckets into tiles: joins the entries of a coordinate that spans buckets, ends each
 * tile at the limit of its nonzeros or its extent, and queues tiles for encoding. The output
 * depends only on the sequence of nonzeros, not on buckets or workers. Threads: one call at a
 * time. */
#ifndef SLC_CONVERT_BUILD_OUTPUT_H
#define SLC_CONVERT_BUILD_OUTPUT_H

#include "base/error/error.h"
#include "convert/build/bucket_sort.h"
#include "convert/build/build_tiles.h"
#include "convert/build/sort/splitters.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/* A fact records the progress of the sort in a resumable build: the counts of all nonzeros up to
 * the end of a bucket of the push. The nonzeros are in the block file, whose journal records which
 * of them are synced to disk (storage/block/writer.h). A resumed run uses the last fact that covers
 * only synced nonzeros. It continues after that fact's last bucket and skips the further nonzeros
 * that the file already holds. */
struct slc_build_fact {
    uint32_t buckets; /* number of buckets of the push that the fact covers */
    uint64_t nnz;     /* number of nonzeros of these buckets that are stored */
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
 * the last kept fact; all zero if no fact was kept. Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_build_progress_load(struct slc_build_progress *progress,
                                        uint64_t kept_nnz,
                                        struct slc_build_fact *fact,
                                        struct slc_error *err) SLC_NODISCARD;

/* Adds a fact; saves all facts if the last save was at least progress->seconds ago. Errors: those
 * of slc_state_save. */
enum slc_status slc_build_progress_add(struct slc_build_progress *progress,
                                       const struct slc_build_fact *fact,
                                       struct slc_error *err) SLC_NODISCARD;

struct slc_output_options {
    const struct slc_sort_plan *plan; /* borrowed */
    const uint64_t *dims;
    unsigned workers;
    struct slc_tiles *tiles; /* borrowed */
    /* In a resumed build: the fact that covers all buckets before the first bucket to be added. */
    struct slc_build_fact fact;
    /* Number of nonzeros that are already in the file but not covered by `fact`, and the key of the
     * last nonzero in the file. */
    uint64_t written;
    slc_u128 last_key;
    struct slc_build_progress *progress; /* records facts; NULL: facts are not recorded */
};

struct slc_output;

/* Ownership: release with slc_output_destroy, which accepts NULL. Memory: (workers + 1) *
 * SLC_BUILD_STAGE_BYTES. */
enum slc_status slc_output_create(const struct slc_output_options *options,
                                  struct slc_output **output,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_output_destroy(struct slc_output *output);

/* Adds the next bucket in key order. The call may increase *borrowed, the number of tiles in the
 * memory of `sorted` that are not in the file (build_tiles.h); `sorted` must stay valid until
 * *borrowed is 0. The call may encode tiles with the encoder of `worker`. Errors: SLC_ERR_DAMAGED
 * if nonzeros differ from those already in the file. */
enum slc_status slc_output_add(struct slc_output *output,
                               unsigned worker,
                               const struct slc_bucket *bucket,
                               const struct slc_sorted *sorted,
                               uint32_t *borrowed,
                               struct slc_error *err) SLC_NODISCARD;

/* Adds the last tile and returns when all tiles are in the file. Needs: no other thread is active.
 */
enum slc_status slc_output_finish(struct slc_output *output, struct slc_error *err) SLC_NODISCARD;

/* Returns the counts of duplicates, zeros and rounded values in all buckets added so far. */
const struct slc_sort_counts *slc_output_counts(const struct slc_output *output);

#endif
