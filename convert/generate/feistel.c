#include "convert/generate/feistel.h"

#include "base/hash.h"
#include "base/random.h"

static unsigned bits_below(slc_u128 length)
{
    slc_u128 last = length - 1; /* length 0 means 2^128, for which this is 2^128 - 1 */
    uint64_t high = (uint64_t)(last >> 64);
    uint64_t low = (uint64_t)last;

    if (high != 0) {
        return 128U - (unsigned)__builtin_clzll(high);
    }
    return low == 0 ? 0 : 64U - (unsigned)__builtin_clzll(low);
}

static uint64_t mask_of(unsigned bits)
{
    return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

void slc_feistel_init(struct slc_feistel *permutation,
                      slc_u128 length,
                      uint64_t seed,
                      uint64_t stream)
{
    unsigned bits = bits_below(length);

    permutation->length = length;
    permutation->left_bits = bits / 2;
    permutation->right_bits = bits - bits / 2;
    permutation->left_mask = mask_of(permutation->left_bits);
    permutation->right_mask = mask_of(permutation->right_bits);
    for (unsigned round = 0; round < SLC_PERMUTE_ROUNDS; round++) {
        permutation->keys[round] = slc_random_u64(seed, stream, round);
    }
}

slc_u128 slc_feistel_apply(const struct slc_feistel *permutation, slc_u128 index)
{
    unsigned round;

    do {
        uint64_t left = (uint64_t)(index >> permutation->right_bits) & permutation->left_mask;
        uint64_t right = (uint64_t)index & permutation->right_mask;

        /* XOR each half in turn with a function of the other half; this is invertible. */
        for (round = 0; round < SLC_PERMUTE_ROUNDS; round += 2) {
            left ^= slc_mix64(right + permutation->keys[round]) & permutation->left_mask;
            right ^= slc_mix64(left + permutation->keys[round + 1]) & permutation->right_mask;
        }
        index = (slc_u128)left << permutation->right_bits | right;
    } while (permutation->length != 0 && index >= permutation->length);
    return index;
}
