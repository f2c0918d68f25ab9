/* sluice layout: what is told of layouts that are there, that would be, and that have been built.
 */
#ifndef SLC_TOOLS_LAYOUT_REPORT_H
#define SLC_TOOLS_LAYOUT_REPORT_H

#include "convert/layout/relayout.h"
#include "tools/forecast/forecast_ahead.h"

/* The layouts of a store, from the manifest alone: another run may be changing the store, or
 * replacing it. Errors: as slc_manifest_read. */
enum slc_status layout_print_list(const char *store, struct slc_error *err) SLC_NODISCARD;

/* What would be built. */
void layout_print_plan(const struct slc_relayout *layouts,
                       enum slc_layout_kind kind,
                       unsigned mode,
                       const struct slc_sorted_plan *plan);

/* What it would read, how long it would take, and whether the disk has room. */
enum slc_status layout_judge(const struct slc_relayout *layouts,
                             const struct slc_sorted_plan *plan,
                             bool quiet,
                             struct slc_error *err) SLC_NODISCARD;

/* What a run that adds layouts is expected to take, judged by the plan of each. */
struct layout_expected {
    struct forecast_ahead ahead;
    const struct slc_relayout *layouts;
    uint64_t made_bytes; /* of the files, as they turned out */
    bool resumed;        /* some was there of an interrupted build: less is read and written */
};

/* `planned` of struct slc_relayout_options; `expected` is a struct layout_expected. */
void layout_expect(void *expected, const struct slc_sorted_plan *plan);

/* What has been built; `verbose`: and by which scans, in which time. */
void layout_print_report(const struct slc_relayout *layouts,
                         enum slc_layout_kind kind,
                         unsigned mode,
                         const struct slc_sorted_report *report,
                         bool verbose);

#endif
