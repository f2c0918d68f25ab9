/* Gathers selected bits of a word (pext) by precomputed moves (struct slc_compress of
 * base/encoded.h). The moves are plain shifts and masks, which vectorize and exist on every
 * device. */
#ifndef SLC_BASE_COMPRESS_H
#define SLC_BASE_COMPRESS_H

#include "base/encoded.h"

/* Computes the moves for the bits in `mask`. Cost: about 20 operations for each of at most
 * SLC_COMPRESS_STEPS steps. */
void slc_compress_init(struct slc_compress *compress, uint64_t mask);

/* Returns the selected bits of `word`, gathered into the low bits: the result of slc_bits_gather
 * (base/key.h), computed without a loop over bits. */
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
