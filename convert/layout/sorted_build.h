/* Writes the block file of a sorted-n or fiber-n layout from the blco layout. Each scan gathers as
 * many partitions as fit in memory (convert/layout/sorted_gather.h). The gathered nonzeros are
 * sorted if the keys differ from those of the blco layout, and encoded in place. The bytes of the
 * file do not depend on threads or memory. */
#ifndef SLC_CONVERT_SORTED_BUILD_H
#define SLC_CONVERT_SORTED_BUILD_H

#include "base/error/error.h"
#include "convert/layout/sorted_cuts.h"
#include "convert/layout/sorted_gather.h"
#include "storage/block/writer.h"

#include <stdbool.h>
#include <stdint.h>

/* Plan of a sorted-n or fiber-n layout: the partitions of sorted-n, and the ranges gathered per
 * scan. A fiber-n layout is built as one partition with all rows. */
struct slc_sorted_plan;

struct slc_sorted_options {
    const struct slc_files *files;
    const struct slc_reader *reader; /* reader of the blco layout */
    enum slc_layout_kind layout;     /* sorted or fiber */
    unsigned mode;
    const char *path; /* the block file to write */
    /* target size of a block; 0: SLC_DEFAULT_BLOCK_BYTES, which is also the largest target */
    uint64_t block_bytes;
    bool keep_journal; /* keep the journal of a finished file, for slc_sorted_finished */
    unsigned workers;
    uint64_t memory_bytes;       /* limit of all memory that the build maps and allocates */
    uint64_t budget_bytes;       /* for messages: the whole budget */
    uint64_t caller_bytes;       /* for messages: the bytes of the budget that the caller uses */
    const struct slc_stop *stop; /* may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
    void *context; /* argument of progress */
    /* Called once, after planning and before writing; NULL: no callback. */
    void (*planned)(void *context, const struct slc_sorted_plan *plan);
    void *planned_context;
};

struct slc_sorted_plan {
    unsigned workers;
    struct slc_key_layout keys; /* keys of the layout to be built */
    /* each range must be sorted: the keys differ from the keys of the input file */
    bool sorts;
    uint64_t area_nnz;   /* maximum number of nonzeros that are gathered at a time */
    uint64_t area_bytes; /* bytes for area_nnz nonzeros; twice as many if `sorts` */
    uint64_t need_bytes; /* bytes that the build needs in total */
    struct slc_sorted_cuts cuts;
    /* One range per partition, but a single range for a row that is cut into several partitions. A
     * range that does not fit in memory is cut further by keys. */
    struct slc_gather_range *ranges;
    uint64_t range_count;
    uint64_t ranges_max;  /* maximum number of ranges per scan */
    uint64_t batches;     /* number of scans that gather nonzeros */
    unsigned count_scans; /* number of earlier scans, which count nonzeros or fibers */
    double count_seconds;
};

/* Returns the smallest memory_bytes that is sufficient with one worker. */
uint64_t slc_sorted_memory_min(const struct slc_layout_info *info);

/* Divides memory, counts nonzeros per row, cuts the rows into partitions, and chooses keys
 * (convert/layout/sorted_run.h). Ownership: release with slc_sorted_plan_destroy, which accepts an
 * all-zero struct. Errors: SLC_ERR_BUDGET naming the smallest sufficient memory; those of
 * slc_row_count, slc_sorted_run_choose and slc_key_cuts_make. */
enum slc_status slc_sorted_plan_make(const struct slc_sorted_options *options,
                                     struct slc_sorted_plan *plan,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_sorted_plan_destroy(struct slc_sorted_plan *plan);

/* Returns the number of ranges, starting at `first`, that one scan gathers if the area already
 * holds `rest` nonzeros of an incomplete tile. */
uint64_t slc_sorted_plan_batch(const struct slc_sorted_plan *plan, uint64_t first, uint64_t rest);

/* Creates a gatherer for the plan. Ownership: release with slc_gather_destroy. Errors: those of
 * slc_gather_create. */
enum slc_status slc_sorted_plan_gather(const struct slc_sorted_plan *plan,
                                       const struct slc_sorted_options *options,
                                       struct slc_gather **gather,
                                       struct slc_error *err) SLC_NODISCARD;

struct slc_sorted_report {
    uint64_t partitions, split_rows;
    struct slc_fiber_run run; /* fiber run of the keys */
    uint64_t kept_nnz;        /* nonzeros kept from an earlier, interrupted build */
    unsigned count_scans;
    uint64_t gather_scans;
    double count_seconds, gather_seconds, sort_seconds;
    double emit_seconds;                  /* wall-clock time of encoding and writing */
    double encode_seconds, write_seconds; /* time for the same work, summed over workers */
    struct slc_writer_summary summary;
};

/* Writes options->path, or resumes if an earlier build of this file was interrupted
 * (storage/block/writer.h). Errors: those of slc_sorted_plan_make; SLC_ERR_DAMAGED if the nonzeros
 * do not match the header of the input file; SLC_ERR_NOSPACE; SLC_ERR_IO; SLC_ERR_INTERRUPTED.
 * Except after SLC_ERR_DAMAGED, the file and its journal are kept, and the next call resumes. */
enum slc_status slc_sorted_build(const struct slc_sorted_options *options,
                                 struct slc_sorted_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

/* Sets *finished to true if a build with these options finished the file at `path` and kept its
 * journal. In that case, syncs the file and fills in *report. No block is read, because all blocks
 * were synced before the header was written. Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_sorted_finished(const struct slc_sorted_options *options,
                                    const char *path,
                                    struct slc_sorted_report *report,
                                    bool *finished,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
