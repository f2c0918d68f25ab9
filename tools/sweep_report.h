/* What a sweep came to: which rank is suggested and why, a table, and a plot in text. */
#ifndef SLC_TOOLS_SWEEP_REPORT_H
#define SLC_TOOLS_SWEEP_REPORT_H

#include "sweep_record.h"

#include <jansson.h>

/*
 * A core consistency of 80 % or more is where the literature calls a model trilinear beyond doubt
 * enough (Bro and Kiers 2003 speak of "close to 90"), below half of it invalid; runs whose factor
 * match score is 0.9 or more have found the same components (Tensor Toolbox, `score`).
 */
#define SWEEP_CONSISTENCY_GOOD 80.0
#define SWEEP_AGREEMENT_GOOD   0.9

struct sweep_suggestion {
    uint32_t rank;                   /* 0: none */
    uint32_t best_rank;              /* whose best run is the result: that, or of the largest fit */
    char folder[SWEEP_FOLDER_BYTES]; /* of that run */
    char why[320];                   /* a sentence without its end */
};

/*
 * The largest rank whose best run has a good core consistency and whose runs agree; where no core
 * consistency is known, or none is good, whose runs agree; runs that were not compared with others
 * count as if they agreed in the first case, and as if not in the second. Needs: a run.
 */
void sweep_suggest(const struct sweep_record *record, struct sweep_suggestion *suggestion);

/* For sweep.json. */
json_t *sweep_suggestion_json(const struct sweep_suggestion *suggestion);

/* Table, plot and suggestion on standard output. */
void sweep_report(const struct sweep_record *record,
                  const struct sweep_suggestion *suggestion,
                  const char *folder);

#endif
