/*
 * The builder's state, shared by builder_state.c (memory), builder_resume.c (commits), builder.c
 * (pushing), build_finish.c (writing) and publish/build_complete.c (the last steps).
 */
#ifndef SLC_CONVERT_BUILDER_INTERNAL_H
#define SLC_CONVERT_BUILDER_INTERNAL_H

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

#endif
