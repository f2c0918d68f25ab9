/* Recognizes tensors of ratings. For ratings, a cell that is not listed is unknown rather than 0,
 * so the summary of a run states how the run treats such cells. */
#ifndef SLC_REPORT_RATINGS_H
#define SLC_REPORT_RATINGS_H

#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the values of a store look like ratings, such as stars from 0.5 to 5: two or more
 * modes, few listed cells, 3 to 16 distinct values from 0 to 10 in steps of 0.5, few duplicates,
 * and a root mean square of at least the middle of the range (most counts are small). Returns false
 * if the store has no statistics of values, or has transformed values. */
bool slc_looks_like_ratings(const struct slc_manifest *manifest);

/* Returns false if the values do not look like ratings. Otherwise writes a sentence without full
 * stop to `text`: whether cells that are not listed are `unknown` to the run or count as zeros, and
 * what the model then explains. */
bool slc_ratings_note(const struct slc_manifest *manifest, bool unknown, char *text, size_t bytes);

#endif
