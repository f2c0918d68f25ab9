/*
 * The moves that gather selected bits of a word (struct slc_compress of base/encoded.h), found in
 * advance: what pext does, in plain shifts and masks that vectorize and that every device has.
 */
#ifndef SLC_BASE_COMPRESS_H
#define SLC_BASE_COMPRESS_H

#include "base/encoded.h"

/* For the bits that `mask` selects. Cost: about 20 operations for each step that is needed. */
void slc_compress_init(struct slc_compress *compress, uint64_t mask);

/* The selected bits of `word`, gathered: slc_bits_gather (base/key.h) without a loop over bits. */
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
