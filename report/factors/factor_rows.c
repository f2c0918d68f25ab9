/* Reads the rows of a factor in small parts, and adds the rows to bands, or to a heap of top rows
 * per column. */
#include "report/factors/factor_rows.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/model/npy.h"

#include <math.h>

/* Approximate number of matrix elements per read; larger reads are not faster. */
enum { PIECE_NUMBERS = 64 * 1024 };

static uint64_t piece_rows(uint32_t rank)
{
    return slc_max_u64(1, PIECE_NUMBERS / rank);
}

uint64_t slc_factor_rows_memory_bytes(uint32_t rank)
{
    return slc_buffer_footprint(piece_rows(rank) * rank * sizeof(double), SLC_PAGES_SMALL);
}

/* Calls `add` with all rows in order. Each call has `rows` rows, starting with row `first`, of
 * `rank` values each. Errors: those of slc_npy_rows_read; SLC_ERR_MEMORY. */
static enum slc_status
for_each_row(const struct slc_factor_rows *factor,
             void (*add)(void *context, const double *values, uint64_t first, uint64_t rows),
             void *context,
             struct slc_error *err)
{
    const uint64_t step = piece_rows(factor->rank);
    struct slc_npy_rows *rows = NULL;
    struct slc_buffer values = SLC_BUFFER_INIT;
    enum slc_status status = factor->path == NULL
                                 ? SLC_OK
                                 : slc_npy_rows_open(factor->files, factor->path, factor->length,
                                                     factor->rank, &rows, err);

    if (status == SLC_OK) {
        status =
            slc_buffer_create(&values, step * factor->rank * sizeof(double), SLC_PAGES_SMALL, err);
    }
    for (uint64_t first = 0, more; first < factor->length && status == SLC_OK; first += more) {
        more = slc_min_u64(step, factor->length - first);
        if (factor->path == NULL) {
            slc_matrix_get_rows(factor->matrix, first, more, values.data);
        } else {
            status = slc_npy_rows_read(rows, first, more, values.data, err);
        }
        if (status == SLC_OK) {
            add(context, values.data, first, more);
        }
    }
    slc_buffer_destroy(&values);
    slc_npy_rows_close(rows);
    return status;
}

uint32_t slc_column_bands_count(const struct slc_column_bands *query)
{
    return (uint32_t)slc_min_u64(query->bands, query->factor.length);
}

/* Returns the first row of band `k` of `count`. Does not multiply by the mode size, because the
 * product could overflow. */
static uint64_t band_begin(uint64_t length, uint32_t count, uint32_t k)
{
    const uint64_t whole = length / count;
    const uint64_t rest = length % count;

    return whole * k + (rest * k + count - 1) / count;
}

struct bands_state {
    const struct slc_column_bands *query;
    struct slc_band *found;
    uint32_t count;
    uint32_t band; /* current band */
    uint64_t end;  /* end of the rows of the band */
};

static void add_row(struct bands_state *state, uint64_t row, const double *values)
{
    const struct slc_column_bands *query = state->query;
    bool first = row == 0;

    if (row == state->end) {
        state->band++;
        state->end = band_begin(query->factor.length, state->count, state->band + 1);
        first = true;
    }
    for (uint32_t c = 0; c < query->column_count; c++) {
        struct slc_band *band = &state->found[(uint64_t)c * state->count + state->band];
        const double value = values[query->columns[c]];

        band->low = first ? value : fmin(band->low, value);
        band->high = first ? value : fmax(band->high, value);
    }
}

static void add_to_bands(void *context, const double *values, uint64_t first, uint64_t rows)
{
    struct bands_state *state = context;

    for (uint64_t i = 0; i < rows; i++) {
        add_row(state, first + i, values + i * state->query->factor.rank);
    }
}

enum slc_status slc_column_bands_find(const struct slc_column_bands *query,
                                      struct slc_band *found,
                                      struct slc_error *err)
{
    struct bands_state state = {
        .query = query, .found = found, .count = slc_column_bands_count(query)};

    if (query->factor.length > 0) {
        state.end = band_begin(query->factor.length, state.count, 1);
    }
    return for_each_row(&query->factor, add_to_bands, &state, err);
}

uint64_t slc_top_rows_count(const struct slc_top_rows_query *query)
{
    return slc_min_u64(query->rows, query->factor.length);
}

/* Returns true if `a` is after `b` in the order of top rows. */
static bool weaker(const struct slc_top_row *a, const struct slc_top_row *b, bool by_signed)
{
    const double x = by_signed ? a->value : fabs(a->value);
    const double y = by_signed ? b->value : fabs(b->value);

    return x < y || (x == y && a->row > b->row);
}

/* Inserts `row` at position `at`, or at a position below `at`, in a heap of `count` rows. */
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
    const struct slc_top_rows_query *query;
    struct slc_top_row *found; /* one heap for each column */
};

static void add_rows(void *context, const double *values, uint64_t first, uint64_t rows)
{
    const struct heaps *heaps = context;
    const struct slc_top_rows_query *query = heaps->query;
    const uint64_t count = slc_top_rows_count(query);

    for (uint64_t i = 0; i < rows && count > 0; i++) {
        for (uint32_t c = 0; c < query->column_count; c++) {
            struct slc_top_row *heap = heaps->found + c * count;
            const struct slc_top_row row = {
                .row = first + i, .value = values[i * query->factor.rank + query->columns[c]]};

            if (row.row < count) {
                heap[row.row] = row;
                /* The heap has just become full, so establish the heap order, starting with the
                 * last element. */
                for (uint64_t at = count; row.row + 1 == count && at-- > 0;) {
                    sink(heap, count, at, heap[at], query->by_signed);
                }
            } else if (weaker(&heap[0], &row, query->by_signed)) {
                sink(heap, count, 0, row, query->by_signed);
            }
        }
    }
}

/* Sorts a heap in descending order. */
static void sort(struct slc_top_row *heap, uint64_t count, bool by_signed)
{
    while (count > 1) {
        const struct slc_top_row last = heap[--count];

        heap[count] = heap[0];
        sink(heap, count, 0, last, by_signed);
    }
}

enum slc_status slc_top_rows_find(const struct slc_top_rows_query *query,
                                  struct slc_top_row *found,
                                  struct slc_error *err)
{
    const uint64_t count = slc_top_rows_count(query);
    struct heaps heaps = {query, found};

    SLC_TRY(for_each_row(&query->factor, add_rows, &heaps, err));
    for (uint32_t c = 0; c < query->column_count; c++) {
        sort(found + c * count, count, query->by_signed);
    }
    return SLC_OK;
}
