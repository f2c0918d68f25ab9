/*
 * Builds a store from unordered nonzeros in bounded memory: the distribution sort of DESIGN
 * section 3. Producers (text parsers, generators) push chunks of coordinates from several threads;
 * the builder appends them to buckets by key range, in memory while they fit and in a spill file
 * beyond; finish() takes the buckets in key order, sorts each, combines duplicates in input order,
 * encodes tiles in parallel and writes OUT.slc. The store depends on the nonzeros and their input
 * order alone, never on threads, memory or how the input was cut.
 *
 *     create -> sample -> push (any thread, any order) -> finish | abandon
 *
 * Coordinates are pushed as the input writes them, 0- or 1-based: the base may only be certain when
 * all input has been read. So is the mode whose fibers are kept together, which all nonzeros have a
 * part in choosing (fibers.h). Keys and buckets are formed under the assumed base and the mode that
 * the sample suggests; when another one is found to be right, all buckets become one, which is
 * split again (one more trip through the spill file, no second reading of the input, so a pipe
 * works too). Lengths are no more certain: key_frame.h.
 */
#ifndef SLC_CONVERT_BUILDER_H
#define SLC_CONVERT_BUILDER_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_builder;

/*
 * Creates OUT.slc.part and takes all memory. Owns: finish or abandon ends it.
 * Errors: SLC_ERR_BUDGET naming the smallest budget; SLC_ERR_IO (output exists: the message says
 * how to overwrite); SLC_ERR_MEMORY.
 */
enum slc_status slc_builder_create(const struct slc_builder_options *options,
                                   unsigned order,
                                   struct slc_builder **builder,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * A sample of the coordinates to come (`sample` as in push; values and sequence unused), from which
 * key splitters are chosen, and a guess of how many entries there will be (0: unknown). It comes
 * from `stretches` of the input of about equal length, one after the other, each on its own without
 * gaps: 1 where it is the beginning, sample->count where every entry was drawn alone. Optional
 * and only before the first push; without it everything goes to one bucket, which is split when it
 * overflows.
 */
enum slc_status slc_builder_sample(struct slc_builder *builder,
                                   const struct slc_entries *sample,
                                   uint32_t stretches,
                                   uint64_t entries_expected,
                                   struct slc_error *err) SLC_NODISCARD;

/* Adds a chunk; copies it. Called by workers 0 .. workers-1 at the same time. */
enum slc_status slc_builder_push(struct slc_builder *builder,
                                 unsigned worker,
                                 const struct slc_entries *entries,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * A build that may be interrupted (options.resumable): a commit puts on the disk, synced, all that
 * was pushed, with a note of the caller's that says what that was. When the process ends early, in
 * whatever way, the next slc_builder_create of the same output and identity goes on from there.
 * Then slc_builder_resumed gives the note, read up to its first field (NULL: nothing was left), and
 * the caller pushes what the note does not tell of, without a sample, which the builder has.
 * Nobody pushes meanwhile. Errors: as slc_builder_push; SLC_ERR_IO, .. ; after one the commit
 * before is still there, and the builder has to be ended.
 */
enum slc_status slc_builder_commit(struct slc_builder *builder,
                                   const struct slc_state *note,
                                   struct slc_error *err) SLC_NODISCARD;
struct slc_state *slc_builder_resumed(struct slc_builder *builder);

/*
 * Whether it is time for a commit: after an interval, if it is worth what it costs; `last`: the
 * one behind all input.
 */
bool slc_builder_commit_due(struct slc_builder *builder, bool last);

/*
 * Sorts, writes and publishes the store (rename of OUT.slc.part). `index_base` (0 or 1) is
 * subtracted from every coordinate. `dims`: the lengths of all modes, each above every coordinate
 * after that (SLC_ERR_INPUT otherwise). `origin` goes into the manifest; its counts are filled in
 * here. The builder is destroyed whatever happens; after an error nothing is left on disk, but what
 * slc_builder_end keeps. options.relabel and options.layouts are ignored: they are for
 * slc_builder_finish (publish/build_complete.h), which does everything.
 */
enum slc_status slc_builder_finish_plain(struct slc_builder *builder,
                                         unsigned index_base,
                                         const uint64_t *dims,
                                         struct slc_store_origin *origin,
                                         struct slc_builder_report *report,
                                         struct slc_error *err) SLC_NODISCARD;

/*
 * What a run is to be told that finds this build's store complete (publish/build_complete.h).
 * Borrowed until the build ends.
 */
void slc_builder_note(struct slc_builder *builder, const struct slc_state *note);

/*
 * Ends a build that failed with `status`: after a commit, and a fault that another run may not meet
 * again (a full disk, not a bad input), what was committed stays, which is logged. Takes NULL.
 */
void slc_builder_end(struct slc_builder *builder, enum slc_status status);

/* Gives up and removes everything on disk. Takes NULL. */
void slc_builder_abandon(struct slc_builder *builder);

#endif
