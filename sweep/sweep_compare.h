/* What the runs of one rank of a sweep tell: how alike they are, and how trilinear the best is. */
#ifndef SLC_SWEEP_COMPARE_H
#define SLC_SWEEP_COMPARE_H

#include "base/error/error.h"
#include "sweep/sweep_record.h"

#include <jansson.h>
#include <stdint.h>

/* Whether the core consistency of each rank's best run is computed. */
enum slc_consistency {
    SLC_CONSISTENCY_AUTO, /* where that takes some minutes at most */
    SLC_CONSISTENCY_ALWAYS,
    SLC_CONSISTENCY_NEVER
};

struct slc_sweep_comparison {
    const char *store;
    const char *folder; /* of the sweep */
    enum slc_consistency consistency;
    uint64_t memory_bytes;    /* 0: the default budget */
    unsigned threads;         /* 0: all */
    const volatile int *stop; /* non-zero: SLC_ERR_INTERRUPTED; may be NULL */
};

/*
 * Compares the runs of a rank, whose factors are there, with the best of them, and computes the
 * core consistency of that; the record is changed, but not written. What there is no memory or,
 * with auto, no time for is left out, and the rank's note says why. Errors: those of reading the
 * store and the factors; SLC_ERR_MEMORY; SLC_ERR_INTERRUPTED.
 */
enum slc_status slc_sweep_compare_rank(const struct slc_sweep_comparison *asked,
                                       struct slc_sweep_record *record,
                                       uint32_t rank,
                                       struct slc_error *err) SLC_NODISCARD;

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
