/*
 * Counts distinct 64-bit numbers in a few KiB. Keeps every distinct number until the table is full,
 * then only numbers below a limit, which is halved whenever the table is full again. The kept
 * numbers depend only on the set of numbers, not on their order or on which thread counted them, so
 * joining the counters of several threads gives the same result as one counter.
 *
 * Source: [BarYossef2002] section 2; pairwise independent numbers suffice. The count is exact up to
 * SLC_DISTINCT_KEPT_MAX and has a standard error of 1.6 to 2.2 % above.
 */
#ifndef SLC_CONVERT_DISTINCT_H
#define SLC_CONVERT_DISTINCT_H

#include <stdint.h>

enum {
    SLC_DISTINCT_KEPT_MAX = 4096,
    SLC_DISTINCT_SLOTS = 2 * SLC_DISTINCT_KEPT_MAX,
    SLC_DISTINCT_BYTES = SLC_DISTINCT_SLOTS * 8,
    /* After this many halvings all remaining numbers can be kept. */
    SLC_DISTINCT_HALVINGS_MAX = 52
};

struct slc_distinct {
    uint64_t *slots; /* a hash table; 0: free */
    uint64_t limit;  /* larger numbers are not kept: 2^(64 - halvings) - 1 */
    uint32_t kept;
    unsigned halvings;
};

/* `slots`: SLC_DISTINCT_BYTES, zeroed here, borrowed. */
void slc_distinct_init(struct slc_distinct *distinct, uint64_t *slots);

/* Counts `number`, which must be at most distinct->limit (the caller checks it in its hot loop). */
void slc_distinct_keep(struct slc_distinct *distinct, uint64_t number);

/* Adds all numbers of `from`. */
void slc_distinct_join(struct slc_distinct *distinct, const struct slc_distinct *from);

/* Returns the estimate. */
uint64_t slc_distinct_count(const struct slc_distinct *distinct);

#endif
