/* See sweep_suggest.h. */
#include "sweep/sweep_suggest.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool trilinear(const struct slc_sweep_rank *rank)
{
    return rank->consistency >= SLC_SWEEP_CONSISTENCY_GOOD; /* not where it is NAN */
}

static bool agreed(const struct slc_sweep_rank *rank, bool unknown)
{
    return isnan(rank->agreement) ? unknown : rank->agreement >= SLC_SWEEP_AGREEMENT_GOOD;
}

/* The largest rank that meets what is asked for; NULL: none. */
static const struct slc_sweep_rank *largest(const struct slc_sweep_record *record, bool by_core)
{
    const struct slc_sweep_rank *found = NULL;

    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_rank *rank = &record->ranks[i];

        if (by_core ? trilinear(rank) && agreed(rank, true) : agreed(rank, false)) {
            found = rank;
        }
    }
    return found;
}

static const struct slc_sweep_run *largest_fit(const struct slc_sweep_record *record)
{
    const struct slc_sweep_run *best = NULL;

    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_run *run = slc_sweep_record_best(record, record->ranks[i].rank);

        if (run != NULL && (best == NULL || run->fit > best->fit)) {
            best = run;
        }
    }
    return best;
}

void slc_sweep_suggest(const struct slc_sweep_record *record,
                       struct slc_sweep_suggestion *suggestion)
{
    const struct slc_sweep_rank *rank = largest(record, true);
    const struct slc_sweep_run *best;

    memset(suggestion, 0, sizeof *suggestion);
    if (rank != NULL) {
        (void)snprintf(suggestion->why, sizeof suggestion->why,
                       "the largest rank with a core consistency of %.0f %% or more%s",
                       SLC_SWEEP_CONSISTENCY_GOOD,
                       isnan(rank->agreement) ? "" : " whose runs agree to 0.9 or more");
    } else if ((rank = largest(record, false)) != NULL) {
        (void)snprintf(suggestion->why, sizeof suggestion->why,
                       "the largest rank whose runs agree to %.1f or more; none that does has a "
                       "core consistency known to be %.0f %% or more",
                       SLC_SWEEP_AGREEMENT_GOOD, SLC_SWEEP_CONSISTENCY_GOOD);
    } else {
        (void)snprintf(suggestion->why, sizeof suggestion->why,
                       "no rank has a core consistency of %.0f %% or more, or runs that agree to "
                       "%.1f or more: the best fit is kept, which larger ranks improve in any case",
                       SLC_SWEEP_CONSISTENCY_GOOD, SLC_SWEEP_AGREEMENT_GOOD);
    }
    best = rank != NULL ? slc_sweep_record_best(record, rank->rank) : largest_fit(record);
    suggestion->rank = rank != NULL ? rank->rank : 0;
    if (best != NULL) {
        suggestion->best_rank = best->rank;
        (void)slc_sweep_folder_name(suggestion->folder, best->rank, best->seed);
    }
}

json_t *slc_sweep_suggestion_json(const struct slc_sweep_suggestion *suggestion)
{
    json_t *object = json_object();

    (void)json_object_set_new(object, "rank",
                              suggestion->rank > 0 ? json_integer(suggestion->rank) : json_null());
    (void)json_object_set_new(object, "why", json_string(suggestion->why));
    (void)json_object_set_new(object, "best", json_string(suggestion->folder));
    return object;
}
