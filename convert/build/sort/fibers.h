/*
 * Which mode's fibers to keep together in the order of nonzeros (base/key.h): the one whose pieces,
 * of SLC_FIBER_BITS bits, are fewest, for every piece costs a large gap between keys and a product
 * of factor rows. Where pieces hold less than 1.75 nonzeros on average, none: plain order is
 * as small then (wordnet30 with 1.5: 18.2 bits an index, 19.2 with the run; icews14 with 1.9: 23.8
 * and 22.0), and keeps neighbours in all modes near.
 *
 * Workers count while entries pass: how many different coordinates there are, and for every mode
 * how many different pieces of its fibers. A piece is known by the coordinates of all modes without
 * the low bits of the one; its number is the sum of products of these with random odd constants,
 * which is pairwise independent in its upper bits (M. Dietzfelbinger, "Universal hashing and
 * k-wise independent random variables via integer arithmetic without primes", STACS 1996), all
 * that convert/build/sort/distinct.h asks for. The sums of all modes share their products: two
 * multiplications per mode and entry.
 *
 * The choice is a function of the set of coordinates: not of threads, of how the input was cut, or
 * of its order.
 */
#ifndef SLC_CONVERT_FIBERS_H
#define SLC_CONVERT_FIBERS_H

#include "base/key.h"
#include "convert/build/resume/state_file.h"
#include "convert/build/sort/distinct.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Longer pieces gain little, and the longer they are the farther apart are their neighbours in
     * other modes. */
    SLC_FIBER_BITS = 12,
    /* Fewer nonzeros fit any cache in any order. */
    SLC_FIBER_NNZ_MIN = 1024
};

struct slc_fiber_counts;

typedef void slc_fiber_add_fn(struct slc_fiber_counts *counts,
                              const uint64_t *const *coords,
                              uint32_t begin,
                              uint32_t count,
                              uint64_t index_base);

/* What one worker saw. */
struct slc_fiber_counts {
    unsigned order;
    slc_fiber_add_fn *add; /* the fastest for this processor */
    uint64_t factor[SLC_MAX_ORDER];
    struct slc_distinct coords; /* whole ones */
    struct slc_distinct pieces[SLC_MAX_ORDER];
};

/* The outcome: `nnz` different coordinates in `pieces` pieces of the mode that has fewest. */
struct slc_fiber_choice {
    struct slc_fiber_run run; /* all zero: none */
    unsigned mode;            /* the mode that has fewest, chosen or not */
    uint64_t nnz;
    uint64_t pieces;
};

/* Bytes that the counts of one worker need besides the struct. */
uint64_t slc_fiber_counts_bytes(unsigned order);

/* `memory`: slc_fiber_counts_bytes, 8-byte aligned, borrowed. */
void slc_fiber_counts_init(struct slc_fiber_counts *counts, unsigned order, void *memory);

/* Counts the entries begin .. begin + count - 1 (count at most SLC_KEY_BATCH), less `index_base`.
 * Cost: 1 to 2 ns an entry. */
void slc_fiber_counts_add(struct slc_fiber_counts *counts,
                          const uint64_t *const *coords,
                          uint32_t begin,
                          uint32_t count,
                          uint64_t index_base);

/* Adds all that `from` saw. */
void slc_fiber_counts_join(struct slc_fiber_counts *counts, const struct slc_fiber_counts *from);

/* The number of one piece of a mode-`mode` fiber, of whole coordinates for `mode` N. */
static inline uint64_t
slc_fiber_number(const struct slc_fiber_counts *counts, const uint64_t *coords, unsigned mode)
{
    const uint64_t low_bits = (UINT64_C(1) << SLC_FIBER_BITS) - 1;
    uint64_t number = 0;

    for (unsigned n = 0; n < counts->order; n++) {
        number += (n == mode ? coords[n] & ~low_bits : coords[n]) * counts->factor[n];
    }
    return number;
}

/* Whether `nnz` nonzeros in `pieces` pieces are enough to each to keep them together. */
static inline bool slc_fiber_pieces_gain(uint64_t nnz, uint64_t pieces)
{
    return nnz / 7 >= pieces / 4;
}

/* Writes down what was seen, and reads it into counts of nothing; the state may be bad then. */
void slc_fiber_counts_put(const struct slc_fiber_counts *counts, struct slc_state *state);
void slc_fiber_counts_get(struct slc_fiber_counts *counts, struct slc_state *state);

/* None where counts are of nothing. */
struct slc_fiber_choice slc_fiber_counts_choose(const struct slc_fiber_counts *counts);

#endif
