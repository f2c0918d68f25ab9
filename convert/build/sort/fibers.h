/*
 * Chooses the mode whose fibers are kept together in the order of nonzeros (base/key.h): the mode
 * whose fibers form the fewest pieces of SLC_FIBER_BITS bits, because every piece costs a large gap
 * between keys and a product of factor rows. If pieces hold fewer than 1.75 nonzeros on average, no
 * mode is chosen: plain order is then as small and keeps neighbours in all modes close. Bits per
 * index in plain order and with the fiber run: 18.2 and 19.2 for wordnet30 (1.5 nonzeros per
 * piece), 23.8 and 22.0 for icews14 (1.9).
 *
 * While entries are pushed, workers count distinct coordinates and, for every mode, distinct pieces
 * of its fibers. A piece is identified by the coordinates of all modes without the low bits of that
 * mode. The hash of a piece is the sum of the products of these coordinates with random odd
 * constants. Its upper bits are pairwise independent ([Dietzfelbinger1996]), as
 * convert/build/sort/distinct.h requires. The sums of all modes share their products: two
 * multiplications per mode and entry.
 *
 * The choice depends only on the set of coordinates, not on threads or on the order or division of
 * the input.
 */
#ifndef SLC_CONVERT_FIBERS_H
#define SLC_CONVERT_FIBERS_H

#include "base/key.h"
#include "convert/build/resume/state_file.h"
#include "convert/build/sort/distinct.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Low bits of the mode that form a piece. Longer pieces gain little and move neighbours in
     * other modes farther apart. */
    SLC_FIBER_BITS = 12,
    /* Below this number of nonzeros no mode is chosen: they fit any cache in any order. */
    SLC_FIBER_NNZ_MIN = 1024
};

struct slc_fiber_counts;

typedef void slc_fiber_add_fn(struct slc_fiber_counts *counts,
                              const uint64_t *const *coords,
                              uint32_t begin,
                              uint32_t count,
                              uint64_t index_base);

/* Counts of one worker. */
struct slc_fiber_counts {
    unsigned order;
    slc_fiber_add_fn *add; /* the fastest implementation on this processor */
    uint64_t factor[SLC_MAX_ORDER];
    struct slc_distinct coords; /* distinct coordinates */
    struct slc_distinct pieces[SLC_MAX_ORDER];
};

/* Result of the counts: `nnz` distinct coordinates, and the number of pieces of the mode with the
 * fewest pieces. */
struct slc_fiber_choice {
    struct slc_fiber_run run; /* all zero: none */
    unsigned mode;            /* the mode with the fewest pieces, chosen or not */
    uint64_t nnz;
    uint64_t pieces;
};

/* Bytes of one worker's counts in addition to the struct. */
uint64_t slc_fiber_counts_bytes(unsigned order);

/* `memory`: slc_fiber_counts_bytes, 8-byte aligned, borrowed. */
void slc_fiber_counts_init(struct slc_fiber_counts *counts, unsigned order, void *memory);

/* Counts the entries begin .. begin + count - 1 (count at most SLC_KEY_BATCH), after subtracting
 * `index_base` from their coordinates. Cost: 1 to 2 ns per entry. */
void slc_fiber_counts_add(struct slc_fiber_counts *counts,
                          const uint64_t *const *coords,
                          uint32_t begin,
                          uint32_t count,
                          uint64_t index_base);

/* Adds the counts of `from`. */
void slc_fiber_counts_join(struct slc_fiber_counts *counts, const struct slc_fiber_counts *from);

/* Hash of one piece of a mode-`mode` fiber; of the whole coordinate if `mode` equals the order. */
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

/* True if `nnz` nonzeros in `pieces` pieces are enough per piece for keeping fibers together. */
static inline bool slc_fiber_pieces_gain(uint64_t nnz, uint64_t pieces)
{
    return nnz / 7 >= pieces / 4;
}

/* Writes the counts to a state, and reads them into empty counts; may leave the state bad. */
void slc_fiber_counts_save(const struct slc_fiber_counts *counts, struct slc_state *state);
void slc_fiber_counts_load(struct slc_fiber_counts *counts, struct slc_state *state);

/* Returns the choice; all zero if nothing was counted. */
struct slc_fiber_choice slc_fiber_counts_choose(const struct slc_fiber_counts *counts);

#endif
