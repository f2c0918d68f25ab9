/* Copies, filters and sorts the decoded nonzeros of a worker. */
#include "engine/stream/rows/row_pass_impl.h"

#include "base/memory/checked.h"
#include "base/topology/topology.h"

#include <inttypes.h>
#include <string.h>

/* Arrays begin at multiples of a cache line. */
enum { LINE_BYTES = 64 };

/* Rows are sorted by this many bits at a time. */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Limits of the products of a worker, which should stay in the second-level cache. */
#define PRODUCT_BYTES_LEAST (UINT64_C(256) << 10)
#define PRODUCT_BYTES_MOST  (UINT64_C(1) << 20)

static uint64_t in_lines(uint64_t bytes)
{
    return slc_div_up_u64(bytes, LINE_BYTES) * LINE_BYTES + SLC_ROW_SLACK_BYTES;
}

/* Returns the next array of `bytes` bytes, and advances *used. Returns NULL if `at` is NULL. */
static void *place(char *at, uint64_t *used, uint64_t bytes)
{
    void *array = at != NULL ? at + *used : NULL;

    *used += in_lines(bytes);
    return array;
}

void slc_row_sizes(const struct slc_plan *plan, struct slc_row_passes *passes)
{
    passes->rank = plan->request.rank;
    passes->width = slc_row_width(passes->rank);
    passes->piece_nnz = slc_row_piece_nnz(passes->rank);
    passes->added_nnz = slc_row_added_nnz(passes->rank);
    passes->buffer_nnz = plan->rows.buffer_nnz;
    passes->product_nnz = plan->rows.product_nnz;
    passes->segment_nnz = plan->rows.segment_nnz;
    passes->sum_count = plan->request.rows.sums;
    passes->memory_count = plan->request.rows.memory;
}

void slc_row_plan_workers(const struct slc_layout_info *info,
                          struct slc_plan *plan,
                          uint64_t buffer_nnz)
{
    const uint64_t width = slc_row_width(plan->request.rank);
    const uint64_t cache =
        slc_min_u64(slc_max_u64(slc_cache_bytes(2) / 2, PRODUCT_BYTES_LEAST), PRODUCT_BYTES_MOST);
    struct slc_row_passes passes = {.order = info->order};

    plan->rows.segment_nnz = SLC_ROW_SEGMENT_NNZ;
    plan->rows.buffer_nnz = (uint32_t)slc_max_u64(
        2 * slc_min_u64(slc_max_u64(info->nnz, 1), SLC_ROW_SEGMENT_NNZ), buffer_nnz);
    plan->rows.product_nnz =
        (uint32_t)slc_max_u64(slc_row_piece_nnz(plan->request.rank),
                              slc_min_u64(cache / sizeof(double) / width, plan->rows.buffer_nnz));
    slc_row_sizes(plan, &passes);
    const uint64_t bytes = slc_row_worker_place(&passes, NULL, NULL);
    plan->rows.worker_bytes = bytes > UINT64_MAX / 2 / plan->threads
                                  ? UINT64_MAX
                                  : slc_buffer_footprint(bytes * plan->threads, SLC_PAGES_MIXED);
}

uint64_t slc_row_gather_bytes(unsigned order, uint64_t nnz)
{
    const uint64_t each = sizeof(double) + (order - 1) * sizeof(uint32_t);

    return nnz > UINT64_MAX / 2 / each
               ? UINT64_MAX
               : slc_buffer_footprint(nnz * each + order * SLC_ROW_SLACK_BYTES, SLC_PAGES_MIXED);
}

/* Places the memory for the products of `nnz` nonzeros. */
static void place_products(const struct slc_row_passes *passes,
                           struct row_products *products,
                           uint64_t nnz,
                           char *at,
                           uint64_t *used)
{
    for (unsigned m = 0; m + 1 < passes->order; m++) {
        products->window[m] = place(at, used, nnz * sizeof(uint32_t));
    }
    products->window_values = place(at, used, nnz * sizeof(double));
    products->products = place(at, used, nnz * passes->width * sizeof(double));
}

uint64_t
slc_row_worker_place(const struct slc_row_passes *passes, struct row_worker *worker, char *at)
{
    /* A chunk is copied before it is known how many of its nonzeros are needed. */
    const uint64_t nnz = (uint64_t)passes->buffer_nnz + SLC_ROW_PIECE;
    struct row_worker unused = {.nnz = 0};
    uint64_t used = 0;

    worker = worker != NULL ? worker : &unused;
    for (unsigned m = 0; m < passes->order; m++) {
        worker->spare[m] = place(at, &used, nnz * sizeof(uint32_t));
    }
    worker->arrays.values = place(at, &used, nnz * sizeof(double));
    worker->order[0] = place(at, &used, nnz * sizeof(uint32_t));
    worker->order[1] = place(at, &used, nnz * sizeof(uint32_t));
    place_products(passes, &worker->ahead, passes->product_nnz, at, &used);
    place_products(passes, &worker->piece, passes->added_nnz, at, &used);
    worker->sums = place(at, &used, passes->sum_count * sizeof(double));
    worker->total = place(at, &used, passes->sum_count * sizeof(double));
    worker->memory = place(at, &used, passes->memory_count * sizeof(double));
    worker->x = place(at, &used, passes->width * sizeof(double));
    return used;
}

/* Invalidates the products, because the nonzeros change. */
static void clear_products(struct row_worker *worker)
{
    worker->ahead.arrays = NULL;
    worker->piece.arrays = NULL;
}

