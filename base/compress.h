/* Precomputed moves that gather selected bits of a word (struct slc_compress of base/encoded.h):
 * pext as plain shifts and masks, which vectorize and exist on every device. */
#ifndef SLC_BASE_COMPRESS_H
#define SLC_BASE_COMPRESS_H

#include "base/encoded.h"

/* Computes the moves for the bits in `mask`. Cost: about 20 operations per step. */
void slc_compress_init(struct slc_compress *compress, uint64_t mask);

/* Returns the selected bits of `word`, gathered: slc_bits_gather (base/key.h) without a loop over
 * bits. */
static inline uint64_t slc_compress_apply(const struct slc_compress *compress, uint64_t word)
{
    word &= compress->mask;
    for (uint32_t s = 0; s < compress->steps; s++) {
        const uint64_t moved = word & compress->move[s];

        word = (word ^ moved) | moved >> (1U << s);
    }
    return word;
}

#endif
