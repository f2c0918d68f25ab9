/*
 * How many different 64-bit numbers were seen, in a fixed few KiB: all of them while they are few,
 * else those below a limit that halves whenever they get too many. What is kept depends on the set
 * of numbers alone, not on their order or on who saw which, so counters of several threads join to
 * the counter that one thread would have made.
 *
 * Source: Z. Bar-Yossef, T. S. Jayram, R. Kumar, D. Sivakumar, L. Trevisan, "Counting distinct
 * elements in a data stream", RANDOM 2002, section 2; pairwise independent numbers suffice. Exact
 * up to SLC_DISTINCT_KEPT_MAX, beyond with a standard error of 1.6 to 2.2 %.
 */
#ifndef SLC_CONVERT_DISTINCT_H
#define SLC_CONVERT_DISTINCT_H

#include <stdint.h>

enum {
    SLC_DISTINCT_KEPT_MAX = 4096,
    SLC_DISTINCT_SLOTS = 2 * SLC_DISTINCT_KEPT_MAX,
    SLC_DISTINCT_BYTES = SLC_DISTINCT_SLOTS * 8,
    /* After so many there are no more numbers than may be kept. */
    SLC_DISTINCT_HALVINGS_MAX = 52
};

struct slc_distinct {
    uint64_t *slots; /* a hash table; 0: free */
    uint64_t limit;  /* numbers above it are not kept: 2^(64 - halvings) - 1 */
    uint32_t kept;
    unsigned halvings;
};

/* `slots`: SLC_DISTINCT_BYTES, zeroed here, borrowed. */
void slc_distinct_init(struct slc_distinct *distinct, uint64_t *slots);

/* Counts `number`, one at most distinct->limit (the caller looks: it is in most hot loops). */
void slc_distinct_keep(struct slc_distinct *distinct, uint64_t number);

/* Adds all that `from` saw. */
void slc_distinct_join(struct slc_distinct *distinct, const struct slc_distinct *from);

/* The estimate. */
uint64_t slc_distinct_count(const struct slc_distinct *distinct);

#endif
