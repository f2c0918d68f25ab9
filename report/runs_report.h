/* Collects the runs of a page about several runs (report/page/runs_page.h). */
#ifndef SLC_REPORT_RUNS_REPORT_H
#define SLC_REPORT_RUNS_REPORT_H

#include "base/error/error.h"
#include "report/page/runs_page.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_runs_list {
    unsigned count, capacity;
    struct slc_runs_page_run *runs;
    unsigned skipped; /* folders whose record cannot be read */
};

/* Reads the records of the runs in folders directly below `folder`, and sorts them by descending
 * fit. A folder without a run.json is skipped. A folder whose run.json cannot be read is skipped
 * with a warning; if no run is left, the error of this run.json is returned. If `folder` cannot be
 * listed, the list is empty. Links are relative to the folder of `output` if possible. Ownership:
 * release with slc_runs_list_clear, also after an error. Memory: one record at a time, and the
 * options of all runs. Errors: SLC_ERR_MEMORY; SLC_ERR_INPUT or SLC_ERR_IO if no record can be
 * read. */
enum slc_status slc_runs_list_read(const char *folder,
                                   const char *output,
                                   struct slc_runs_list *list,
                                   struct slc_error *err) SLC_NODISCARD;

/* Adds the run in `folder`, with the given name; *found is false if the folder has no run.json.
 * Errors: SLC_ERR_IO, SLC_ERR_MEMORY; SLC_ERR_INPUT for a malformed record. */
enum slc_status slc_runs_list_add(struct slc_runs_list *list,
                                  const char *folder,
                                  const char *name,
                                  const char *output,
                                  bool *found,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_runs_list_clear(struct slc_runs_list *list);

#endif
