/* Writes the page about a sweep: a comparison of its ranks and starts, and the suggested rank. */
#ifndef SLC_REPORT_PAGE_SWEEP_PAGE_H
#define SLC_REPORT_PAGE_SWEEP_PAGE_H

#include "report/page/html.h"
#include "sweep/sweep_record.h"

#include <jansson.h>

struct slc_sweep_page {
    const char *folder;
    const struct slc_sweep_record *record; /* the record as read from the file */
    /* run.json of the best run, which contains the command; NULL if there is no record */
    const json_t *best;
};

/* Writes the page. Errors: those of writing, and SLC_ERR_MEMORY. */
enum slc_status slc_sweep_page_write(const struct slc_sweep_page *page,
                                     struct slc_output *output,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
