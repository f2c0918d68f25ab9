/* Arithmetic that reports overflow instead of wrapping. Sizes that come from a file or a user are
 * multiplied and added only with these functions. */
#ifndef SLC_BASE_CHECKED_H
#define SLC_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool slc_add_u64(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool slc_mul_u64(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

static inline bool slc_mul_size(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* Rounds `value` up to a multiple of `unit`, a power of two. Returns false on overflow. */
static inline bool slc_round_up_u64(uint64_t value, uint64_t unit, uint64_t *rounded)
{
    uint64_t padded;

    if (__builtin_add_overflow(value, unit - 1, &padded)) {
        return false;
    }
    *rounded = padded & ~(unit - 1);
    return true;
}

static inline uint64_t slc_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t slc_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t slc_div_up_u64(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

#endif
