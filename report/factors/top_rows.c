/* See top_rows.h. The weakest row that is kept stands at the root of each heap. */
#include "report/factors/top_rows.h"

#include "base/memory/checked.h"

#include <math.h>

uint64_t slc_top_rows_count(const struct slc_top_rows_query *wanted)
{
    return slc_min_u64(wanted->rows, wanted->factor.length);
}

/* Whether `a` comes behind `b` among the strongest. */
static bool weaker(const struct slc_top_row *a, const struct slc_top_row *b, bool by_signed)
{
    const double x = by_signed ? a->value : fabs(a->value);
    const double y = by_signed ? b->value : fabs(b->value);

    return x < y || (x == y && a->row > b->row);
}

/* Puts `row` at `at` or below it, in a heap of `count`. */
static void
sink(struct slc_top_row *heap, uint64_t count, uint64_t at, struct slc_top_row row, bool by_signed)
{
    for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && weaker(&heap[child + 1], &heap[child], by_signed)) {
            child++;
        }
        if (!weaker(&heap[child], &row, by_signed)) {
            break;
        }
        heap[at] = heap[child];
    }
    heap[at] = row;
}

struct heaps {
    const struct slc_top_rows_query *wanted;
    struct slc_top_row *found; /* a heap for each column */
};

static void add_rows(void *context, const double *values, uint64_t first, uint64_t rows)
{
    const struct heaps *heaps = context;
    const struct slc_top_rows_query *wanted = heaps->wanted;
    const uint64_t count = slc_top_rows_count(wanted);

    for (uint64_t i = 0; i < rows && count > 0; i++) {
        for (uint32_t c = 0; c < wanted->column_count; c++) {
            struct slc_top_row *heap = heaps->found + c * count;
            const struct slc_top_row row = {
                .row = first + i, .value = values[i * wanted->factor.rank + wanted->columns[c]]};

            if (row.row < count) {
                heap[row.row] = row;
                /* Full for the first time: made a heap from its end. */
                for (uint64_t at = count; row.row + 1 == count && at-- > 0;) {
                    sink(heap, count, at, heap[at], wanted->by_signed);
                }
            } else if (weaker(&heap[0], &row, wanted->by_signed)) {
                sink(heap, count, 0, row, wanted->by_signed);
            }
        }
    }
}

/* Turns a heap into a list, the strongest first. */
static void sort(struct slc_top_row *heap, uint64_t count, bool by_signed)
{
    while (count > 1) {
        const struct slc_top_row last = heap[--count];

        heap[count] = heap[0];
        sink(heap, count, 0, last, by_signed);
    }
}

enum slc_status slc_top_rows_find(const struct slc_top_rows_query *wanted,
                                  struct slc_top_row *found,
                                  struct slc_error *err)
{
    const uint64_t count = slc_top_rows_count(wanted);
    struct heaps heaps = {wanted, found};
    const enum slc_status status = slc_factor_rows_each(&wanted->factor, add_rows, &heaps, err);

    for (uint32_t c = 0; c < wanted->column_count && status == SLC_OK; c++) {
        sort(found + c * count, count, wanted->by_signed);
    }
    return status;
}
