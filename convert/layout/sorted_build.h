/*
 * Writes the block file of a layout sorted-n, or fiber-n, from that of the layout blco: partitions
 * are gathered (convert/layout/sorted_gather.h), as many in one scan as there is memory for, sorted
 * by key where their keys are others than those of blco, and encoded from where they lie. The file
 * has the same bytes for any number of threads and any memory.
 */
#ifndef SLC_CONVERT_SORTED_BUILD_H
#define SLC_CONVERT_SORTED_BUILD_H

#include "base/error/error.h"
#include "convert/layout/sorted_plan.h"
#include "storage/block/writer.h"

#include <stdint.h>

struct slc_sorted_report {
    uint64_t partitions, split_rows;
    struct slc_fiber_run run; /* of the keys */
    uint64_t kept_nnz;        /* nonzeros of an earlier, interrupted build */
    unsigned count_scans;
    uint64_t gather_scans;
    double count_seconds, gather_seconds, sort_seconds;
    double emit_seconds;                  /* encoding and writing, by the clock .. */
    double encode_seconds, write_seconds; /* .. and of all workers */
    struct slc_writer_summary summary;
};

/*
 * Writes options->path, or goes on with what an interrupted build left there
 * (storage/block/writer.h). Errors: as slc_sorted_plan_make; SLC_ERR_DAMAGED where the nonzeros
 * read are not those that the file's header tells of; SLC_ERR_NOSPACE, SLC_ERR_IO;
 * SLC_ERR_INTERRUPTED. After all but damage the file and its journal stay, and the next call goes
 * on with them.
 */
enum slc_status slc_sorted_build(const struct slc_sorted_options *options,
                                 struct slc_sorted_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Whether a build of these options, which kept its journal, had finished its file, which is now at
 * `path`: then it is synced, and *report tells of it. No block is read: all were synced before the
 * header was written. Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status slc_sorted_finished(const struct slc_sorted_options *options,
                                    const char *path,
                                    struct slc_sorted_report *report,
                                    bool *finished,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
