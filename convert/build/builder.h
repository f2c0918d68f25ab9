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
#include "base/error/stop.h"
#include "base/key.h"
#include "base/matrix.h"
#include "base/memory/limits.h"
#include "convert/build/resume/state_file.h"
#include "convert/build/transform.h"
#include "storage/codec/codec.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* What a store depends on: two builds with the same numbers make the same store. */
struct slc_build_identity {
    uint64_t input;
    uint64_t options;
};

enum slc_duplicates {
    SLC_DUPLICATES_SUM,
    SLC_DUPLICATES_ERROR,
    SLC_DUPLICATES_KEEP_FIRST,
    SLC_DUPLICATES_KEEP_LAST
};
const char *slc_duplicates_name(enum slc_duplicates policy); /* "sum", "error", "keep-first", .. */
bool slc_duplicates_parse(const char *name, enum slc_duplicates *policy);

enum slc_value_choice { SLC_VALUE_AUTO, SLC_VALUE_F32, SLC_VALUE_F64 };

/* How the indices of a mode are numbered in the store. */
enum slc_relabel { SLC_RELABEL_NONE, SLC_RELABEL_FREQUENCY };

/* Whether fibers of a mode are kept together in the order of nonzeros (base/key.h). */
enum slc_fibers {
    SLC_FIBERS_AUTO, /* of the mode the nonzeros suggest, or none (convert/build/sort/fibers.h) */
    SLC_FIBERS_NONE,
    SLC_FIBERS_GIVEN
};

/* A further layout. */
struct slc_build_layout {
    enum slc_layout_kind kind;
    unsigned mode;
};

struct slc_builder_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *output;            /* OUT.slc; must not exist unless `overwrite` */
    const char *temp_folder;       /* for the spill file; NULL: inside OUT.slc.part */
    bool overwrite;                /* replace an existing store, at the very end */
    enum slc_codec codec;
    enum slc_value_choice value; /* F32 rounds values (after combining duplicates); counted */
    enum slc_duplicates duplicates;
    struct slc_transforms transforms; /* of values, when duplicates are combined */
    uint64_t block_bytes;             /* 0: default */
    uint64_t memory_bytes;            /* what the builder may map, all of it */
    unsigned layout_count;            /* further ones, which the store gets before its name .. */
    struct slc_build_layout layouts[SLC_MAX_LAYOUTS]; /* .. as far as they fit into memory */
    uint64_t max_temp; /* bytes of spill file at most; 0: no limit (SLC_ERR_BUDGET beyond) */
    unsigned workers;
    unsigned assumed_base; /* 0 or 1: see above */
    enum slc_fibers fibers;
    struct slc_fiber_run run; /* SLC_FIBERS_GIVEN */
    enum slc_relabel relabel;
    /*
     * The caller's share of the budget, and what it is at most with a larger one: for messages that
     * name the whole.
     */
    uint64_t beside_bytes, beside_most_bytes;
    /*
     * Commits are possible, with which a later build of the same identity goes on: see
     * slc_builder_commit. Not with a temp_folder, of which nobody would know what was left there.
     */
    bool resumable;
    /* Without commits: a later build goes on only with a store that is complete .. */
    bool completable;
    bool note_complete; /* .. which is noted even where it was a matter of a moment */
    struct slc_build_identity identity;
    bool restart;          /* removes what an earlier run left */
    double commit_seconds; /* between commits; 0: as cost allows, and none in short builds */
    /*
     * What goes with the store beside its nonzeros (names, titles): called when the block file is
     * complete and before the manifest is written, with the folder in which it lies and with the
     * manifest, in which dims are set, to list more files in. Called again where a build goes on.
     * NULL: nothing does.
     */
    enum slc_status (*attach)(void *context,
                              const char *folder,
                              struct slc_manifest *manifest,
                              struct slc_error *err);
    void *attached;              /* its context */
    uint64_t relabelled_modes;   /* bit n: coordinates of mode n are labels already (relabel.c) */
    void (*publishing)(void);    /* as in struct slc_convert_options */
    const struct slc_stop *stop; /* push and finish end with SLC_ERR_INTERRUPTED; may be NULL */
    /* Of finish(): entries that have been taken to be sorted, of all; NULL: not told. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

/* Coordinates of consecutive input entries, one array per mode (0-based) and the values. */
struct slc_entries {
    unsigned order;
    uint32_t count;
    const uint64_t *coords[SLC_MAX_ORDER];
    const double
        *values; /* finite; zeros are dropped by the builder after duplicates are combined */
    /*
     * Position in the input: duplicates are combined in ascending (sequence, first), then in the
     * order of the entries. Chunks with the same sequence come from one worker, one after the
     * other, each with a larger `first` than all entries before it have taken.
     */
    uint64_t sequence;
    uint32_t first;
};

