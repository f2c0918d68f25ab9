/* Defines the options, the input entries and the reports of a build. An entry is a coordinate and
 * its value, as they were pushed. When duplicates are combined and zeros are dropped, entries
 * become nonzeros. */
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

/* States which mode's fibers the order of nonzeros keeps together (base/key.h). */
enum slc_fibers {
    /* the builder chooses a mode, or none, from the nonzeros (convert/build/sort/fibers.h) */
    SLC_FIBERS_AUTO,
    SLC_FIBERS_NONE,
    SLC_FIBERS_GIVEN
};

/* An additional layout. */
struct slc_build_layout {
    enum slc_layout_kind kind;
    unsigned mode;
};

struct slc_builder_options {
    const struct slc_files *files; /* NULL: operations of the operating system */
    const char *output;            /* OUT.slc; may exist only if `overwrite` */
    const char *temp_folder;       /* folder of the spill file; NULL: inside OUT.slc.part */
    bool overwrite;                /* replace an existing store, as the last step */
    enum slc_codec codec;
    enum slc_value_choice value; /* SLC_VALUE_F32 rounds combined values */
    enum slc_duplicates duplicates;
    bool keep_zeros;                  /* store values of 0 instead of dropping them */
    struct slc_transforms transforms; /* applied to values after duplicates are combined */
    uint64_t block_bytes;             /* target size of a block; 0: default */
    uint64_t memory_bytes;            /* limit of all memory that the builder maps */
    unsigned layout_count; /* additional layouts, built before the store is renamed to OUT.slc */
    /* a layout that does not fit in memory is skipped */
    struct slc_build_layout layouts[SLC_MAX_LAYOUTS];
    /* Limit of the spill file in bytes (SLC_ERR_BUDGET if it is too small); 0: no limit. */
    uint64_t max_temp;
    unsigned workers;
    unsigned assumed_base; /* 0 or 1: index base that is assumed during the push (builder.h) */
    enum slc_fibers fibers;
    struct slc_fiber_run run; /* fiber run for SLC_FIBERS_GIVEN */
    enum slc_relabel relabel;
    /* Bytes of the budget that the caller uses, and the most bytes that it would use under a larger
     * budget. Only messages that state the whole budget use these numbers. */
    uint64_t caller_bytes, caller_most_bytes;
    /* Enables commits (slc_builder_commit), from which a later build with the same identity
     * resumes. Ignored if temp_folder is set, because no later run could find the owner of a spill
     * file that was left there. */
    bool resumable;
    /* Like `resumable`, but without commits: a later build can reuse only a complete store. */
    bool completable;
    bool note_complete; /* with `completable`: also record that a short build is complete */
    struct slc_build_identity identity;
    bool restart;          /* removes the state of an earlier run instead of resuming */
    double commit_seconds; /* time between commits; 0: chosen from their cost */
    /* Callback that adds further files to the store (names, titles) and lists them in the manifest.
     * It is called after the block file is complete and before the manifest is written. `folder` is
     * the folder of the block file; `manifest` already has its mode sizes. If a build resumes, the
     * callback is called again. NULL: no callback. */
    enum slc_status (*attach)(void *context,
                              const char *folder,
                              struct slc_manifest *manifest,
                              struct slc_error *err);
    void *attached; /* context of `attach` */
    /* bit n is set if the indices of mode n were renumbered (publish/relabel.c) */
    uint64_t relabelled_modes;
    void (*publishing)(void);    /* as in struct slc_convert_options */
    const struct slc_stop *stop; /* ends push and finish with SLC_ERR_INTERRUPTED; may be NULL */
    /* Called by finish() with the number of entries whose sort has started and the total number.
     * NULL: no callback. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

/* Coordinates of consecutive input entries, as one array per mode, and their values. */
struct slc_entries {
    unsigned order;
    uint32_t count;
    const uint64_t *coords[SLC_MAX_ORDER];
    const double *values; /* finite; unless keep_zeros, zeros are dropped after combining */
    /* Position in the input: entry j has the position (sequence, first + j), and duplicates are
     * combined by ascending position. Chunks with the same sequence must be pushed by one worker,
     * one after the other, each with a `first` above the positions of all earlier entries. */
    uint64_t sequence;
    uint32_t first;
};

/* Result of relabelling (renumbering the indices of) a mode. */
enum slc_relabel_verdict {
    SLC_RELABEL_UNASKED,
    SLC_RELABELLED,
    SLC_RELABEL_IN_ORDER,  /* frequencies of its indices already descend */
    SLC_RELABEL_TOO_LONG,  /* its permutation would be at least as large as all coordinates */
    SLC_RELABEL_TOO_LARGE, /* the store would be larger */
};

struct slc_relabel_report {
    enum slc_relabel_verdict verdict[SLC_MAX_ORDER];
    uint64_t plain_bytes;       /* size of the block file with the numbering of the input */
    uint64_t plain_index_bytes; /* bytes of the coordinates in that block file */
    uint64_t tried_bytes;       /* size of the relabelled block file; 0: none was built */
    uint64_t tried_index_bytes;
    uint64_t permutation_bytes; /* size of the permutation files */
    double seconds;
};

struct slc_fiber_report {
    struct slc_fiber_run run; /* fiber run of the store; all zero: none */
    /* True if chosen from the nonzeros, not by the caller; then the fields below are set. */
    bool chosen;
    unsigned mode;    /* the mode whose fibers form the fewest pieces */
    double piece_nnz; /* average nonzeros per piece; 0 if there are no nonzeros */
};

struct slc_builder_report {
    uint64_t entries;        /* pushed entries */
    uint64_t duplicates;     /* entries merged into an earlier entry */
    uint64_t explicit_zeros; /* entries dropped because their value or sum is 0 */
    uint64_t rounded_values; /* values changed by rounding to SLC_VALUE_F32 */
    uint64_t spill_bytes;    /* bytes written to the spill file, including those of splits */
    uint64_t buckets;
    uint64_t recursions;   /* splits of buckets (convert/build/build_split.h) */
    unsigned layout_count; /* additional layouts of the store */
    struct slc_build_layout layouts[SLC_MAX_LAYOUTS];
    /* Times, summed over workers. spill_seconds: waiting for the spill file and splitting buckets.
     * sort_seconds: sorting and reading from the spill file. write_seconds: appending tiles. */
    double spill_seconds, sort_seconds, encode_seconds, write_seconds;
    bool resumed;                      /* the build resumed from an earlier run */
    uint64_t kept_nnz;                 /* nonzeros that the earlier run had already written */
    bool completed;                    /* the earlier run had written the whole store */
    double commit_seconds;             /* time spent on commits */
    struct slc_writer_summary summary; /* summary of the final store */
    struct slc_fiber_report fibers;
    struct slc_relabel_report relabel;
};

#endif
