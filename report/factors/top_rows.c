/* See top_rows.h. The weakest row that is kept stands at the root of each heap. */
#include "report/factors/top_rows.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/model/npy.h"

#include <math.h>

/* Numbers read at a time, about: more than that makes reading no faster. */
enum { PIECE_NUMBERS = 64 * 1024 };

static uint64_t piece_rows(uint32_t rank)
{
    return slc_max_u64(1, PIECE_NUMBERS / rank);
}

uint64_t slc_top_rows_memory_bytes(uint32_t rank)
{
    return slc_buffer_footprint(piece_rows(rank) * rank * sizeof(double), SLC_PAGES_SMALL);
}

uint64_t slc_top_rows_count(const struct slc_top_rows_query *wanted)
{
    return slc_min_u64(wanted->rows, wanted->length);
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

/* Adds rows, of numbers from `first` on, to the heaps of `count` each. */
static void add_rows(const struct slc_top_rows_query *wanted,
                     const double *values,
                     uint64_t first,
                     uint64_t rows,
                     struct slc_top_row *found)
{
    const uint64_t count = slc_top_rows_count(wanted);

    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t c = 0; c < wanted->column_count; c++) {
            struct slc_top_row *heap = found + c * count;
            const struct slc_top_row row = {.row = first + i,
                                            .value = values[i * wanted->rank + wanted->columns[c]]};

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
    const uint64_t step = piece_rows(wanted->rank);
    struct slc_npy_rows *rows = NULL;
    struct slc_buffer values = SLC_BUFFER_INIT;
    enum slc_status status = wanted->path == NULL
                                 ? SLC_OK
                                 : slc_npy_rows_open(wanted->files, wanted->path, wanted->length,
                                                     wanted->rank, &rows, err);

    if (status == SLC_OK) {
        status =
            slc_buffer_create(&values, step * wanted->rank * sizeof(double), SLC_PAGES_SMALL, err);
    }
    for (uint64_t first = 0, more; first < wanted->length && count > 0 && status == SLC_OK;
         first += more) {
        more = slc_min_u64(step, wanted->length - first);
        if (wanted->path == NULL) {
            slc_matrix_get_rows(wanted->matrix, first, more, values.data);
        } else {
            status = slc_npy_rows_read(rows, first, more, values.data, err);
        }
        if (status == SLC_OK) {
            add_rows(wanted, values.data, first, more, found);
        }
    }
    for (uint32_t c = 0; c < wanted->column_count && status == SLC_OK; c++) {
        sort(found + c * count, count, wanted->by_signed);
    }
    slc_buffer_destroy(&values);
    slc_npy_rows_close(rows);
    return status;
}
