/* Implements Philox4x32-10 ([Salmon2011] section 3). */
#include "base/random.h"

#include <math.h>

void slc_philox4x32(uint64_t seed, uint64_t stream, uint64_t index, uint32_t words[4])
{
    /* Multipliers and Weyl key increments of the published generator. */
    static const uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
    static const uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)multiplier0 * c0;
        uint64_t product1 = (uint64_t)multiplier1 * c2;

        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product0;
        k0 += weyl0;
        k1 += weyl1;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

uint64_t slc_random_u64(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t words[4];

    slc_philox4x32(seed, stream, index, words);
    return (uint64_t)words[1] << 32 | words[0];
}

double slc_random_f64(uint64_t seed, uint64_t stream, uint64_t index)
{
    return (double)(slc_random_u64(seed, stream, index) >> 11) * 0x1p-53;
}

double slc_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t words[4];

    slc_philox4x32(seed, stream, index, words);
    /* Word 0 becomes a number in (0, 1] for the logarithm, word 1 a number in [0, 1) for the
     * angle. */
    double radius = sqrt(-2.0 * log(((double)words[0] + 1.0) * 0x1p-32));
    double angle = 6.283185307179586 * ((double)words[1] * 0x1p-32);
    return radius * cos(angle);
}

uint64_t slc_random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound)
{
    __extension__ typedef unsigned __int128 u128;

    return (uint64_t)(((u128)slc_random_u64(seed, stream, index) * bound) >> 64);
}
