/* Builds a store from unordered nonzeros in bounded memory by a distribution sort. Producers (text
 * parsers, generators) push chunks of coordinates from several threads. The builder appends each
 * entry to the bucket of its key range. Buckets are in memory while they fit, then in a spill file.
 * finish() processes the buckets in key order: it sorts each bucket, combines duplicates in input
 * order, encodes tiles in parallel and writes OUT.slc. The store depends only on the nonzeros and
 * their input order, not on threads, memory or the sizes of pushed chunks.
 *
 * The calls are: slc_builder_create; slc_builder_sample, which may be omitted; slc_builder_push, by
 * any threads and in any order; at the end slc_builder_finish, or slc_builder_end or
 * slc_builder_abandon after an error.
 *
 * Coordinates are pushed as written in the input, 0- or 1-based, because the index base may be
 * unknown until all input is read. The mode whose fibers are kept together is also unknown until
 * then, because it depends on all nonzeros (fibers.h). Keys and buckets are formed under an assumed
 * index base and the mode suggested by the sample. If the final index base or mode differs, all
 * buckets are merged and split again. This costs one more read of the spill file, but the input is
 * not read again and may be a pipe. Mode sizes may also change during the push (key_frame.h). */
#ifndef SLC_CONVERT_BUILDER_H
#define SLC_CONVERT_BUILDER_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_builder;

/* Creates OUT.slc.part and allocates all memory. Ownership: release with slc_builder_finish,
 * slc_builder_end or slc_builder_abandon. Errors: SLC_ERR_BUDGET naming the smallest sufficient
 * budget; those of slc_build_folder_create; SLC_ERR_MEMORY. */
enum slc_status slc_builder_create(const struct slc_builder_options *options,
                                   unsigned order,
                                   struct slc_builder **builder,
                                   struct slc_error *err) SLC_NODISCARD;

/* Passes a sample of the coordinates that will be pushed, and the expected number of entries (0:
 * unknown). Key splitters are chosen from the sample. `sample` is like the entries of
 * slc_builder_push, but its values and sequence are unused. The sample consists of `stretches`
 * contiguous stretches of the input of about equal length: 1 for the beginning of the input, or
 * sample->count if every entry was drawn independently. The call is optional and must precede the
 * first push. Without a sample, all entries go to one bucket, which is split if it does not fit a
 * sort area. */
enum slc_status slc_builder_sample(struct slc_builder *builder,
                                   const struct slc_entries *sample,
                                   uint32_t stretches,
                                   uint64_t entries_expected,
                                   struct slc_error *err) SLC_NODISCARD;

/* Pushes a chunk of entries, which is copied. Threads: workers 0 .. workers-1 concurrently. */
enum slc_status slc_builder_push(struct slc_builder *builder,
                                 unsigned worker,
                                 const struct slc_entries *entries,
                                 struct slc_error *err) SLC_NODISCARD;

/* Commits a resumable build (options.resumable): writes and syncs all entries pushed so far,
 * together with a note from the caller that describes how far the input was read. If the process
 * later ends early for any reason, the next slc_builder_create with the same output and identity
 * resumes from the commit. slc_builder_resumed then returns the note, positioned at the caller's
 * first field, or NULL if there is nothing to resume. After resuming, the caller pushes the
 * remaining entries and passes no sample, because the commit has the splitters. No push may run
 * concurrently. Errors: those of slc_builder_push and of file operations. After an error, the
 * previous commit is still valid, and the builder must be ended. */
enum slc_status slc_builder_commit(struct slc_builder *builder,
                                   const struct slc_state *note,
                                   struct slc_error *err) SLC_NODISCARD;
struct slc_state *slc_builder_resumed(struct slc_builder *builder);

/* Returns true if a commit is due: the work since the last commit, which an interruption would
 * lose, is worth the cost. `last`: all input has been pushed. */
bool slc_builder_commit_due(struct slc_builder *builder, bool last);

/* Sorts the entries, writes the store and publishes it (renames OUT.slc.part to OUT.slc).
 * `index_base` (0 or 1) is subtracted from every coordinate. `dims`: mode sizes, each larger than
 * every coordinate of that mode after the subtraction (SLC_ERR_INPUT otherwise). The call sets the
 * counts in `origin` and writes `origin` to the manifest. The builder is always destroyed. After an
 * error, nothing remains on disk except what slc_builder_end keeps. options.relabel and
 * options.layouts are ignored: slc_builder_finish (publish/build_complete.h) handles them. */
enum slc_status slc_builder_finish_plain(struct slc_builder *builder,
                                         unsigned index_base,
                                         const uint64_t *dims,
                                         struct slc_store_origin *origin,
                                         struct slc_builder_report *report,
                                         struct slc_error *err) SLC_NODISCARD;

/* Sets the note that a later run receives if it finds the store of this build complete
 * (publish/build_complete.h). The note is borrowed until the build ends. */
void slc_builder_set_note(struct slc_builder *builder, const struct slc_state *note);

/* Ends a build that failed with `status`. If there was a commit and another run may succeed (after
 * a full disk, but not after bad input), keeps the committed data and logs this. Accepts NULL. */
void slc_builder_end(struct slc_builder *builder, enum slc_status status);

/* Ends the build and removes everything on disk. Accepts NULL. */
void slc_builder_abandon(struct slc_builder *builder);

#endif
