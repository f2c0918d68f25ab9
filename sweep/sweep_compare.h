/* Compares the runs of a rank: computes their similarity and the core consistency of the best
 * run. */
#ifndef SLC_SWEEP_COMPARE_H
#define SLC_SWEEP_COMPARE_H

#include "base/error/error.h"
#include "sweep/sweep_record.h"

#include <jansson.h>
#include <stdint.h>

/* When to compute the core consistency of the best run of a rank. */
enum slc_consistency {
    SLC_CONSISTENCY_AUTO, /* only if it takes at most a few minutes */
    SLC_CONSISTENCY_ALWAYS,
    SLC_CONSISTENCY_NEVER
};

struct slc_sweep_comparison {
    const struct slc_files *files; /* for reading the store; NULL: the operating system */
    const char *store;
    const char *folder; /* folder of the sweep */
    enum slc_consistency consistency;
    uint64_t memory_bytes;    /* 0 means the default budget */
    unsigned threads;         /* 0 means one per processor */
    const volatile int *stop; /* a value other than 0 ends the comparison; may be NULL */
};

/* Compares each run of a rank with the best run of the rank, and computes the core consistency of
 * the best run. The factors of all runs must be in their folders. Changes the record, but does not
 * write it. A result is omitted if it needs more memory than the budget or, with auto, too much
 * time; the rank's note then states the reason. Errors: those of reading the store and the factors;
 * SLC_ERR_MEMORY; SLC_ERR_INTERRUPTED if *stop is not 0. */
enum slc_status slc_sweep_compare_rank(const struct slc_sweep_comparison *comparison,
                                       struct slc_sweep_record *record,
                                       uint32_t rank,
                                       struct slc_error *err) SLC_NODISCARD;

/* Limits of good results. [Bro2003] calls a model trilinear if its core consistency is close to
 * 90 %, and invalid if it is below half of that; the limit of 80 % lies between the two. Two runs
 * whose factor match score is 0.9 or more have the same components (Tensor Toolbox, `score`). */
#define SLC_SWEEP_CONSISTENCY_GOOD 80.0
#define SLC_SWEEP_AGREEMENT_GOOD   0.9

/* Largest error on held-out nonzeros that is as good as the lowest, relative to the lowest. */
#define SLC_SWEEP_HELDOUT_GOOD 1.01
/* Condition number of a factor from which the core consistency can be low for the correct rank. If
 * components share a column in two modes, as the ways to and from work share days and homes, the
 * pseudo-inverses amplify noise: planted models of 10^6 Poisson counts, 20^4 cells and rank 3 had a
 * core consistency of 7 % at a condition of 33, and of -6,182 % at 123. */
#define SLC_SWEEP_CONDITION_DEPENDENT 30.0
/* Part of the unexplained norm (1 - fit) that remains at most, if a rank with such factors explains
 * much more than a smaller rank. */
#define SLC_SWEEP_UNEXPLAINED_LESS 0.8

struct slc_sweep_suggestion {
    uint32_t rank;      /* suggested rank; 0 if no rank meets the criteria */
    uint32_t best_rank; /* `rank`, or the rank with the largest fit if `rank` is 0 */
    char folder[SLC_SWEEP_FOLDER_BYTES]; /* folder of the best run of best_rank */
    char why[320]; /* reason for the suggestion: a sentence without full stop */
};

/* Suggests the largest rank whose best run has a good core consistency and whose runs agree. Runs
 * that did not reach the best fit of their rank do not count. If only one of several runs reached
 * it, the rank is not suggested. From there, the suggestion moves to each larger rank that explains
 * much more, whose runs agree, and whose factors have nearly dependent columns, so that a low core
 * consistency does not count. If no core consistency is good, suggests the largest rank whose runs
 * agree. Runs that were not compared count as agreeing for the first of these suggestions, but not
 * for the second. If slc_sweep_record_by_heldout and nonzeros were held out, suggests the smallest
 * rank whose best run has nearly the lowest mean deviance on them. Needs: a record with a run. */
void slc_sweep_suggest(const struct slc_sweep_record *record,
                       struct slc_sweep_suggestion *suggestion);

/* Returns the suggestion as the JSON object of member "suggestion" of sweep.json. */
json_t *slc_sweep_suggestion_json(const struct slc_sweep_suggestion *suggestion);

#endif
