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

/* The mode whose fibers the order of nonzeros keeps together, if any (base/key.h). */
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
    const char *temp_folder;       /* folder of the spill file; NULL: inside OUT.slc.part */
    bool overwrite;                /* replace an existing store, as the last step */
    enum slc_codec codec;
    enum slc_value_choice value; /* F32 rounds values after combining duplicates */
    enum slc_duplicates duplicates;
    struct slc_transforms transforms; /* applied to values after duplicates are combined */
    uint64_t block_bytes;             /* 0: default */
    uint64_t memory_bytes;            /* limit of all memory that the builder maps */
    unsigned layout_count; /* additional layouts, built before the store is renamed to OUT.slc */
    /* a layout that does not fit in memory is skipped */
    struct slc_build_layout layouts[SLC_MAX_LAYOUTS];
    /* Limit of the spill file in bytes, enforced by SLC_ERR_BUDGET; 0: no limit. */
    uint64_t max_temp;
    unsigned workers;
    unsigned assumed_base; /* 0 or 1: see above */
    enum slc_fibers fibers;
    struct slc_fiber_run run; /* SLC_FIBERS_GIVEN */
    enum slc_relabel relabel;
    /* The caller's part of the budget now, and at most if the budget were larger. Used only in
     * messages that name the whole budget. */
    uint64_t caller_bytes, caller_most_bytes;
    /*
     * Enables commits, from which a later build of the same identity resumes: see
     * slc_builder_commit. Ignored if temp_folder is set, because files left in that folder would
     * have no known owner.
     */
    bool resumable;
    /* No commits, but a later build reuses a complete store. */
    bool completable;
    bool note_complete; /* with `completable`: record completion even of a short build */
    struct slc_build_identity identity;
    bool restart;          /* removes the state of an earlier run */
    double commit_seconds; /* between commits; 0: chosen by cost, none in short builds */
    /*
     * Adds further files of the store (names, titles). Called after the block file is complete and
     * before the manifest is written, with the folder of the block file and with the manifest,
     * which already has its mode sizes. The callback lists its files in the manifest. Called again
     * if a build resumes. NULL: no callback.
     */
    enum slc_status (*attach)(void *context,
                              const char *folder,
                              struct slc_manifest *manifest,
                              struct slc_error *err);
    void *attached;              /* context of `attach` */
    uint64_t relabelled_modes;   /* bit n: mode n has labels already (publish/relabel.c) */
    void (*publishing)(void);    /* as in struct slc_convert_options */
    const struct slc_stop *stop; /* push and finish end with SLC_ERR_INTERRUPTED; may be NULL */
    /* Called by finish() with the number of entries whose sort has started and the total number.
     * NULL: no callback. */
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
    SLC_RELABEL_IN_ORDER,  /* frequencies of its indices already descend */
    SLC_RELABEL_TOO_LONG,  /* its permutation alone would be larger than all coordinates */
    SLC_RELABEL_TOO_LARGE, /* the store would be larger */
};

struct slc_relabel_report {
    enum slc_relabel_verdict verdict[SLC_MAX_ORDER];
    uint64_t plain_bytes;       /* of the block file with the numbering of the input */
    uint64_t plain_index_bytes; /* coordinates in that block file */
    uint64_t tried_bytes;       /* of the relabelled block file; 0: none was built */
    uint64_t tried_index_bytes;
    uint64_t permutation_bytes; /* of the permutation files */
    double seconds;
};

struct slc_fiber_report {
    struct slc_fiber_run run; /* as in the store; all zero: plain order */
    /* True if chosen from the nonzeros, not by the caller; then the fields below are set. */
    bool chosen;
    unsigned mode;    /* the mode whose fibers form the fewest pieces */
    double piece_nnz; /* average nonzeros per piece; 0 if there are no nonzeros */
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
    /* spill: waiting for the spill file and splitting buckets. sort: including reading from the
     * spill file. write: appending tiles. Each is summed over workers. */
    double spill_seconds, sort_seconds, encode_seconds, write_seconds;
    bool resumed;                      /* the build resumed from an earlier run */
    uint64_t kept_nnz;                 /* nonzeros that the earlier run had already written */
    bool completed;                    /* the earlier run had written the whole store */
    double commit_seconds;             /* spent in commits */
    struct slc_writer_summary summary; /* of the final store */
    struct slc_fiber_report fibers;
    struct slc_relabel_report relabel;
};

#endif
