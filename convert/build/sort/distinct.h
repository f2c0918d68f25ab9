/* Counts distinct 64-bit numbers in 64 KiB of memory. Keeps every distinct number until the table
 * is full, then only numbers up to a limit, which is halved whenever the table is full again. The
 * kept numbers depend only on the set of numbers, not on their order or on which thread counted
 * them. Joined counters of several threads therefore have the same result as one counter.
 *
 * Source: [BarYossef2002] section 2; the numbers need only be pairwise independent. Up to
 * SLC_DISTINCT_KEPT_MAX the count is exact; above, its standard error is 1.6 to 2.2 %. */
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
    uint64_t *slots; /* a hash table; 0: free slot */
    uint64_t limit;  /* larger numbers are not kept: 2^(64 - halvings) - 1 */
    uint32_t kept;
    unsigned halvings;
};

/* Initializes an empty counter. `slots`: SLC_DISTINCT_BYTES bytes, borrowed, zeroed by the call. */
void slc_distinct_init(struct slc_distinct *distinct, uint64_t *slots);

/* Counts `number`. The caller must have checked that `number` <= distinct->limit. */
void slc_distinct_keep(struct slc_distinct *distinct, uint64_t number);

/* Counts all numbers that `from` kept. */
void slc_distinct_join(struct slc_distinct *distinct, const struct slc_distinct *from);

/* Returns the estimated number of distinct numbers. */
uint64_t slc_distinct_count(const struct slc_distinct *distinct);

#endif
