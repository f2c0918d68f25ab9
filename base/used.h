/* The used indices of a mode: those that at least one nonzero has. A vector of this mode needs
 * elements only for these indices ([SPTV] section 3.2); the number of used indices below a used
 * index is its position in the short vector. */
#ifndef SLC_BASE_USED_H
#define SLC_BASE_USED_H

#include <stdint.h>

/* Number of indices per word. */
enum { SLC_USED_WORD_BITS = 64 };

/* SLC_USED_WORD_BITS consecutive indices. Both members are in the same cache line. */
struct slc_used_word {
    uint64_t bits;   /* bit i is set if index i of the word is used */
    uint64_t before; /* number of used indices in earlier words */
};

/* All zero: every index of the mode counts as used, and vectors are not shortened. */
struct slc_used {
    uint64_t first, end;         /* range of indices that contains all used indices; end > first */
    uint64_t count;              /* number of used indices; in plans, an upper bound */
    struct slc_used_word *words; /* slc_used_words(used) elements; NULL in plans */
};

/* Returns the number of words of a range. */
static inline uint64_t slc_used_words(const struct slc_used *used)
{
    return (used->end - used->first + SLC_USED_WORD_BITS - 1) / SLC_USED_WORD_BITS;
}

/* Returns the number of elements of a vector of a mode with `length` indices. A short vector has
 * one more element than used indices, so that even a position for an unused index is in the
 * vector. */
static inline uint64_t slc_used_elements(const struct slc_used *used, uint64_t length)
{
    return used->end > 0 ? used->count + 1 : length;
}

/* Marks `index` of the range as used. Threads: any number at once. */
static inline void slc_used_mark(const struct slc_used *used, uint64_t index)
{
    const uint64_t at = index - used->first;
    uint64_t *bits = &used->words[at / SLC_USED_WORD_BITS].bits;
    const uint64_t bit = UINT64_C(1) << at % SLC_USED_WORD_BITS;

    if ((__atomic_load_n(bits, __ATOMIC_RELAXED) & bit) == 0) {
        (void)__atomic_fetch_or(bits, bit, __ATOMIC_RELAXED);
    }
}

/* Counts the marked indices, after all have been marked: sets used->count and `before` of all
 * words. Cost: one sweep over the words. */
static inline void slc_used_count(struct slc_used *used)
{
    const uint64_t words = slc_used_words(used);

    used->count = 0;
    for (uint64_t w = 0; w < words; w++) {
        used->words[w].before = used->count;
        used->count += (uint64_t)__builtin_popcountll(used->words[w].bits);
    }
}

static inline int slc_used_has(const struct slc_used *used, uint64_t index)
{
    const uint64_t at = index - used->first;

    return index >= used->first && index < used->end &&
           (used->words[at / SLC_USED_WORD_BITS].bits >> at % SLC_USED_WORD_BITS & 1) != 0;
}

/* Returns the position of `index`, which is in the range, in the short vector. */
static inline uint64_t slc_used_position(const struct slc_used *used, uint64_t index)
{
    const uint64_t at = index - used->first;
    const struct slc_used_word *word = &used->words[at / SLC_USED_WORD_BITS];
    const uint64_t below = word->bits & ((UINT64_C(1) << at % SLC_USED_WORD_BITS) - 1);

    return word->before + (uint64_t)__builtin_popcountll(below);
}

#endif
