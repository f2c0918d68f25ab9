/*
 * The builder's state, shared by builder_state.c (memory), builder_resume.c (commits), builder.c
 * (pushing), build_finish.c (writing) and publish/build_complete.c (the last steps).
 */
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

/* Counters of one worker, apart so that workers do not share cache lines. */
struct slc_builder_worker {
    uint64_t entries;
    const struct slc_key_frame *frame; /* NULL: nothing was pushed */
    uint64_t smallest[SLC_MAX_ORDER];  /* of what was pushed */
    uint64_t largest[SLC_MAX_ORDER];
    struct slc_fiber_counts fibers; /* SLC_FIBERS_AUTO */
    char padding[64];
};

struct slc_builder {
    struct slc_builder_options options; /* strings are not kept: see below */
    unsigned order;
    char *temp_folder; /* as asked for; NULL: none */
    char *spill_path;
    struct slc_build_folder folder;
    struct slc_builder_worker *workers;
    uint64_t entries_expected; /* 0: unknown */

    /* Of a build that can be resumed. That folder.keep is set says that there was a commit. */
    bool
        completable; /* as asked for; a store that is complete can be taken even if no commit can */
    bool resumed;
    struct slc_state note; /* as committed by the earlier run, read up to its caller's fields */
    const struct slc_state *last_note; /* slc_builder_note */
    uint64_t start_ns;
    uint64_t commit_ns;         /* of the last commit; at first as start_ns */
    double commit_cost_seconds; /* of all of this run's */

    /* While input is pushed. */
    struct slc_splitters splitters;
    struct slc_key_frames frames;
    uint32_t bucket_count;
    struct slc_chain *chains;
    struct slc_spill *spill;
    struct slc_scatter scatter;
    struct slc_buffer scatter_memory;
    struct slc_buffer fiber_memory; /* of all workers' counts; none unless SLC_FIBERS_AUTO */
};

void slc_build_release_push_memory(struct slc_builder *builder);
/*
 * Divides memory for so many buckets, which slc_push_memory_plan allows; `kept`: what the spill
 * file holds of an earlier run, or NULL. Errors: as slc_spill_create.
 */
enum slc_status slc_build_take_push_memory(struct slc_builder *builder,
                                           uint32_t buckets,
                                           const struct slc_spill_extent *kept,
                                           struct slc_error *err) SLC_NODISCARD;
/* Frees everything; the folder stays or goes as folder.keep says. Takes NULL. */
void slc_build_destroy(struct slc_builder *builder);

/*
 * Goes on with what an earlier run left in the folder, if there is anything (builder->resumed);
 * what is of no use is removed, which is logged with the reason.
 */
enum slc_status slc_builder_take_left(struct slc_builder *builder,
                                      struct slc_error *err) SLC_NODISCARD;
/* What all that is kept depends on, as one number. */
uint64_t slc_build_tag(const struct slc_builder *builder);
/* Whether commits stay on disk when a build ends so. */
bool slc_build_keeps(const struct slc_builder *builder, enum slc_status status);
/* Seconds of work that an interruption may cost. */
double slc_build_interval(const struct slc_builder *builder);
/*
 * All is in the store: removes the states, so that no later run goes on with them. `noted`: the
 * folder stays in the hands of complete.state.
 */
enum slc_status slc_build_drop_commits(struct slc_builder *builder,
                                       bool noted,
                                       struct slc_error *err) SLC_NODISCARD;

/* Everything of finish but the ends: sorts, writes blco.blk and the manifest into the part folder.
 */
enum slc_status slc_build_store(struct slc_builder *builder,
                                unsigned index_base,
                                const uint64_t *dims,
                                struct slc_store_origin *origin,
                                struct slc_builder_report *report,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * What is no part of the finished store goes: memory, a spill file that has a name, and what names
 * it. `noted`: as for slc_build_drop_commits.
 */
enum slc_status
slc_build_drop_spill(struct slc_builder *builder, bool noted, struct slc_error *err) SLC_NODISCARD;

/*
 * The keys of a store, when all entries have been pushed and its lengths and the first index are
 * known: the pushing was done under what a sample let expect of them.
 */

/*
 * Flushes what workers still hold, settles which fibers are kept together, and sets of the plan the
 * keys and how those of every frame become them. Sets *regroup where the buckets were cut for
 * another base or another run of fibers, which is said. Needs: plan->index_base. Owns:
 * slc_build_keys_destroy, after an error too. Errors: SLC_ERR_INPUT for an index outside of the
 * lengths; SLC_ERR_UNSUPPORTED for lengths that no key holds; SLC_ERR_MEMORY; as slc_spill_append.
 */
enum slc_status slc_build_keys(struct slc_builder *builder,
                               const uint64_t *dims,
                               struct slc_sort_plan *plan,
                               struct slc_builder_report *report,
                               bool *regroup,
                               struct slc_error *err) SLC_NODISCARD;
void slc_build_keys_destroy(const struct slc_builder *builder, struct slc_sort_plan *plan);

/*
 * Buckets still to be written, in key order. One that is split has its parts on a level of their
 * own, above what comes after it.
 */
struct slc_build_level {
    struct slc_build_level *below;
    struct slc_bucket *buckets;
    uint32_t count;
    uint32_t next;
};

/* Owns: slc_build_queue_clear; zeros after the plan: empty. */
struct slc_build_queue {
    const struct slc_sort_plan *plan; /* of all buckets; borrowed */
    struct slc_build_level *top;
    uint64_t taken; /* entries of the buckets that slc_build_queue_next returned */
};

/*
 * The buckets that the push filled, with the keys that each may hold, become the first level; the
 * builder's buffers are given back. Adds to *filled how many have entries. `regroup`: they were cut
 * for other keys, so that each may hold any. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_build_queue_take(struct slc_build_queue *queue,
                                     struct slc_builder *builder,
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
/* Removes the next bucket; false at the end, and for one that does not fit an area. */
bool slc_build_queue_next(struct slc_build_queue *queue,
                          uint64_t area_bytes,
                          struct slc_bucket *bucket);

void slc_build_queue_clear(struct slc_build_queue *queue);

#endif
