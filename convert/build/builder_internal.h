/* State of the builder, shared by builder_state.c (memory), builder_resume.c (commits), builder.c
 * (pushing), build_finish.c (writing) and publish/build_complete.c (last steps). */
#ifndef SLC_CONVERT_BUILDER_INTERNAL_H
#define SLC_CONVERT_BUILDER_INTERNAL_H

#include "convert/build/bucket_sort.h"
#include "convert/build/build_types.h"
#include "convert/build/resume/build_folder.h"
#include "convert/build/resume/state_file.h"
#include "convert/build/sort/fibers.h"
#include "convert/build/sort/key_frame.h"
#include "convert/build/sort/splitters.h"
#include "convert/build/spill/scatter.h"

/* Counters of one worker, padded so that workers do not share cache lines. */
struct slc_builder_worker {
    uint64_t entries;
    const struct slc_key_frame *frame; /* NULL: nothing was pushed */
    uint64_t smallest[SLC_MAX_ORDER];  /* smallest pushed coordinates */
    uint64_t largest[SLC_MAX_ORDER];
    struct slc_fiber_counts fibers; /* only for SLC_FIBERS_AUTO */
    char padding[64];
};

struct slc_builder {
    struct slc_builder_options options; /* strings are copied to the members below */
    unsigned order;
    char *temp_folder; /* copy of the option; NULL: none */
    char *spill_path;
    struct slc_build_folder folder;
    struct slc_builder_worker *workers;
    uint64_t entries_expected; /* expected number of entries; 0: unknown */

    /* State of resumable builds. folder.keep is set after the first commit. */
    bool completable; /* copy of the option: a complete store can be reused */
    bool resumed;
    struct slc_state note; /* state of an earlier run's commit, read up to the caller's fields */
    const struct slc_state *last_note; /* set by slc_builder_set_note */
    uint64_t start_ns;
    uint64_t commit_ns;         /* time of the last commit; initially start_ns */
    double commit_cost_seconds; /* time of all commits of this run */

    /* State of the push. */
    struct slc_splitters splitters;
    struct slc_key_frames frames;
    uint32_t bucket_count;
    struct slc_chain *chains;
    struct slc_spill *spill;
    struct slc_scatter scatter;
    struct slc_buffer scatter_memory;
    struct slc_buffer fiber_memory; /* counts of all workers; used only for SLC_FIBERS_AUTO */
};

void slc_build_release_push_memory(struct slc_builder *builder);
/* Allocates the memory of the push phase for this number of buckets, which slc_push_memory_plan
 * must allow. `kept`: contents of the spill file of an earlier run, or NULL. Errors: as
 * slc_spill_create. */
enum slc_status slc_build_allocate_push_memory(struct slc_builder *builder,
                                               uint32_t buckets,
                                               const struct slc_spill_extent *kept,
                                               struct slc_error *err) SLC_NODISCARD;
/* Frees everything; folder.keep decides whether the folder stays. Accepts NULL. */
void slc_build_destroy(struct slc_builder *builder);

/* Resumes from the state that an earlier run left in the folder, if there is one, and then sets
 * builder->resumed. Removes an unusable state and logs the reason. */
enum slc_status slc_builder_restore(struct slc_builder *builder,
                                    struct slc_error *err) SLC_NODISCARD;
/* Returns a hash of everything that the kept state depends on. */
uint64_t slc_build_tag(const struct slc_builder *builder);
/* Returns true if commits stay on disk when a build ends with `status`. */
bool slc_build_keeps(const struct slc_builder *builder, enum slc_status status);
/* Returns the time between commits in seconds: an interruption should lose at most this much
 * work. */
double slc_build_interval(const struct slc_builder *builder);
/* Removes the commit states once the store is complete, so that no later run resumes from them.
 * `recorded`: complete.state exists and marks the folder as resumable. */
enum slc_status slc_build_drop_commits(struct slc_builder *builder,
                                       bool recorded,
                                       struct slc_error *err) SLC_NODISCARD;

/* Performs finish() except for its final steps: sorts the entries, and writes blco.blk and the
 * manifest to OUT.slc.part. */
enum slc_status slc_build_store(struct slc_builder *builder,
                                unsigned index_base,
                                const uint64_t *dims,
                                struct slc_store_origin *origin,
                                struct slc_builder_report *report,
                                struct slc_error *err) SLC_NODISCARD;

/* Releases the memory of the push and removes the saved states. If the build is resumable, also
 * removes the spill file, to which the states refer; otherwise the file has no name and is removed
 * when it is closed. The finished store remains. `recorded`: as for slc_build_drop_commits. */
enum slc_status slc_build_drop_spill(struct slc_builder *builder,
                                     bool recorded,
                                     struct slc_error *err) SLC_NODISCARD;

/* Final keys of a store, defined once all entries are pushed and mode sizes and index base are
 * known. Keys formed during the push use estimates from a sample. */

/* Flushes the workers' buffers, chooses the fiber run, and sets the plan's key layout and one
 * recoder per frame. Sets *regroup, and logs this, if buckets were formed under another base or
 * fiber run. Needs: plan->index_base. Ownership: release with slc_build_keys_destroy, also after an
 * error. Errors: SLC_ERR_INPUT for an index out of range; SLC_ERR_UNSUPPORTED for mode sizes that
 * do not fit a key; SLC_ERR_MEMORY; those of slc_spill_append. */
enum slc_status slc_build_keys(struct slc_builder *builder,
                               const uint64_t *dims,
                               struct slc_sort_plan *plan,
                               struct slc_builder_report *report,
                               bool *regroup,
                               struct slc_error *err) SLC_NODISCARD;
void slc_build_keys_destroy(const struct slc_builder *builder, struct slc_sort_plan *plan);

/* Buckets still to be written, in key order. The parts of a split bucket form a new level, which is
 * processed before the remaining buckets. */
struct slc_build_level {
    struct slc_build_level *below;
    struct slc_bucket *buckets;
    uint32_t count;
    uint32_t next;
};

/* A stack of levels; empty if all members after `plan` are zero. Ownership: release with
 * slc_build_queue_clear. */
struct slc_build_queue {
    const struct slc_sort_plan *plan; /* plan for all buckets; borrowed */
    struct slc_build_level *top;
    uint64_t taken; /* number of entries in the buckets that slc_build_queue_next returned */
};

/* Sets the key bounds of the pushed buckets, makes these buckets the first level, and frees the
 * builder's buffers. Adds the number of nonempty buckets to *filled. `regroup`: buckets were formed
 * under another base or fiber run, so each may hold any key. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_build_queue_fill(struct slc_build_queue *queue,
                                     struct slc_builder *builder,
                                     bool regroup,
                                     uint64_t *filled,
                                     struct slc_error *err) SLC_NODISCARD;

/* Adds a level of buckets that precede all others. Takes ownership of the array (slc_free), also
 * after an error. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_build_queue_push(struct slc_build_queue *queue,
                                     struct slc_bucket *buckets,
                                     uint32_t count,
                                     struct slc_error *err) SLC_NODISCARD;

/* Returns the next bucket; NULL at the end. The bucket stays in its level; to remove it, call
 * slc_build_queue_next. */
struct slc_bucket *slc_build_queue_front(struct slc_build_queue *queue);
/* Removes the next bucket and copies it to *bucket. Returns false at the end, or if the bucket does
 * not fit an area of `area_bytes`. */
bool slc_build_queue_next(struct slc_build_queue *queue,
                          uint64_t area_bytes,
                          struct slc_bucket *bucket);

void slc_build_queue_clear(struct slc_build_queue *queue);

#endif
