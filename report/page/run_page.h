/* Writes the page about a run. The content comes from run.json, the checkpoint and the factors, as
 * far as these files exist. The contents of these files are not trusted. */
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
    const json_t *record; /* run.json; NULL if there is no record */
    /* checkpoint as printed by `sluice info --json`; NULL if there is none */
    const json_t *checkpoint;
    const struct slc_run_folder *run; /* the model; its order is 0 if there are no factors */

    /* The components that are shown, by descending weight, with their top rows and bands. */
    uint32_t component_count;
    uint32_t components[SLC_MAX_RANK]; /* numbers from 0 */
    uint64_t row_counts[SLC_MAX_ORDER];
    struct slc_top_row *rows[SLC_MAX_ORDER];
    uint32_t band_counts[SLC_MAX_ORDER];
    struct slc_band *bands[SLC_MAX_ORDER];
    struct slc_run_names *names; /* names of the indices of the top rows */
};

/* Writes the page. Errors: those of writing, and SLC_ERR_MEMORY. */
enum slc_status slc_run_page_write(const struct slc_run_page *page,
                                   struct slc_output *output,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
