/* Predicts the fiber run from a sample.
 *
 * A sample from the beginning of the input is treated as the whole input. In a sample that is
 * spread over the input, a row is counted if its piece (fibers.h) has another sampled row. A
 * stretch is contiguous, so rows of the same stretch reveal pieces that are contiguous in the
 * input. Such pieces occur if the input is sorted by these fibers, or if indices were assigned in
 * order of appearance. Rows in different stretches reveal the other pieces. Another row of such a
 * piece is in the sample only with a probability equal to the sampled fraction of the input, so the
 * count of rows in different stretches is divided by this fraction. Both counts together yield the
 * average number of nonzeros per piece. */
#include "convert/build/sort/fiber_guess.h"

#include "base/memory/memory.h"
#include "convert/build/sort/heap_sort.h"

/* Smallest average number of nonzeros per piece with which a mode is predicted, if the average is
 * measured from rows of the same stretch. The final choice uses the same limit (fibers.h). */
static const double near_nnz_min = 1.75;
/* Like near_nnz_min, for an average that is estimated from rows of different stretches. Rows of
 * long pieces are found more often, so the estimate is too high: if it is below this limit, the
 * true average is usually below 1.75. */
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

/* Average number of nonzeros per piece. */
struct length {
    double near; /* estimated from rows of the same stretch */
    double all;  /* estimated from rows of the same and of different stretches */
};

/* Estimates the average number of nonzeros per piece. Each row of a piece except its first row
 * counts once if it is in the same stretch as the previous row of the piece, otherwise `far_weight`
 * times. If `touching` is 1, adjacent stretches count as one stretch, because it is known only
 * approximately where a stretch begins. If every row is a stretch, `touching` is 0. */
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
    struct length same = {0, 0}; /* number of rows per distinct coordinate */
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