/* What became of a mode that was to be relabelled. */
enum slc_relabel_verdict {
    SLC_RELABEL_UNASKED,
    SLC_RELABELLED,
    SLC_RELABEL_IN_ORDER,  /* its indices are by falling frequency already */
    SLC_RELABEL_TOO_LONG,  /* its permutation alone would take more than all coordinates do */
    SLC_RELABEL_TOO_LARGE, /* the store would be larger */
};

struct slc_relabel_report {
    enum slc_relabel_verdict verdict[SLC_MAX_ORDER];
    uint64_t plain_bytes;       /* of the block file in the numbering of the input */
    uint64_t plain_index_bytes; /* of its coordinates */
    uint64_t tried_bytes;       /* of the relabelled block file; 0: none was built */
    uint64_t tried_index_bytes;
    uint64_t permutation_bytes; /* of the files that go with it */
    double seconds;
};

struct slc_fiber_report {
    struct slc_fiber_run run; /* as in the store; all zero: plain order */
    bool chosen;              /* by the nonzeros, not by the caller: what follows is known */
    unsigned mode;            /* the one whose fibers lie in the fewest pieces */
    double piece_nnz;         /* of a piece, on average; 0 without nonzeros */
};

struct slc_builder_report {
    uint64_t entries;        /* pushed */
    uint64_t duplicates;     /* merged into an earlier entry */
    uint64_t explicit_zeros; /* dropped: the value, or the sum of duplicates, is zero */
    uint64_t rounded_values; /* changed by SLC_VALUE_F32 */
    uint64_t spill_bytes;    /* written to the spill file, recursion included */
    uint64_t buckets;
    uint64_t recursions;   /* buckets that overflowed and were split again */
    unsigned layout_count; /* further ones that the store has */
    struct slc_build_layout layouts[SLC_MAX_LAYOUTS];
    /*
     * Waiting for the spill file and splitting buckets; sorting (reading back included), encoding
     * and appending of all workers, added up.
     */
    double spill_seconds, sort_seconds, encode_seconds, write_seconds;
    bool resumed;                      /* an earlier run had begun it */
    uint64_t kept_nnz;                 /* that run had written so many nonzeros already */
    bool completed;                    /* it had written all of the store */
    double commit_seconds;             /* that commits took */
    struct slc_writer_summary summary; /* of the store that is kept */
    struct slc_fiber_report fibers;
    struct slc_relabel_report relabel;
};

struct slc_builder;

/* The smallest memory_bytes that create accepts for this order, codec, block size and workers. */
uint64_t slc_builder_memory_min(const struct slc_builder_options *options, unsigned order);

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
 * here. With options.relabel the store is built a second time under new numbers, and the smaller of
 * the two is kept (relabel.h). The builder is destroyed whatever happens; after an error nothing is
 * left on disk, but what slc_builder_end keeps.
 */
enum slc_status slc_builder_finish(struct slc_builder *builder,
                                   unsigned index_base,
                                   const uint64_t *dims,
                                   struct slc_store_origin *origin,
                                   struct slc_builder_report *report,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * What a run is to be told that finds this build's store complete (build_complete.h). Borrowed
 * until the build ends.
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
