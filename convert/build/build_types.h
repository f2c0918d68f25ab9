/* What a build is told, what it is given, and what it reports. */
#ifndef SLC_CONVERT_BUILD_TYPES_H
#define SLC_CONVERT_BUILD_TYPES_H

#include "base/error/stop.h"
#include "base/key.h"
#include "base/memory/limits.h"
#include "convert/build/resume/state_file.h"
#include "convert/build/sort/duplicates.h"
#include "convert/build/sort/transform.h"
#include "storage/codec/codec.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

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
    void *attached; /* its context */
    uint64_t
        relabelled_modes; /* bit n: coordinates of mode n are labels already (publish/relabel.c) */
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

#endif
