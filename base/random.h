/* Counter-based random numbers: Philox4x32-10 ([Salmon2011]). Number `index` of a stream depends
 * only on (seed, stream, index), not on threads or the order of calls. */
#ifndef SLC_BASE_RANDOM_H
#define SLC_BASE_RANDOM_H

#include <stdint.h>

/* Stores the four 32-bit words of the generator for counter (index, stream) and key `seed`. */
void slc_philox4x32(uint64_t seed, uint64_t stream, uint64_t index, uint32_t words[4]);

/* Returns 64 uniform bits: words 0 and 1 of slc_philox4x32, word 0 in the low bits. */
uint64_t slc_random_u64(uint64_t seed, uint64_t stream, uint64_t index);

/* Returns a uniform number in [0, 1): the top 53 bits of slc_random_u64 times 2^-53. */
double slc_random_f64(uint64_t seed, uint64_t stream, uint64_t index);

/* Returns a number with standard normal distribution (Box-Muller transform of words 0 and 1). */
double slc_random_normal(uint64_t seed, uint64_t stream, uint64_t index);

/* Returns a uniform number in [0, bound) by multiply-shift (bias below bound / 2^64). Needs: bound
 * > 0. */
uint64_t slc_random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);

#endif
