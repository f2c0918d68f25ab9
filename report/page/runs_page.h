/* Writes the page about several runs: a table of all runs, the options that differ and, if the runs
 * were compared, their matched components. */
#ifndef SLC_REPORT_PAGE_RUNS_PAGE_H
#define SLC_REPORT_PAGE_RUNS_PAGE_H

#include "report/factors/runs_compare.h"
#include "report/page/html.h"

#include <jansson.h>
#include <stdint.h>

struct slc_runs_page_run {
    char *name;      /* folder, as shown */
    char *link;      /* path of a file to link to, relative to the page or absolute; NULL: none */
    json_t *options; /* NULL if there is no record */
    uint32_t rank, iterations;
    double fit, heldout_rmse, seconds; /* NaN if unknown */
    char reason[16];
};

struct slc_runs_page {
    const char *title;
    const char *intro; /* what the page is about, without a full stop */
    unsigned count;
    unsigned skipped; /* runs that are left out because their record cannot be read */
    const struct slc_runs_page_run *runs;
    const json_t *differ;                   /* names of the options that differ */
    struct slc_runs_comparison *comparison; /* comparison of `runs`, with top rows; or NULL */
};

/* Writes the page. Errors: those of writing and of reading names; SLC_ERR_MEMORY. */
enum slc_status slc_runs_page_write(const struct slc_runs_page *page,
                                    struct slc_output *output,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
