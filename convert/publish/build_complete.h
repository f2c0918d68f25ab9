/* Performs the last steps of a build, from the complete store to its final name. If the build is
 * interrupted, a later run performs the remaining steps.
 *
 * When a store is complete and synced in OUT.slc.part, the file complete.state in the same folder
 * records the input, the options, the manifest, and the report. Only then are the states for
 * resuming removed. complete.state moves to OUT.slc together with the store, and shows there that
 * this build published the store. The last step removes the file, which is not part of the store.
 *
 * A later run with the same input and options verifies the manifest, headers and indices of the
 * store. It verifies no blocks: all files were synced before the state was written, and readers
 * verify the checksum of every block. If a store is to be relabelled (relabel.h), the state is also
 * written before relabelling. */
#ifndef SLC_CONVERT_BUILD_COMPLETE_H
#define SLC_CONVERT_BUILD_COMPLETE_H

#include "base/error/error.h"
#include "convert/build/builder.h"
#include "convert/build/resume/build_folder.h"
#include "convert/build/resume/state_file.h"

#include <stdbool.h>

enum slc_complete_stage {
    SLC_COMPLETE_PLAIN, /* relabelling, which may make the store smaller, has yet to be tried */
    SLC_COMPLETE_WHOLE,
    /* The final store is in OUT.slc.part/relabelled.slc, or partly moved to OUT.slc.part. */
    SLC_COMPLETE_APART
};

/* A complete store that an earlier build with the same output and identity left. */
struct slc_complete_left {
    const struct slc_builder_options *options;
    struct slc_build_folder folder;
    enum slc_complete_stage stage;
    bool placed;                      /* the store has its final name already */
    int lock;                         /* lock of the placed store; -1: none */
    struct slc_builder_report report; /* report of the earlier build, without its times */
    struct slc_state note;
};

/* Looks for a complete store and locks it. *found is false if there is no valid store or if the
 * options request a restart; in that case nothing has changed. Ownership: release with
 * slc_complete_left_finish or slc_complete_left_end. Errors: SLC_ERR_IO, as for
 * slc_build_folder_create; SLC_ERR_BUDGET; SLC_ERR_MEMORY. */
enum slc_status slc_complete_find(const struct slc_builder_options *options,
                                  struct slc_complete_left *left,
                                  bool *found,
                                  struct slc_error *err) SLC_NODISCARD;
/* Performs the remaining steps and removes complete.state. Ends `left`; only left->report stays
 * valid. */
enum slc_status slc_complete_left_finish(struct slc_complete_left *left,
                                         struct slc_error *err) SLC_NODISCARD;
/* Releases `left` and keeps the files. Accepts an all-zero struct. */
void slc_complete_left_end(struct slc_complete_left *left);

/* For a complete store at its final name: syncs the name, and removes what the replacement of an
 * old store left at OUT.slc.part or OUT.slc.old. Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_complete_clean_up(const struct slc_builder_options *options,
                                      struct slc_error *err) SLC_NODISCARD;

/* Like slc_builder_finish_plain, but also relabels and adds layouts as the options request. With
 * `relabel`, the store is built a second time with renumbered indices, and the smaller store is
 * kept (relabel.h). Then additional layouts are built (build_layouts.h). */
enum slc_status slc_builder_finish(struct slc_builder *builder,
                                   unsigned index_base,
                                   const uint64_t *dims,
                                   struct slc_store_origin *origin,
                                   struct slc_builder_report *report,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
