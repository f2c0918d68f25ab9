/* Compares the runs of a rank: the similarity of the runs, and the core consistency of the best
 * run. */
#ifndef SLC_SWEEP_COMPARE_H
#define SLC_SWEEP_COMPARE_H

#include "base/error/error.h"
#include "sweep/sweep_record.h"

#include <jansson.h>
#include <stdint.h>

/* Whether the core consistency of each rank's best run is computed. */
enum slc_consistency {
    SLC_CONSISTENCY_AUTO, /* if it takes no more than a few minutes */
    SLC_CONSISTENCY_ALWAYS,
    SLC_CONSISTENCY_NEVER
};

struct slc_sweep_comparison {
    const char *store;
    const char *folder; /* folder of the sweep */
    enum slc_consistency consistency;
    uint64_t memory_bytes;    /* 0: the default budget */
    unsigned threads;         /* 0: all */
    const volatile int *stop; /* not 0: SLC_ERR_INTERRUPTED; may be NULL */
};

/*
 * Compares the runs of a rank, whose factors must be in their folders, with the best run of the
 * rank, and computes the core consistency of the best run. Changes the record, but does not write
 * it. Parts for which memory or, with auto, time does not suffice are omitted, with the reason in
 * the rank's note. Errors: those of reading the store and the factors; SLC_ERR_MEMORY;
 * SLC_ERR_INTERRUPTED.
 */
enum slc_status slc_sweep_compare_rank(const struct slc_sweep_comparison *comparison,
                                       struct slc_sweep_record *record,
                                       uint32_t rank,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * The literature calls a model trilinear if its core consistency is close to 90 % ([Bro2003]), and
 * invalid below half of that value; the limit of 80 % clearly separates the two cases. Runs with a
 * factor match score of 0.9 or more have the same components (Tensor Toolbox, `score`).
 */
#define SLC_SWEEP_CONSISTENCY_GOOD 80.0
#define SLC_SWEEP_AGREEMENT_GOOD   0.9

struct slc_sweep_suggestion {
    uint32_t rank;      /* 0: none */
    uint32_t best_rank; /* `rank`, or the rank with the largest fit if `rank` is 0 */
    char folder[SLC_SWEEP_FOLDER_BYTES]; /* folder of the best run of best_rank */
    char why[320];                       /* a sentence without its full stop */
};

/*
 * Suggests the largest rank whose best run has a good core consistency and whose runs agree; if
 * there is none, the largest rank whose runs agree. Runs that were not compared with others count
 * as agreeing in the first case, and as not agreeing in the second. Needs: a run.
 */
void slc_sweep_suggest(const struct slc_sweep_record *record,
                       struct slc_sweep_suggestion *suggestion);

/* Returns the suggestion as a member of sweep.json. */
json_t *slc_sweep_suggestion_json(const struct slc_sweep_suggestion *suggestion);

#endif
