/* See convert/scatter.h. */
#include "convert/scatter.h"

#include <assert.h>

enum {
    BUFFER_BYTES_MAX = 256 << 10,
    ENTRIES_MIN = 16,
    NARROW_ROW_BYTES = 16,
    /* Entries per run that buffers have room for; pieces scattered thinner than that flush early.
     */
    ENTRIES_PER_RUN = 8
};

static uint32_t runs_for(uint32_t entries)
{
    return entries / ENTRIES_PER_RUN + 2;
}

static size_t align_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static size_t rows_bytes(const struct slc_scatter_shape *shape)
{
    return align_up((size_t)shape->entries * NARROW_ROW_BYTES);
}

static size_t buffer_bytes(const struct slc_scatter_shape *shape)
{
    return rows_bytes(shape) + align_up(shape->runs * sizeof(struct slc_run));
}

uint64_t slc_scatter_chunk_bytes(const struct slc_scatter_shape *shape)
{
    return slc_chunk_bytes_max(rows_bytes(shape), shape->runs);
}

uint64_t slc_scatter_bytes(const struct slc_scatter_shape *shape)
{
    uint64_t fills = align_up(shape->buckets * sizeof(struct slc_scatter_fill));
    uint64_t per_worker = fills + (uint64_t)shape->buckets * buffer_bytes(shape) +
                          align_up(slc_scatter_chunk_bytes(shape)) +
                          align_up(sizeof(struct slc_scatter_worker));

    return per_worker * shape->workers;
}

struct slc_scatter_shape slc_scatter_fit(unsigned workers, uint32_t buckets, uint64_t budget_bytes)
{
    struct slc_scatter_shape shape = {workers, buckets, 0, 0};
    uint32_t low = 0;
    uint32_t high = BUFFER_BYTES_MAX / NARROW_ROW_BYTES;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        shape.entries = middle;
        shape.runs = runs_for(middle);
        if (slc_scatter_bytes(&shape) <= budget_bytes) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    shape.entries = low >= ENTRIES_MIN ? low : 0;
    shape.runs = runs_for(shape.entries);
    return shape;
}

void slc_scatter_init(struct slc_scatter *scatter,
                      const struct slc_scatter_shape *shape,
                      struct slc_spill *spill,
                      struct slc_chain *chains,
                      void *memory)
{
    uint8_t *at = memory;
    void *workers = memory;
    unsigned i;

    scatter->shape = *shape;
    scatter->spill = spill;
    scatter->chains = chains;
    scatter->rows_bytes = rows_bytes(shape);
    scatter->buffer_bytes = buffer_bytes(shape);
    scatter->workers = workers;
    at += align_up(sizeof(struct slc_scatter_worker)) * shape->workers;
    for (i = 0; i < shape->workers; i++) {
        struct slc_scatter_worker *worker = &scatter->workers[i];
        size_t fills = align_up(shape->buckets * sizeof(struct slc_scatter_fill));
        void *fill_bytes = at;

        worker->fills = fill_bytes;
        memset(worker->fills, 0, fills);
        at += fills;
        worker->rows = at;
        at += shape->buckets * scatter->buffer_bytes;
        worker->chunk = at;
        at += align_up(slc_scatter_chunk_bytes(shape));
        worker->stamp = 0;
        worker->sequence = 0;
        worker->frame = UINT32_MAX;
    }
    assert((uint64_t)(at - (uint8_t *)memory) <= slc_scatter_bytes(shape));
}

enum slc_status slc_scatter_frame(struct slc_scatter *scatter,
                                  unsigned worker,
                                  uint32_t frame,
                                  const struct slc_key_range *ranges,
                                  struct slc_error *err)
{
    struct slc_scatter_worker *w = &scatter->workers[worker];

    if (w->frame == frame) {
        return SLC_OK;
    }
    for (uint32_t bucket = 0; bucket < scatter->shape.buckets; bucket++) {
        struct slc_scatter_fill *fill = &w->fills[bucket];
        enum slc_status status = slc_scatter_flush(scatter, worker, bucket, err);

        if (status != SLC_OK) {
            return status;
        }
        fill->range = ranges[bucket];
        fill->row_words = slc_chunk_row_words(&fill->range);
        fill->most = scatter->shape.entries * NARROW_ROW_BYTES / 8 / fill->row_words;
    }
    w->frame = frame;
    return SLC_OK;
}

/* Turns the beginnings of runs into their counts. */
static void count_runs(struct slc_run *runs, uint32_t run_count, uint32_t entries)
{
    for (uint32_t r = 0; r < run_count; r++) {
        runs[r].count = (r + 1 < run_count ? runs[r + 1].count : entries) - runs[r].count;
    }
}

enum slc_status slc_scatter_flush(struct slc_scatter *scatter,
                                  unsigned worker,
                                  uint32_t bucket,
                                  struct slc_error *err)
{
    struct slc_scatter_worker *w = &scatter->workers[worker];
    struct slc_scatter_fill *fill = &w->fills[bucket];
    const void *rows = w->rows + bucket * scatter->buffer_bytes;
    void *run_bytes = w->rows + bucket * scatter->buffer_bytes + scatter->rows_bytes;
    uint32_t run_count = fill->runs;
    struct slc_chunk_rows chunk = {
        .rows = rows, .count = fill->entries, .frame = w->frame, .range = fill->range};
    uint32_t bytes;

    if (chunk.count == 0) {
        return SLC_OK;
    }
    count_runs(run_bytes, run_count, chunk.count);
    bytes = slc_chunk_pack(w->chunk, &chunk, run_bytes, run_count);
    fill->entries = 0;
    fill->runs = 0;
    return slc_spill_append(scatter->spill, &scatter->chains[bucket], w->chunk, bytes, chunk.count,
                            run_count, err);
}

enum slc_status slc_scatter_flush_all(struct slc_scatter *scatter, struct slc_error *err)
{
    unsigned worker;
    uint32_t bucket;

    for (bucket = 0; bucket < scatter->shape.buckets; bucket++) {
        for (worker = 0; worker < scatter->shape.workers; worker++) {
            enum slc_status status = slc_scatter_flush(scatter, worker, bucket, err);

            if (status != SLC_OK) {
                return status;
            }
        }
    }
    return SLC_OK;
}
