/*
 * A page that tells what a run was and what has come of it, or how the runs of a sweep compare: one
 * HTML file without a script, and without a reference to anything outside it. Factors are streamed,
 * once for the strongest rows and once for the pictures; what is kept of them goes with what is
 * told, and not with the modes.
 */
#ifndef SLC_REPORT_REPORT_H
#define SLC_REPORT_REPORT_H

#include "base/error/error.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_REPORT_ROWS_MAX = 1000 };

struct slc_report_options {
    const char *folder;                 /* of a run, a checkpoint, factors or a sweep; NULL: */
    const struct slc_model_view *model; /* one in memory, borrowed, .. */
    const char *record;       /* .. with the text of its record (run.json); NULL: it has none */
    const char *output;       /* the page */
    uint64_t components;      /* to tell of at most, the heaviest first: 1 to SLC_MAX_RANK */
    uint64_t rows;            /* of each mode of a component: 1 to SLC_REPORT_ROWS_MAX */
    const char *store;        /* with the names of indices; NULL: as slc_run_names_open */
    uint64_t memory_bytes;    /* budget */
    bool overwrite;           /* a file at `output` is replaced */
    void (*publishing)(void); /* called when the page is about to get its name; may be NULL */
};

/*
 * Writes the page beside its place and renames it there; *ret_bytes is its size. Errors:
 * SLC_ERR_USAGE for numbers out of range and an output within a store; SLC_ERR_INPUT where the
 * folder has none of these, or the record is not the model's; SLC_ERR_FORMAT for damaged
 * checkpoints and sweeps; SLC_ERR_IO where the output is there, or is no file; SLC_ERR_BUDGET;
 * those of reading, of writing and of slc_run_names_open. There is no page after an error, or the
 * old one.
 */
enum slc_status slc_report(const struct slc_report_options *options,
                           uint64_t *ret_bytes,
                           struct slc_error *err) SLC_NODISCARD;

#endif