void slc_row_worker_begin(const struct slc_row_passes *passes, struct row_worker *worker)
{
    for (unsigned m = 0; m < passes->order; m++) {
        worker->arrays.coords[m] = worker->spare[m];
    }
    worker->rows = 0;
    worker->traversals = 0;
    worker->most = 0;
    slc_row_worker_clear(worker);
}

void slc_row_worker_clear(struct row_worker *worker)
{
    worker->nnz = 0;
    worker->arrays.order = NULL;
    clear_products(worker);
}

void slc_row_worker_drop(const struct slc_row_passes *passes,
                         struct row_worker *worker,
                         uint32_t count)
{
    worker->nnz -= count;
    for (unsigned m = 0; m < passes->order; m++) {
        uint32_t *coords = worker->arrays.coords[m];

        memmove(coords, coords + count, worker->nnz * sizeof *coords);
    }
    memmove(worker->arrays.values, worker->arrays.values + count, worker->nnz * sizeof(double));
    clear_products(worker);
}

/* Copies all nonzeros of a chunk to the end of the buffer. */
static void copy_chunk(const struct slc_row_passes *passes,
                       const struct row_worker *worker,
                       const struct slc_tile_view *tile,
                       const struct slc_chunk_view *chunk)
{
    double *values = worker->arrays.values + worker->nnz;

    for (unsigned m = 0; m < passes->order; m++) {
        uint32_t *to = worker->arrays.coords[m] + worker->nnz;
        const uint32_t corner = (uint32_t)tile->corner[m];

        for (uint32_t i = 0; i < chunk->nnz; i++) {
            to[i] = corner + chunk->offset[m][i];
        }
    }
    if (tile->value_type == SLC_F64) {
        memcpy(values, chunk->values, chunk->nnz * sizeof(double));
        return;
    }
    for (uint32_t i = 0; i < chunk->nnz; i++) {
        values[i] = (double)((const float *)chunk->values)[i];
    }
}

/* Keeps those of the `count` nonzeros after the end of the buffer whose rows are first .. first +
 * span, and returns their number. */
static uint32_t keep_rows(const struct slc_row_passes *passes,
                          const struct row_worker *worker,
                          uint32_t count,
                          uint32_t first,
                          uint32_t span)
{
    const uint32_t *rows = worker->arrays.coords[passes->mode] + worker->nnz;
    double *values = worker->arrays.values + worker->nnz;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        /* If rows[i] < first, the unsigned difference is larger than `span`. */
        const bool keep = rows[i] - first <= span;

        for (unsigned m = 0; m < passes->order; m++) {
            uint32_t *coords = worker->arrays.coords[m] + worker->nnz;

            coords[kept] = coords[i];
        }
        values[kept] = values[i];
        kept += keep;
    }
    return kept;
}

enum slc_status slc_row_append(const struct slc_row_passes *passes,
                               struct row_worker *worker,
                               struct slc_tile_view *tile,
                               uint64_t first,
                               uint64_t end,
                               struct slc_error *err)
{
    const uint64_t corner = tile->corner[passes->mode];
    const uint64_t last = corner + tile->extent[passes->mode];
    struct slc_chunk_view chunk;

    clear_products(worker);
    worker->arrays.order = NULL;
    if (first > last || end <= corner) {
        return SLC_OK;
    }
    for (;;) {
        SLC_TRY(tile->next(tile, SLC_ROW_PIECE, &chunk, err));
        if (chunk.nnz == 0) {
            return SLC_OK;
        }
        copy_chunk(passes, worker, tile, &chunk);
        worker->nnz += first <= corner && last < end
                           ? chunk.nnz
                           : keep_rows(passes, worker, chunk.nnz, (uint32_t)first,
                                       (uint32_t)(end - 1 - first));
        if (worker->nnz > passes->buffer_nnz) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "the rows %" PRIu64 " to %" PRIu64
                            " have more nonzeros than were counted",
                            first + 1, end);
        }
    }
}

/* Sorts `from` by `bits` bits of the rows, from bit `shift` on, into `to`. */
static void sort_digit(const struct row_worker *worker,
                       const uint32_t *rows,
                       const uint32_t *from,
                       uint32_t first,
                       unsigned shift,
                       uint32_t *to)
{
    uint32_t begin[DIGITS + 1] = {0};

    for (uint32_t i = 0; i < worker->nnz; i++) {
        begin[((rows[i] - first) >> shift & (DIGITS - 1)) + 1]++;
    }
    for (uint32_t d = 0; d < DIGITS; d++) {
        begin[d + 1] += begin[d];
    }
    for (uint32_t i = 0; i < worker->nnz; i++) {
        const uint32_t place = from != NULL ? from[i] : i;

        to[begin[(rows[place] - first) >> shift & (DIGITS - 1)]++] = place;
    }
}

void slc_row_sort(const struct slc_row_passes *passes,
                  struct row_worker *worker,
                  uint64_t first,
                  uint64_t end)
{
    const uint32_t *rows = worker->arrays.coords[passes->mode];
    const uint32_t *from = NULL;
    unsigned digit = 0;

    while (digit * DIGIT_BITS < 32 && (end - 1 - first) >> (digit * DIGIT_BITS) != 0) {
        sort_digit(worker, rows, from, (uint32_t)first, digit * DIGIT_BITS,
                   worker->order[digit % 2]);
        from = worker->order[digit++ % 2];
    }
    worker->arrays.order = from;
    clear_products(worker);
}
