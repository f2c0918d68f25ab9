/*
 * A store that is written, but has not got its name yet: the last steps of a build, and how a later
 * run makes them where the build ended before.
 *
 * When a store is complete and synced in OUT.slc.part, complete.state beside it says so: of which
 * input and options it is, what its manifest is, and what to tell of it. Only then what the build
 * could go on with is removed. The state moves to OUT.slc with the store, where it says that this
 * very build has put it there, and is removed last: found there, it is no part of the store.
 *
 * A later run of the same input and options verifies manifest, headers and index, but no block:
 * everything was synced before the state was written, and every block has its checksum for those
 * who read it. Where a store is to be renumbered (relabel.h), the state is written before that,
 * too.
 */
#ifndef SLC_CONVERT_BUILD_COMPLETE_H
#define SLC_CONVERT_BUILD_COMPLETE_H

#include "base/error/error.h"
#include "convert/build/builder.h"
#include "convert/build/resume/build_folder.h"
#include "convert/build/resume/state_file.h"

#include <stdbool.h>

enum slc_complete_stage {
    SLC_COMPLETE_PLAIN, /* it has still to be renumbered, as far as that pays */
    SLC_COMPLETE_WHOLE,
    SLC_COMPLETE_APART /* the one that counts is in OUT.slc.part/relabelled.slc, as far as its files
                          have not been moved up */
};

/* What an earlier build of the same output and identity has left complete. */
struct slc_complete_left {
    const struct slc_builder_options *options;
    struct slc_build_folder folder;
    enum slc_complete_stage stage;
    bool placed;                      /* it has its name: what was to follow is left to be done */
    int lock;                         /* of the placed store; -1: none */
    struct slc_builder_report report; /* of that build, without its times */
    struct slc_state note;
};

/*
 * Looks for one, and locks it; *found is false where there is none that is sound, or a build is to
 * begin anew, and then nothing has changed. Owns: slc_complete_left_finish or _end.
 * Errors: SLC_ERR_IO, also those of slc_build_folder_begin; SLC_ERR_BUDGET, SLC_ERR_MEMORY.
 */
enum slc_status slc_complete_find(const struct slc_builder_options *options,
                                  struct slc_complete_left *left,
                                  bool *found,
                                  struct slc_error *err) SLC_NODISCARD;
/* Makes the steps that are left; what the earlier build could have gone on with is removed. Ends
 * it, but left->report can still be read. */
enum slc_status slc_complete_left_finish(struct slc_complete_left *left,
                                         struct slc_error *err) SLC_NODISCARD;
/* What is there stays. Takes an all-zero struct. */
void slc_complete_left_end(struct slc_complete_left *left);

/*
 * A store at its name that has all that is to be in it: makes sure of the name, and removes what a
 * build that replaced it may have left beside it. Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status slc_complete_settle(const struct slc_builder_options *options,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * As slc_builder_finish_plain, and all that the options ask for: with `relabel` the store is built
 * a second time under new numbers, and the smaller of the two is kept (relabel.h); then come
 * further layouts (build_layouts.h).
 */
enum slc_status slc_builder_finish(struct slc_builder *builder,
                                   unsigned index_base,
                                   const uint64_t *dims,
                                   struct slc_store_origin *origin,
                                   struct slc_builder_report *report,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
