#include "report/ratings.h"

#include <math.h>
#include <stdio.h>

/* Fewest distinct values, smallest maximum and largest maximum of ratings. */
enum { DISTINCT_LEAST = 3, HIGH_LEAST = 2, HIGH_MOST = 10 };
/* Largest fraction of all cells that are listed, and largest fraction of duplicates. */
#define DENSITY_MOST    0.25
#define DUPLICATES_MOST 0.1

/* Returns true if the distinct values are few multiples of 0.5 in the range of ratings. */
static bool has_steps(const struct slc_value_stats *values)
{
    bool steps = values->distinct >= DISTINCT_LEAST && values->distinct <= SLC_DISTINCT_MAX &&
                 values->low >= 0 && values->high >= HIGH_LEAST && values->high <= HIGH_MOST;

    for (unsigned i = 0; i < values->distinct && steps; i++) {
        steps = trunc(2 * values->listed[i]) == 2 * values->listed[i];
    }
    return steps;
}

bool slc_looks_like_ratings(const struct slc_manifest *manifest)
{
    const struct slc_value_stats *values = &manifest->values;
    const struct slc_store_origin *origin = &manifest->origin;
    const double middle = (values->low + values->high) / 2;
    double cells = 1;

    for (unsigned n = 0; n < manifest->order; n++) {
        cells *= (double)manifest->dims[n];
    }
    return has_steps(values) && manifest->order >= 2 && origin->transforms[0] == '\0' &&
           (double)manifest->nnz <= DENSITY_MOST * cells &&
           (double)origin->duplicates <= DUPLICATES_MOST * (double)origin->entries_read &&
           manifest->sum_of_squares >= middle * middle * (double)manifest->nnz;
}

bool slc_ratings_note(const struct slc_manifest *manifest, bool unknown, char *text, size_t bytes)
{
    const struct slc_value_stats *values = &manifest->values;

    if (!slc_looks_like_ratings(manifest)) {
        return false;
    }
    (void)snprintf(text, bytes,
                   "the values look like ratings (%u distinct values from %.4g to %.4g): %s",
                   values->distinct, values->low, values->high,
                   unknown ? "cells that are not listed are unknown to this run, and the model "
                             "predicts their values"
                           : "this run counts cells that are not listed as zeros, so the model "
                             "mostly explains which cells are listed; it does not predict ratings");
    return true;
}
