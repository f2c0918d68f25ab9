/* Which rank the runs of a sweep suggest, and why. */
#ifndef SLC_REPORT_SWEEP_SUGGEST_H
#define SLC_REPORT_SWEEP_SUGGEST_H

#include "sweep/sweep_record.h"

#include <jansson.h>

/*
 * A core consistency of 80 % or more is where the literature calls a model trilinear beyond doubt
 * enough (Bro and Kiers 2003 speak of "close to 90"), below half of it invalid; runs whose factor
 * match score is 0.9 or more have found the same components (Tensor Toolbox, `score`).
 */
#define SLC_SWEEP_CONSISTENCY_GOOD 80.0
#define SLC_SWEEP_AGREEMENT_GOOD   0.9

struct slc_sweep_suggestion {
    uint32_t rank;      /* 0: none */
    uint32_t best_rank; /* whose best run is the result: that, or of the largest fit */
    char folder[SLC_SWEEP_FOLDER_BYTES]; /* of that run */
    char why[320];                       /* a sentence without its end */
};

/*
 * The largest rank whose best run has a good core consistency and whose runs agree; where no core
 * consistency is known, or none is good, whose runs agree; runs that were not compared with others
 * count as if they agreed in the first case, and as if not in the second. Needs: a run.
 */
void slc_sweep_suggest(const struct slc_sweep_record *record,
                       struct slc_sweep_suggestion *suggestion);

/* For sweep.json. */
json_t *slc_sweep_suggestion_json(const struct slc_sweep_suggestion *suggestion);

#endif
