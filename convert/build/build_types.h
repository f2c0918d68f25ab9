/* Options, input entries and reports of a build. */
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

/* Numbering of the indices of a mode in the store. */
enum slc_relabel { SLC_RELABEL_NONE, SLC_RELABEL_FREQUENCY };

/* Whether the order of nonzeros keeps fibers of a mode together (base/key.h). */
enum slc_fibers {
    SLC_FIBERS_AUTO, /* chooses the mode from the nonzeros, or none (convert/build/sort/fibers.h) */
    SLC_FIBERS_NONE,
    SLC_FIBERS_GIVEN
};

/* An additional layout. */
struct slc_build_layout {
    enum slc_layout_kind kind;
    unsigned mode;
};

struct slc_builder_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *output;            /* OUT.slc; must not exist unless `overwrite` */
    const char *temp_folder;       /* for the spill file; NULL: inside OUT.slc.part */
    bool overwrite;                /* replace an existing store, as the last step */
    enum slc_codec codec;
    enum slc_value_choice value; /* F32 rounds values after combining duplicates */
    enum slc_duplicates duplicates;
    struct slc_transforms transforms; /* of values, after duplicates are combined */
    uint64_t block_bytes;             /* 0: default */
    uint64_t memory_bytes;            /* everything that the builder may map */
    unsigned layout_count; /* additional layouts, built before the store gets its name .. */
    struct slc_build_layout layouts[SLC_MAX_LAYOUTS]; /* .. as far as they fit into memory */
    uint64_t max_temp; /* limit of the spill file in bytes; 0: no limit (SLC_ERR_BUDGET beyond) */
    unsigned workers;
    unsigned assumed_base; /* 0 or 1: see above */
    enum slc_fibers fibers;
    struct slc_fiber_run run; /* SLC_FIBERS_GIVEN */
    enum slc_relabel relabel;
    /* The caller's part of the budget, and its largest useful value under a larger budget: for
     * messages that name the whole budget. */
    uint64_t caller_bytes, caller_most_bytes;
    /*
     * Enables commits, from which a later build of the same identity resumes: see
     * slc_builder_commit. Not with a temp_folder, because leftovers there would have no known
     * owner.
     */
    bool resumable;
    /* Without commits: a later build reuses a complete store .. */
    bool completable;
    bool note_complete; /* .. and its completion is recorded even if the build was short */
    struct slc_build_identity identity;
    bool restart;          /* removes the state of an earlier run */
    double commit_seconds; /* between commits; 0: chosen by cost, none in short builds */
    /*
     * Adds further files of the store (names, titles). Called after the block file is complete and
     * before the manifest is written, with the folder of the block file and the manifest, in which
     * dims are set, to list the files in. Called again if a build resumes. NULL: no callback.
     */
    enum slc_status (*attach)(void *context,
                              const char *folder,
                              struct slc_manifest *manifest,
                              struct slc_error *err);
    void *attached;              /* context of `attach` */
    uint64_t relabelled_modes;   /* bit n: mode n has labels already (publish/relabel.c) */
    void (*publishing)(void);    /* as in struct slc_convert_options */
    const struct slc_stop *stop; /* push and finish end with SLC_ERR_INTERRUPTED; may be NULL */
    /* Of finish(): entries taken up for sorting, of the total; NULL: no callback. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

/* Coordinates of consecutive input entries, one array per mode (0-based), and the values. */
struct slc_entries {
    unsigned order;
    uint32_t count;
    const uint64_t *coords[SLC_MAX_ORDER];
    const double *values; /* finite; zeros are dropped after combining duplicates */
    /*
     * Position in the input: duplicates are combined in ascending (sequence, first), then in the
     * order of the entries. Chunks with the same sequence come from one worker, one after the
     * other, each with a `first` above the positions of all earlier entries.
     */
    uint64_t sequence;
    uint32_t first;
};

/* Result of relabelling a mode. */
enum slc_relabel_verdict {
    SLC_RELABEL_UNASKED,
    SLC_RELABELLED,
    SLC_RELABEL_IN_ORDER,  /* its indices already have descending frequency */
    SLC_RELABEL_TOO_LONG,  /* its permutation alone would be larger than all coordinates */
    SLC_RELABEL_TOO_LARGE, /* the store would be larger */
};

struct slc_relabel_report {
    enum slc_relabel_verdict verdict[SLC_MAX_ORDER];
    uint64_t plain_bytes;       /* of the block file with the numbering of the input */
    uint64_t plain_index_bytes; /* of its coordinates */
    uint64_t tried_bytes;       /* of the relabelled block file; 0: none was built */
    uint64_t tried_index_bytes;
    uint64_t permutation_bytes; /* of the permutation files */
    double seconds;
};

struct slc_fiber_report {
    struct slc_fiber_run run; /* as in the store; all zero: plain order */
    bool chosen;              /* by the nonzeros, not by the caller; the fields below are set */
    unsigned mode;            /* the mode whose fibers form the fewest pieces */
    double piece_nnz;         /* nonzeros per piece on average; 0 without nonzeros */
};

struct slc_builder_report {
    uint64_t entries;        /* pushed */
    uint64_t duplicates;     /* merged into an earlier entry */
    uint64_t explicit_zeros; /* dropped: the value, or the sum of duplicates, is zero */
    uint64_t rounded_values; /* changed by SLC_VALUE_F32 */
    uint64_t spill_bytes;    /* written to the spill file, including repeated splits */
    uint64_t buckets;
    uint64_t recursions;   /* buckets that overflowed and were split again */
    unsigned layout_count; /* additional layouts of the store */
    struct slc_build_layout layouts[SLC_MAX_LAYOUTS];
    /* Waiting for the spill file and splitting buckets; then sorting (including reading back),
     * encoding and appending, each summed over workers. */
    double spill_seconds, sort_seconds, encode_seconds, write_seconds;
    bool resumed;                      /* an earlier run had started it */
    uint64_t kept_nnz;                 /* nonzeros that the earlier run had already written */
    bool completed;                    /* the earlier run had written the whole store */
    double commit_seconds;             /* spent in commits */
    struct slc_writer_summary summary; /* of the final store */
    struct slc_fiber_report fibers;
    struct slc_relabel_report relabel;
};

#endif
