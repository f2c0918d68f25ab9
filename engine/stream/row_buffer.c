/* The decoded nonzeros of a worker. */
#include "engine/stream/row_pass_impl.h"

#include "base/memory/checked.h"
#include "base/topology/topology.h"

#include <assert.h>
#include <string.h>

/* Arrays begin at multiples of a cache line. */
enum { LINE_BYTES = 64 };

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
    passes->buffer_nnz = plan->rows.buffer_nnz;
    passes->product_nnz = plan->rows.product_nnz;
    passes->sum_count = plan->request.rows.sums;
    passes->memory_count = plan->request.rows.memory;
}

void slc_row_plan_workers(const struct slc_layout_info *info, struct slc_plan *plan)
{
    const uint64_t width = slc_row_width(plan->request.rank);
    const uint64_t cache =
        slc_min_u64(slc_max_u64(slc_cache_bytes(2) / 2, PRODUCT_BYTES_LEAST), PRODUCT_BYTES_MOST);
    struct slc_row_passes passes = {.order = info->order};

    plan->rows.buffer_nnz = 2 * (uint32_t)slc_min_u64(slc_max_u64(info->nnz, 1), SLC_TILE_NNZ);
    plan->rows.product_nnz =
        (uint32_t)slc_max_u64(slc_row_piece_nnz(plan->request.rank),
                              slc_min_u64(cache / sizeof(double) / width, plan->rows.buffer_nnz));
    slc_row_sizes(plan, &passes);
    const uint64_t bytes = slc_row_worker_place(&passes, NULL, NULL);
    plan->rows.worker_bytes = bytes > UINT64_MAX / 2 / plan->threads
                                  ? UINT64_MAX
                                  : slc_buffer_footprint(bytes * plan->threads, SLC_PAGES_MIXED);
}

uint64_t
slc_row_worker_place(const struct slc_row_passes *passes, struct row_worker *worker, char *at)
{
    const uint64_t nnz = passes->buffer_nnz;
    struct row_worker unused;
    uint64_t used = 0;

    worker = worker != NULL ? worker : &unused;
    for (unsigned m = 0; m + 1 < passes->order; m++) {
        worker->spare[m] = place(at, &used, nnz * sizeof(uint32_t));
    }
    worker->arrays.values = place(at, &used, nnz * sizeof(double));
    worker->runs = place(at, &used, (nnz + 1) * sizeof(struct row_run));
    worker->products =
        place(at, &used, (uint64_t)passes->product_nnz * passes->width * sizeof(double));
    worker->sums = place(at, &used, passes->sum_count * sizeof(double));
    worker->total = place(at, &used, passes->sum_count * sizeof(double));
    worker->memory = place(at, &used, passes->memory_count * sizeof(double));
    worker->x = place(at, &used, passes->width * sizeof(double));
    return used;
}

void slc_row_worker_begin(const struct slc_row_passes *passes, struct row_worker *worker)
{
    unsigned next = 0;

    for (unsigned m = 0; m < passes->order; m++) {
        /* While rows are gathered, the memory of the runs holds rows. */
        worker->arrays.coords[m] =
            m == passes->mode ? (uint32_t *)(void *)worker->runs : worker->spare[next++];
    }
    worker->product_arrays = NULL;
    worker->rows = 0;
    worker->traversals = 0;
    worker->most = 0;
    slc_row_worker_cut(worker, 0, 0);
}

void slc_row_worker_cut(struct row_worker *worker, uint32_t nnz, uint32_t run_count)
{
    worker->nnz = nnz;
    worker->run_count = run_count;
    worker->runs[run_count].begin = nnz;
    if (worker->product_arrays == &worker->arrays && worker->product_end > nnz) {
        worker->product_arrays = NULL;
    }
}

/* Copies the coordinates of `count` nonzeros in mode m, and all values, of a chunk. */
static void copy_chunk(const struct slc_row_passes *passes,
                       const struct row_worker *worker,
                       const struct slc_tile_view *tile,
                       const struct slc_chunk_view *chunk)
{
    const struct row_arrays *arrays = &worker->arrays;

    for (unsigned m = 0; m < passes->order; m++) {
        uint32_t *to = arrays->coords[m] + worker->nnz;
        const uint32_t corner = (uint32_t)tile->corner[m];

        for (uint32_t i = 0; m != passes->mode && i < chunk->nnz; i++) {
            to[i] = corner + chunk->offset[m][i];
        }
    }
    if (tile->value_type == SLC_F64) {
        memcpy(arrays->values + worker->nnz, chunk->values, chunk->nnz * sizeof(double));
        return;
    }
    for (uint32_t i = 0; i < chunk->nnz; i++) {
        arrays->values[worker->nnz + i] = (double)((const float *)chunk->values)[i];
    }
}

enum slc_status
slc_row_append(void *context, unsigned number, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_row_passes *passes = context;
    struct row_worker *worker = &passes->worker[number];
    const uint32_t corner = (uint32_t)tile->corner[passes->mode];
    struct row_run *run = NULL;
    struct slc_chunk_view chunk;

    assert(worker->nnz + tile->nnz <= passes->buffer_nnz);
    for (;;) {
        SLC_TRY(tile->next(tile, SLC_ROW_PIECE, &chunk, err));
        if (chunk.nnz == 0) {
            break;
        }
        const uint32_t *offset = chunk.offset[passes->mode];

        copy_chunk(passes, worker, tile, &chunk);
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            const uint32_t row = corner + offset[i];

            if (run == NULL || run->row != row) {
                run = &worker->runs[worker->run_count++];
                *run = (struct row_run){row, worker->nnz + i};
            }
        }
        worker->nnz += chunk.nnz;
    }
    worker->runs[worker->run_count].begin = worker->nnz;
    return SLC_OK;
}

enum slc_status slc_row_append_again(void *context,
                                     unsigned worker,
                                     struct slc_tile_view *tile,
                                     struct slc_error *err)
{
    return slc_row_append(context, worker, tile, err);
}

enum slc_status slc_row_append_interval(const struct slc_row_passes *passes,
                                        struct row_worker *worker,
                                        struct slc_tile_view *tile,
                                        struct slc_error *err)
{
    const struct row_gathering *gather = &passes->gather;
    const struct row_arrays *arrays = &worker->arrays;
    const uint64_t corner = tile->corner[passes->mode];
    const uint64_t last = corner + tile->extent[passes->mode];
    const uint64_t from = slc_max_u64(gather->first_row, corner);
    const uint64_t span = slc_min_u64(gather->end_row - 1, last) - from;
    struct slc_chunk_view chunk;

    worker->nnz = 0;
    worker->product_arrays = NULL;
    if (from > last || gather->end_row <= corner) {
        return SLC_OK;
    }
    assert(tile->nnz <= passes->buffer_nnz);
    for (;;) {
        SLC_TRY(tile->next(tile, SLC_ROW_PIECE, &chunk, err));
        if (chunk.nnz == 0) {
            return SLC_OK;
        }
        const uint32_t first = (uint32_t)(from - corner);
        const uint32_t *row = chunk.offset[passes->mode];

        for (uint32_t i = 0; i < chunk.nnz; i++) {
            for (unsigned m = 0; m < passes->order; m++) {
                arrays->coords[m][worker->nnz] = (uint32_t)tile->corner[m] + chunk.offset[m][i];
            }
            arrays->values[worker->nnz] = tile->value_type == SLC_F64
                                              ? ((const double *)chunk.values)[i]
                                              : (double)((const float *)chunk.values)[i];
            /* If row[i] < first, the unsigned difference is larger than `span`. */
            worker->nnz += row[i] - first <= span;
        }
    }
}
