/* Prints plans and results of layouts that a command builds in a store. */
#ifndef SLC_TOOLS_LAYOUT_REPORT_H
#define SLC_TOOLS_LAYOUT_REPORT_H

#include "convert/layout/relayout.h"

/* Estimates the size of a layout: the size of the first layout, plus half a page of padding and an
 * index entry per partition. */
double layout_disk_bytes(const struct slc_layout_info *info, const struct slc_sorted_plan *plan);

/* Prints the layout that would be built. */
void layout_print_plan(const struct slc_relayout *layouts,
                       enum slc_layout_kind kind,
                       unsigned mode,
                       const struct slc_sorted_plan *plan);

/* Prints the layout that was built and, with `verbose`, the scans and times. */
void layout_print_built(const struct slc_relayout *layouts,
                        enum slc_layout_kind kind,
                        unsigned mode,
                        const struct slc_sorted_report *report,
                        bool verbose);

#endif
