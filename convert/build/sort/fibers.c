#include "convert/build/sort/fibers.h"

#include "base/random.h"
#include "convert/build/sort/key_tables.h"

#include <assert.h>
#include <string.h>

/* Inlines a function into callers that are compiled once per instruction set. */
#define ALWAYS_INLINE __attribute__((always_inline))

/* Seed of the random constants. Any seed works, but another seed could choose other modes, and so
 * change the stores that a later version writes. */
static const uint64_t factor_seed = 7;

uint64_t slc_fiber_counts_bytes(unsigned order)
{
    return (order + UINT64_C(1)) * SLC_DISTINCT_BYTES;
}

/* Hash sums of the entries of a batch: `whole` from whole coordinates, `low` from the low bits of
 * the index of each mode. */
struct batch_sums {
    uint64_t whole[SLC_KEY_BATCH];
    uint64_t low[SLC_MAX_ORDER][SLC_KEY_BATCH];
};

/* Counts the hashes that are within the limit of `distinct`. If there are many distinct hashes, the
 * limit is so small that usually no hash of a batch is within it. `low`: subtracted from the sums
 * `whole`; NULL: nothing is subtracted. */
static inline ALWAYS_INLINE void keep_hashes(struct slc_distinct *distinct,
                                             const uint64_t *whole,
                                             const uint64_t *low,
                                             uint32_t count)
{
    uint64_t above = ~distinct->limit;
    uint64_t within = 0;

    for (uint32_t i = 0; i < count; i++) {
        within += ((whole[i] - (low != NULL ? low[i] : 0)) & above) == 0;
    }
    for (uint32_t i = 0; i < count && within > 0; i++) {
        uint64_t number = whole[i] - (low != NULL ? low[i] : 0);

        if (number <= distinct->limit) {
            slc_distinct_keep(distinct, number);
        }
    }
}

/* Adds the products of a mode to the sums. In most modes, all indices fit the low bits. */
static inline ALWAYS_INLINE void add_mode(struct batch_sums *sums,
                                          unsigned mode,
                                          const uint64_t *column,
                                          uint32_t count,
                                          uint64_t index_base,
                                          uint64_t factor)
{
    const uint64_t low_bits = (UINT64_C(1) << SLC_FIBER_BITS) - 1;
    uint64_t *low = sums->low[mode];
    uint64_t any = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t coord = column[i] - index_base;

        any |= coord;
        low[i] = (coord & low_bits) * factor;
        sums->whole[i] += low[i];
    }
    if (any > low_bits) {
        for (uint32_t i = 0; i < count; i++) {
            sums->whole[i] += ((column[i] - index_base) & ~low_bits) * factor;
        }
    }
}

static inline ALWAYS_INLINE void add_batch(struct slc_fiber_counts *counts,
                                           const uint64_t *const *coords,
                                           uint32_t begin,
                                           uint32_t count,
                                           uint64_t index_base)
{
    struct batch_sums sums;

    memset(sums.whole, 0, sizeof sums.whole);
    for (unsigned n = 0; n < counts->order; n++) {
        add_mode(&sums, n, coords[n] + begin, count, index_base, counts->factor[n]);
    }
    keep_hashes(&counts->coords, sums.whole, NULL, count);
    for (unsigned n = 0; n < counts->order; n++) {
        keep_hashes(&counts->pieces[n], sums.whole, sums.low[n], count);
    }
}

static void add_plain(struct slc_fiber_counts *counts,
                      const uint64_t *const *coords,
                      uint32_t begin,
                      uint32_t count,
                      uint64_t index_base)
{
    add_batch(counts, coords, begin, count, index_base);
}

#if defined(__x86_64__)

/* With wide vectors, the same sums take a third of the time. */
__attribute__((target("avx2"))) static void add_avx2(struct slc_fiber_counts *counts,
                                                     const uint64_t *const *coords,
                                                     uint32_t begin,
                                                     uint32_t count,
                                                     uint64_t index_base)
{
    add_batch(counts, coords, begin, count, index_base);
}

