/* Compares runs: their records, and the components of each run with those of the first. */
#ifndef SLC_REPORT_RUNS_COMPARE_H
#define SLC_REPORT_RUNS_COMPARE_H

#include "base/error/error.h"
#include "report/factors/top.h"
#include "storage/model/run_folder.h"
#include "storage/model/run_names.h"
#include "sweep/run_match.h"

#include <jansson.h>
#include <stdint.h>

enum { SLC_RUNS_COMPARE_MAX = 64 };

struct slc_runs_compare_options {
    const struct slc_files *files; /* NULL: the operating system */
    unsigned count;                /* runs, 1 to SLC_RUNS_COMPARE_MAX */
    const char *const *folders;
    uint64_t rows;            /* top rows to find per component and mode; 0: none */
    uint64_t memory_bytes;    /* the budget */
    const volatile int *stop; /* may be NULL */
};

struct slc_compared_run {
    const char *folder;
    struct slc_run_folder run;
    struct slc_run_names names;  /* not opened if `top` has the names: slc_compared_names */
    json_t *options;             /* member "options" of run.json; NULL if there is no record */
    struct slc_run_match *match; /* match with the first run; NULL for the first run */
    struct slc_top *top;         /* top rows of all components by number; NULL if rows is 0 */
};

struct slc_runs_comparison {
    unsigned count;
    struct slc_compared_run *run[SLC_RUNS_COMPARE_MAX];
};

/* Reads and compares the runs. Rows of factors correspond by name if the tensors of two runs differ
 * and have names, and by index otherwise. Memory: two factors of one mode at a time. Ownership:
 * release with slc_runs_comparison_close, also after an error. Errors: SLC_ERR_USAGE; SLC_ERR_INPUT
 * if a folder is not a run or the modes of the runs differ; SLC_ERR_BUDGET; SLC_ERR_INTERRUPTED;
 * those of reading. */
enum slc_status slc_runs_compare(const struct slc_runs_compare_options *options,
                                 struct slc_runs_comparison *comparison,
                                 struct slc_error *err) SLC_NODISCARD;
void slc_runs_comparison_close(struct slc_runs_comparison *comparison);

/* Returns the names of the indices of a run. */
struct slc_run_names *slc_compared_names(struct slc_compared_run *compared);

/* Writes the name of the k-th top row of a component in a mode to `text`, or its index from 1 if it
 * has no name. Errors: those of slc_run_names_text. */
enum slc_status slc_compared_top_text(struct slc_compared_run *compared,
                                      uint32_t component,
                                      unsigned mode,
                                      uint64_t k,
                                      char text[SLC_NAME_TEXT_BYTES],
                                      struct slc_error *err) SLC_NODISCARD;

/* Returns a new array of the names of the options that differ between runs, in alphabetic order.
 * options[i] is the member "options" of a record, or NULL for a run without a record. NULL if
 * memory does not suffice. */
json_t *slc_options_that_differ(unsigned count, json_t *const *options);
/* Does the same for the runs of a comparison. */
json_t *slc_runs_options_that_differ(const struct slc_runs_comparison *comparison);

#endif
