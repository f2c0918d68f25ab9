/*
 * See convert/fiber_guess.h.
 *
 * The beginning of the input is taken for all of it. Of a sample from all over the input, pairs of
 * rows in one piece are counted: a share p of the rows holds p^2 of the pairs. Only pairs from
 * different stretches count, for rows beside each other in a sorted file say nothing but how it was
 * sorted.
 */
#include "convert/fiber_guess.h"

#include "base/memory.h"
#include "convert/heap_sort.h"

/*
 * Pairs tell the mean over nonzeros of the piece they lie in, which is above the mean of pieces:
 * where this one is 1.5, that one is 2 and more on skewed tensors.
 */
static const double mates_min = 1.0;

/* A sampled row's piece. */
struct member {
    uint64_t number;
    uint32_t stretch;
};

static bool member_less(const void *context, const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;

    (void)context;
    return x->number != y->number ? x->number < y->number : x->stretch < y->stretch;
}

/*
 * Pairs of equal numbers from stretches that do not touch (which row is the first of a stretch is
 * known only about); of all pairs where every row is a stretch of its own, `apart` being 0.
 */
static uint64_t count_pairs(struct member *members, uint32_t count, uint32_t apart)
{
    uint64_t pairs = 0;
    uint32_t first = 0; /* of the group */
    uint32_t below = 0; /* the members first .. below - 1 are far enough before */

    slc_heap_sort(members, count, sizeof *members, member_less, NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (members[i].number != members[first].number) {
            first = i;
            below = i;
        }
        while (below < i && members[below].stretch + apart < members[i].stretch) {
            below++;
        }
        pairs += below - first;
    }
    return pairs;
}

static struct slc_fiber_run guess_from_pairs(const struct slc_fiber_counts *counts,
                                             const uint64_t *rows,
                                             uint32_t count,
                                             uint32_t stretches,
                                             uint64_t entries_expected,
                                             struct member *members)
{
    unsigned order = counts->order;
    uint64_t most = 0;
    uint64_t same = 0; /* pairs of one coordinate */
    unsigned mode = 0;
    double mates;

    for (unsigned n = order + 1; n-- > 0;) {
        uint64_t pairs;

        for (uint32_t i = 0; i < count; i++) {
            members[i].number = slc_fiber_number(counts, rows + (size_t)i * order, n);
            members[i].stretch = (uint32_t)((uint64_t)i * stretches / count);
        }
        pairs = count_pairs(members, count, stretches < count ? 1 : 0);
        if (n == order) {
            same = pairs;
        } else if (pairs >= most) {
            most = pairs;
            mode = n;
        }
    }
    mates = 2 * (double)(most - same) / count * ((double)entries_expected / count);
    return mates >= mates_min ? (struct slc_fiber_run){mode, SLC_FIBER_BITS}
                              : (struct slc_fiber_run){0, 0};
}

static struct slc_fiber_run
guess_from_all(struct slc_fiber_counts *counts, const uint64_t *rows, uint32_t count)
{
    unsigned order = counts->order;

    for (uint32_t i = 0; i < count; i++) {
        for (unsigned n = 0; n <= order; n++) {
            struct slc_distinct *seen = n == order ? &counts->coords : &counts->pieces[n];
            uint64_t number = slc_fiber_number(counts, rows + (size_t)i * order, n);

            if (number <= seen->limit) {
                slc_distinct_keep(seen, number);
            }
        }
    }
    return slc_fiber_counts_choose(counts).run;
}

enum slc_status slc_fiber_guess(struct slc_fiber_counts *counts,
                                const uint64_t *rows,
                                uint32_t count,
                                uint32_t stretches,
                                uint64_t entries_expected,
                                struct slc_fiber_run *run,
                                struct slc_error *err)
{
    struct member *members;

    *run = (struct slc_fiber_run){0, 0};
    if (counts->order == 1 || count == 0) {
        return SLC_OK;
    }
    if (stretches <= 1 || entries_expected <= count) {
        *run = guess_from_all(counts, rows, count);
        return SLC_OK;
    }
    members = slc_malloc(count * sizeof *members);
    if (members == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a sample of %u coordinates", count);
    }
    *run = guess_from_pairs(counts, rows, count, stretches, entries_expected, members);
    slc_free(members);
    return SLC_OK;
}