__attribute__((target("avx512f,avx512dq,avx512vl"))) static void
add_avx512(struct slc_fiber_counts *counts,
           const uint64_t *const *coords,
           uint32_t begin,
           uint32_t count,
           uint64_t index_base)
{
    add_batch(counts, coords, begin, count, index_base);
}

static slc_fiber_add_fn *fastest_add(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return add_avx512;
    }
    return __builtin_cpu_supports("avx2") ? add_avx2 : add_plain;
}

#else

static slc_fiber_add_fn *fastest_add(void)
{
    return add_plain;
}

#endif

void slc_fiber_counts_init(struct slc_fiber_counts *counts, unsigned order, void *memory)
{
    uint64_t *slots = memory;

    assert(order <= SLC_MAX_ORDER);
    *counts = (struct slc_fiber_counts){.order = order, .add = fastest_add()};
    slc_distinct_init(&counts->coords, slots);
    for (unsigned n = 0; n < order; n++) {
        counts->factor[n] = slc_random_u64(factor_seed, 0, n) | 1;
        slots += SLC_DISTINCT_SLOTS;
        slc_distinct_init(&counts->pieces[n], slots);
    }
}

void slc_fiber_counts_add(struct slc_fiber_counts *counts,
                          const uint64_t *const *coords,
                          uint32_t begin,
                          uint32_t count,
                          uint64_t index_base)
{
    assert(count <= SLC_KEY_BATCH);
    counts->add(counts, coords, begin, count, index_base);
}

void slc_fiber_counts_join(struct slc_fiber_counts *counts, const struct slc_fiber_counts *from)
{
    slc_distinct_join(&counts->coords, &from->coords);
    for (unsigned n = 0; n < counts->order; n++) {
        slc_distinct_join(&counts->pieces[n], &from->pieces[n]);
    }
}

static void save_distinct(const struct slc_distinct *distinct, struct slc_state *state)
{
    slc_state_put(state, distinct->halvings);
    slc_state_put(state, distinct->kept);
    for (uint32_t at = 0; at < SLC_DISTINCT_SLOTS; at++) {
        if (distinct->slots[at] != 0) {
            slc_state_put(state, distinct->slots[at]);
        }
    }
}

static void load_distinct(struct slc_distinct *distinct, struct slc_state *state)
{
    distinct->halvings = (unsigned)slc_state_get(state, SLC_DISTINCT_HALVINGS_MAX);
    distinct->limit = UINT64_MAX >> distinct->halvings;
    uint32_t kept = (uint32_t)slc_state_get(state, SLC_DISTINCT_KEPT_MAX);
    for (uint32_t i = 0; i < kept; i++) {
        slc_distinct_keep(distinct, slc_state_get(state, distinct->limit));
    }
}

void slc_fiber_counts_save(const struct slc_fiber_counts *counts, struct slc_state *state)
{
    save_distinct(&counts->coords, state);
    for (unsigned n = 0; n < counts->order; n++) {
        save_distinct(&counts->pieces[n], state);
    }
}

void slc_fiber_counts_load(struct slc_fiber_counts *counts, struct slc_state *state)
{
    load_distinct(&counts->coords, state);
    for (unsigned n = 0; n < counts->order; n++) {
        load_distinct(&counts->pieces[n], state);
    }
}

struct slc_fiber_choice slc_fiber_counts_choose(const struct slc_fiber_counts *counts)
{
    struct slc_fiber_choice choice = {.nnz = slc_distinct_count(&counts->coords),
                                      .pieces = slc_distinct_count(&counts->pieces[0])};

    for (unsigned n = 1; n < counts->order; n++) {
        uint64_t pieces = slc_distinct_count(&counts->pieces[n]);

        if (pieces < choice.pieces) {
            choice.pieces = pieces;
            choice.mode = n;
        }
    }
    /* With a single mode, a fiber run does not change the order of keys, so none is chosen. */
    if (counts->order > 1 && choice.nnz >= SLC_FIBER_NNZ_MIN &&
        slc_fiber_pieces_gain(choice.nnz, choice.pieces)) {
        choice.run = (struct slc_fiber_run){choice.mode, SLC_FIBER_BITS};
    }
    return choice;
}
