/*
 * The page that `sluice report` writes: one HTML file without a script, and without a reference to
 * anything outside it. What is told comes from run.json, from a checkpoint and from the factors, as
 * far as there are any; nothing in them is believed.
 */
#ifndef SLC_REPORT_PAGE_RUN_PAGE_H
#define SLC_REPORT_PAGE_RUN_PAGE_H

#include "base/memory/limits.h"
#include "report/factors/factor_rows.h"
#include "report/page/html.h"
#include "storage/model/run_folder.h"
#include "storage/model/run_names.h"

#include <jansson.h>

struct slc_run_page {
    const char *folder;
    const json_t *record;             /* run.json; NULL for none */
    const json_t *checkpoint;         /* as `sluice info --json` tells it; NULL for none */
    const struct slc_run_folder *run; /* of order 0 where there are no factors */

    /* What has been found of the components that are told, the heaviest first. */
    uint32_t component_count;
    uint32_t components[SLC_MAX_RANK]; /* from 0 */
    uint64_t row_counts[SLC_MAX_ORDER];
    struct slc_top_row *rows[SLC_MAX_ORDER];
    uint32_t band_counts[SLC_MAX_ORDER];
    struct slc_band *bands[SLC_MAX_ORDER];
    struct slc_run_names *names; /* of the indices of these rows */
};

/* Errors: those of writing, and SLC_ERR_MEMORY. */
enum slc_status slc_run_page_write(const struct slc_run_page *page,
                                   struct slc_output *output,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
