/* Predicts the fiber run from a sample of rows: estimates, for each mode, the average number of
 * nonzeros per piece (fibers.h) in the whole input.
 *
 * A sample consists of stretches, which are contiguous parts of the input (slc_builder_sample). A
 * sample of one stretch is the beginning of the input; it is treated as the whole input. In a
 * sample of several stretches, rows of the same piece are counted in two ways:
 *
 *  - Rows in the same stretch count once. They belong to pieces whose rows are close together in
 *    the input. Such pieces occur if the input is sorted by these fibers, or if indices were
 *    assigned in order of appearance. A stretch has all rows of such a piece.
 *  - Rows in different stretches belong to pieces whose rows are scattered over the input. Each
 *    row of a scattered piece is in the sample only with a probability equal to the sampled
 *    fraction of the input, so the count of these rows is divided by this fraction.
 *
 * The sum of the two counts yields the average number of nonzeros per piece. */
#include "convert/build/sort/fiber_guess.h"

#include "base/memory/memory.h"
#include "convert/build/sort/heap_sort.h"

/* A mode is predicted if rows of the same stretch alone yield at least this average number of
 * nonzeros per piece. The final choice uses the same limit (fibers.h). */
static const double near_nnz_min = 1.75;
/* A mode is also predicted if all rows yield at least this average. The limit is larger, because
 * the rows of different stretches that are counted belong to long pieces more often than to short
 * pieces, so that the estimate is too high: if it is below this limit, the true average is usually
 * below 1.75. */
static const double piece_nnz_min = 2;

/* A sampled row: the hash of its piece, and its stretch. */
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

/* Two estimates of the average number of nonzeros per piece. */
struct length {
    double near; /* estimated only from rows of the same piece and the same stretch */
    double all;  /* estimated from all rows of the same piece, in the same or different stretches */
};

/* Estimates the average number of nonzeros per piece. `far_weight` is the number of rows of the
 * input per sampled row. A row is `near` if it is in the same stretch as the previous sampled row
 * of its piece, and `far` if it is in another stretch. A scattered piece of n rows has (n - 1) / 2
 * pairs of rows per row. The number of far rows per sampled row, times far_weight, estimates this
 * number of pairs, and is doubled to estimate n - 1. If `touching` is 1, adjacent stretches count
 * as one stretch, because it is known only approximately where a stretch begins. If every row is a
 * stretch, `touching` is 0. */
static struct length
estimate_length(struct member *members, uint32_t count, uint32_t touching, double far_weight)
{
    uint64_t near = 0;
    uint64_t far = 0;
    uint32_t stretch = 0; /* the last stretch counted */
    struct length length;

    slc_heap_sort(members, count, sizeof *members, member_less, NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || members[i].number != members[i - 1].number) {
            stretch = members[i].stretch;
        } else if (members[i].stretch > stretch + touching) {
            far++;
            stretch = members[i].stretch;
        } else {
            near++;
        }
    }
    length.near = (double)count / (double)(count - near);
    length.all = length.near + 2 * (double)far / count * far_weight;
    return length;
}

static struct slc_fiber_run guess_from_mates(const struct slc_fiber_counts *counts,
                                             const uint64_t *rows,
                                             uint32_t count,
                                             uint32_t stretches,
                                             uint64_t entries_expected,
                                             struct member *members)
{
    unsigned order = counts->order;
    double far_weight = (double)entries_expected / count;
    struct length most = {0, 0};
    struct length same = {0, 0}; /* number of rows per distinct coordinate, estimated likewise */
    unsigned mode = 0;

    for (unsigned n = order + 1; n-- > 0;) {
        for (uint32_t i = 0; i < count; i++) {
            members[i].number = slc_fiber_number(counts, rows + (size_t)i * order, n);
            members[i].stretch = (uint32_t)((uint64_t)i * stretches / count);
        }
        struct length length =
            estimate_length(members, count, stretches < count ? 1 : 0, far_weight);
        if (n == order) {
            same = length;
        } else if (length.all >= most.all) {
            most = length;
            mode = n;
        }
    }
    return most.near >= near_nnz_min * same.near || most.all >= piece_nnz_min * same.all
               ? (struct slc_fiber_run){mode, SLC_FIBER_BITS}
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
    *run = (struct slc_fiber_run){0, 0};
    if (counts->order == 1 || count == 0) {
        return SLC_OK;
    }
    if (stretches <= 1 || entries_expected <= count) {
        *run = guess_from_all(counts, rows, count);
        return SLC_OK;
    }
    struct member *members = slc_malloc(count * sizeof *members);
    SLC_TRY(slc_check_memory(members != NULL, err, "for a sample of %u coordinates", count));
    *run = guess_from_mates(counts, rows, count, stretches, entries_expected, members);
    slc_free(members);
    return SLC_OK;
}
