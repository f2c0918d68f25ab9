/* What a sweep came to: a table, a plot in text, and which rank is suggested and why. */
#ifndef SLC_TOOLS_SWEEP_REPORT_H
#define SLC_TOOLS_SWEEP_REPORT_H

#include "sweep/sweep_suggest.h"

/* Table, plot and suggestion on standard output. */
void sweep_report(const struct slc_sweep_record *record,
                  const struct slc_sweep_suggestion *suggestion,
                  const char *folder);

#endif
