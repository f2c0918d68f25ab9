/* Chooses the mode whose fibers are kept together in the order of nonzeros (base/key.h). A piece of
 * a mode-n fiber consists of the nonzeros whose mode-n indices differ only in the low
 * SLC_FIBER_BITS bits. The mode with the fewest pieces is chosen, because every piece costs a large
 * gap between keys and a product of factor rows. If pieces hold fewer than 1.75 nonzeros on
 * average, no mode is chosen: plain order then needs no more bits, and it keeps neighbours in all
 * modes close. Measured index bits per nonzero, in plain order and with the fiber run: 18.2 and
 * 19.2 for wordnet30 (1.5 nonzeros per piece), 23.8 and 22.0 for icews14 (1.9 nonzeros per piece).
 *
 * While entries are pushed, workers count distinct coordinates and, for every mode, distinct pieces
 * of its fibers. A piece is identified by the coordinates of all modes without the low bits of the
 * mode of the fiber. The hash of a piece is the sum of the products of these coordinates with
 * random odd constants. Its upper bits are pairwise independent ([Dietzfelbinger1996]), as
 * convert/build/sort/distinct.h requires. The hashes of all modes share products, so an entry costs
 * two multiplications per mode.
 *
 * The choice depends only on the set of coordinates, not on threads or on the order or division of
 * the input. */
#ifndef SLC_CONVERT_FIBERS_H
#define SLC_CONVERT_FIBERS_H

#include "base/key.h"
#include "convert/build/resume/state_file.h"
#include "convert/build/sort/distinct.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Number of index bits that may differ within a piece. With more bits, little is gained and
     * neighbours in other modes move farther apart. */
    SLC_FIBER_BITS = 12,
    /* If there are fewer nonzeros, no mode is chosen: so few fit any cache in any order. */
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
    struct slc_distinct coords; /* counts distinct coordinates */
    struct slc_distinct pieces[SLC_MAX_ORDER];
};

/* The choice that follows from the counts. `nnz`: number of distinct coordinates. `pieces`: number
 * of pieces of mode `mode`. */
struct slc_fiber_choice {
    struct slc_fiber_run run; /* all zero: no mode is chosen */
    unsigned mode;            /* the mode with the fewest pieces, chosen or not */
    uint64_t nnz;
    uint64_t pieces;
};

/* Returns the bytes that one worker's counts need in addition to the struct. */
uint64_t slc_fiber_counts_bytes(unsigned order);

/* Initializes empty counts. `memory`: slc_fiber_counts_bytes bytes, 8-byte aligned, borrowed. */
void slc_fiber_counts_init(struct slc_fiber_counts *counts, unsigned order, void *memory);

/* Counts the entries begin .. begin + count - 1 (count at most SLC_KEY_BATCH), after subtracting
 * `index_base` from their coordinates. Cost: 1 to 2 ns per entry. */
void slc_fiber_counts_add(struct slc_fiber_counts *counts,
                          const uint64_t *const *coords,
                          uint32_t begin,
                          uint32_t count,
                          uint64_t index_base);

/* Adds the counts of `from` to `counts`. */
void slc_fiber_counts_join(struct slc_fiber_counts *counts, const struct slc_fiber_counts *from);

/* Returns the hash of the piece of a mode-`mode` fiber that contains the coordinate, or the hash of
 * the whole coordinate if `mode` equals the order. */
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

/* Returns true if `nnz` nonzeros in `pieces` pieces are at least 1.75 nonzeros per piece. */
static inline bool slc_fiber_pieces_gain(uint64_t nnz, uint64_t pieces)
{
    return nnz / 7 >= pieces / 4;
}

/* Writes the counts to a state, from which slc_fiber_counts_load reads them into empty counts. Both
 * set state->bad on failure. */
void slc_fiber_counts_save(const struct slc_fiber_counts *counts, struct slc_state *state);
void slc_fiber_counts_load(struct slc_fiber_counts *counts, struct slc_state *state);

/* Returns the choice; all zero if nothing was counted. */
struct slc_fiber_choice slc_fiber_counts_choose(const struct slc_fiber_counts *counts);

#endif
