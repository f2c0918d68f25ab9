/* Computes keyed permutations of 0 .. length - 1 without tables, for any length up to 2^128. A
 * Feistel network over the next power of two is applied until the result is below the length
 * ([Black2002]). This needs fewer than two iterations on average. The result is not
 * cryptographic. */
#ifndef SLC_CONVERT_FEISTEL_H
#define SLC_CONVERT_FEISTEL_H

#include "base/key.h"

#include <stdint.h>

enum { SLC_PERMUTE_ROUNDS = 6 };

struct slc_feistel {
    slc_u128 length; /* 0 means 2^128 */
    unsigned left_bits, right_bits;
    uint64_t left_mask, right_mask;
    uint64_t keys[SLC_PERMUTE_ROUNDS];
};

void slc_feistel_init(struct slc_feistel *permutation,
                      slc_u128 length,
                      uint64_t seed,
                      uint64_t stream);

/* Returns the image of `index`, which must be below the length. */
slc_u128 slc_feistel_apply(const struct slc_feistel *permutation, slc_u128 index);

#endif
