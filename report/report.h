/* Writes an HTML page about a run, a sweep, several runs, or a folder of runs: one file without
 * scripts or external references. Factors are read twice, for the top rows and for the pictures;
 * memory grows with the size of the page, not with the size of the modes. */
#ifndef SLC_REPORT_REPORT_H
#define SLC_REPORT_REPORT_H

#include "base/error/error.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_REPORT_ROWS_MAX = 1000 };

struct slc_report_options {
    /* folder of a run, a checkpoint, factors or a sweep, or a folder whose subfolders are runs,
     * such as those of a job array; NULL means `model` */
    const char *folder;
    /* Runs that are compared with the run in `folder`; more_count 0: none. */
    unsigned more_count;
    const char *const *more;
    const struct slc_model_view *model; /* model in memory; borrowed */
    /* text of the model's record (run.json); NULL if there is no record */
    const char *record;
    const char *output; /* path of the page */
    /* maximum number of components shown, by descending weight: 1 to SLC_MAX_RANK */
    uint64_t components;
    /* number of top rows per component and mode: 1 to SLC_REPORT_ROWS_MAX */
    uint64_t rows;
    const char *store;        /* store with names of indices; for NULL, see slc_run_names_open */
    uint64_t memory_bytes;    /* budget */
    bool overwrite;           /* true if an existing file at `output` is replaced */
    void (*publishing)(void); /* called before the page is renamed to `output`; may be NULL */
};

/* Writes the page under a temporary name and renames it; stores its size in *ret_bytes. Errors:
 * SLC_ERR_USAGE for numbers out of range and an output within a store; SLC_ERR_INPUT if the folder
 * has no run, checkpoint, factors or sweep, or if the record belongs to another model;
 * SLC_ERR_FORMAT for damaged checkpoints and sweeps; SLC_ERR_IO if the output exists and
 * `overwrite` is false, or if it is a folder or a device; SLC_ERR_BUDGET; those of reading, of
 * writing and of slc_run_names_open. After an error an existing page is unchanged. */
enum slc_status slc_report(const struct slc_report_options *options,
                           uint64_t *ret_bytes,
                           struct slc_error *err) SLC_NODISCARD;

#endif
