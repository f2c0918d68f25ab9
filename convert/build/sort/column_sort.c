/* Sorts columns of nonzeros. A digit of at most ten bits has about as many values as there are
 * nonzeros, so the final insertion sorts move few nonzeros. Each group that the first distribution
 * of a partition forms fits the level-2 cache. */
#include "convert/build/sort/column_sort.h"

#include <stdbool.h>
#include <string.h>

enum {
    DIGIT_BITS = 10,
    /* Up to this number of nonzeros, an insertion sort is as fast as another distribution. */
    INSERTION_MAX = 24
};

static inline void
copy_one(struct slc_key_columns to, uint64_t t, struct slc_key_columns from, uint64_t f)
{
    to.lo[t] = from.lo[f];
    to.values[t] = from.values[f];
    if (to.hi != NULL) {
        to.hi[t] = from.hi[f];
    }
}

/* Sorts `columns` and writes them to `sorted`, which may be the same columns. */
static void
insertion_sort(struct slc_key_columns columns, struct slc_key_columns sorted, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t lo = columns.lo[i], hi = columns.hi == NULL ? 0 : columns.hi[i];
        const slc_u128 key = slc_key_join(lo, hi);
        const double value = columns.values[i];
        uint64_t at = i;

        for (; at > 0 && key < slc_key_columns_get(sorted, at - 1); at--) {
            copy_one(sorted, at, sorted, at - 1);
        }
        sorted.lo[at] = lo;
        sorted.values[at] = value;
        if (sorted.hi != NULL) {
            sorted.hi[at] = hi;
        }
    }
}

/* Returns the position of the highest bit in which keys differ, plus 1; 0 if all keys are equal. */
static unsigned differing_bits(struct slc_key_columns columns, uint64_t count)
{
    uint64_t lo = 0, hi = 0;

    for (uint64_t i = 1; i < count; i++) {
        lo |= columns.lo[i] ^ columns.lo[0];
    }
    for (uint64_t i = 1; columns.hi != NULL && i < count; i++) {
        hi |= columns.hi[i] ^ columns.hi[0];
    }
    if (hi != 0) {
        return 128U - (unsigned)__builtin_clzll(hi);
    }
    return lo == 0 ? 0 : 64U - (unsigned)__builtin_clzll(lo);
}

static unsigned digit_width(uint64_t count)
{
    const unsigned bits = 63U - (unsigned)__builtin_clzll(count);

    return bits < DIGIT_BITS ? bits : DIGIT_BITS;
}

/* Distributes nonzeros by the digit whose lowest bit is `shift`. On return, starts[d] is the end of
 * the group with digit d. */
static void distribute(struct slc_key_columns from,
                       struct slc_key_columns to,
                       uint64_t count,
                       unsigned shift,
                       unsigned width,
                       uint32_t *starts)
{
    const unsigned mask = (1U << width) - 1;

    memset(starts, 0, (mask + 2) * sizeof *starts);
    for (uint64_t i = 0; i < count; i++) {
        starts[((unsigned)(slc_key_columns_get(from, i) >> shift) & mask) + 1]++;
    }
    for (unsigned d = 1; d <= mask; d++) {
        starts[d] += starts[d - 1];
    }
    for (uint64_t i = 0; i < count; i++) {
        copy_one(to, starts[(unsigned)(slc_key_columns_get(from, i) >> shift) & mask]++, from, i);
    }
}

/* Sorts `from`, using `other` as scratch; the result is in `other` if `swap`, else in `from`. */
static void
sort(struct slc_key_columns from, struct slc_key_columns other, uint64_t count, bool swap)
{
    uint32_t starts[(1 << DIGIT_BITS) + 1];
    uint64_t begin = 0;

    if (count <= INSERTION_MAX) {
        insertion_sort(from, swap ? other : from, count);
        return;
    }
    unsigned bits = differing_bits(from, count);
    if (bits == 0) {
        /* All keys are equal. Only a damaged file has equal keys; the encoder reports it. */
        insertion_sort(from, swap ? other : from, count);
        return;
    }
    unsigned width = digit_width(count);
    width = bits < width ? bits : width;
    distribute(from, other, count, bits - width, width, starts);
    for (unsigned d = 0; d < 1U << width; d++) {
        if (starts[d] > begin) {
            sort(slc_key_columns_from(other, begin), slc_key_columns_from(from, begin),
                 starts[d] - begin, !swap);
        }
        begin = starts[d];
    }
}

void slc_column_sort(struct slc_key_columns columns, struct slc_key_columns scratch, uint64_t count)
{
    sort(columns, scratch, count, false);
}
