/* Collects tiles, builds copies of a tensor in memory, and owns the memory of the copies.
 *
 * Tiles are decoded to records in key order. Then, for one mode after the other, the same records
 * are grouped by range and written as chunks. The records are freed at the end.
 *
 * Cost: 20 to 50 ns per nonzero and mode, divided among the workers, including the first touch of
 * pages. This time equals the time of 15 to 30 MTTKRPs of all modes from the copies. */
#include "base/memory/checked.h"
#include "cpu/mttkrp/mttkrp.h"
#include "cpu/mttkrp/tile_place.h"
#include "cpu/replica/replica_build.h"

#include <inttypes.h>

static uint32_t record_bytes(unsigned order, enum slc_value_type type)
{
    return order * (uint32_t)sizeof(uint32_t) + slc_value_bytes(type);
}

/* Returns an upper limit for the number of items of all divided ranges. A range is divided if it
 * has more than twice the target number of nonzeros. The number of its items is less than twice the
 * number of target ranges that its nonzeros would fill. */
static uint64_t cut_items(unsigned workers)
{
    return UINT64_C(2) * workers * SLC_REPLICA_RANGES_PER_WORKER;
}

/* Returns an upper limit for the bytes of a mode's tables: its ranges, items and pieces, the counts
 * from which the tables are created, and the sample with which forms of the copy are timed. */
static uint64_t table_bytes(const struct slc_tensor_shape *shape, unsigned mode, unsigned workers)
{
    const uint64_t buckets = slc_min_u64(shape->dims[mode], SLC_REPLICA_BUCKETS);
    const uint64_t items = buckets + cut_items(workers);
    const uint64_t pieces = shape->nnz / SLC_REPLICA_PIECE_NNZ + items + 1;

    return buckets *
               (sizeof(struct slc_replica_range) + workers * sizeof(uint64_t) + sizeof(uint32_t)) +
           items * sizeof(struct slc_replica_item) +
           (pieces + pieces / SLC_REPLICA_TRIED_SHARE) * sizeof(struct slc_replica_piece) +
           workers * sizeof(uint64_t);
}

static uint64_t add_bytes(uint64_t a, uint64_t b)
{
    uint64_t total;

    return slc_add_u64(a, b, &total) ? total : UINT64_MAX;
}

/* Returns an upper limit for the rows of all windows of a mode. With f32, this includes a window
 * per worker, which must hold the largest range. A small mode has a window per item. In other
 * modes, only ranges of one bucket are divided into items, which have windows. */
static uint64_t window_rows(const struct slc_tensor_shape *shape, unsigned mode, unsigned workers)
{
    const uint64_t rows = shape->dims[mode];
    const uint64_t bucket_rows = slc_div_up_u64(rows, SLC_REPLICA_BUCKETS / 2);

    if (slc_replica_is_short(shape, mode, workers)) {
        return rows * workers * (SLC_REPLICA_SHARES_PER_WORKER + 1);
    }
    return bucket_rows * cut_items(workers) + slc_max_u64(bucket_rows, SLC_REPLICA_ROWS) * workers;
}

uint64_t slc_replica_bytes(const struct slc_tensor_shape *shape,
                           uint32_t rank,
                           enum slc_value_type type,
                           unsigned workers)
{
    const uint64_t chunks = slc_replica_chunks_bytes_max(shape->order, type, shape->nnz);
    uint64_t rows = 0;
    uint64_t records;

    /* A tensor of one mode gets no copies, because there are no factor rows to reuse. */
    if (shape->order == 1 || !slc_mul_u64(shape->nnz, record_bytes(shape->order, type), &records)) {
        return UINT64_MAX;
    }
    records = slc_buffer_footprint(records, SLC_PAGES_HUGE);
    uint64_t bytes =
        add_bytes(add_bytes(records, records),
                  slc_buffer_footprint(slc_replica_sort_bytes() * workers, SLC_PAGES_HUGE));
    for (unsigned m = 0; m < shape->order; m++) {
        if (shape->dims[m] > UINT32_MAX) {
            return UINT64_MAX; /* coordinates in copies have 32 bits */
        }
        bytes = add_bytes(bytes, slc_buffer_footprint(chunks, SLC_PAGES_HUGE));
        bytes = add_bytes(bytes, table_bytes(shape, m, workers));
        rows = slc_max_u64(rows, window_rows(shape, m, workers));
    }
    uint64_t window_bytes = rows * slc_matrix_pitch(type, rank) * sizeof(double);
    return add_bytes(bytes, slc_buffer_footprint(window_bytes, slc_mttkrp_pages(window_bytes)));
}

void slc_replica_drop(struct slc_replica *replica)
{
    slc_buffer_destroy(&replica->records);
    slc_buffer_destroy(&replica->sorted);
    slc_buffer_destroy(&replica->scratch);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        struct slc_replica_mode *copy = &replica->modes[m];

        slc_buffer_destroy(&copy->chunks);
        slc_free(copy->ranges);
        slc_free(copy->items);
        slc_free(copy->pieces);
        memset(copy, 0, sizeof *copy);
    }
    replica->begun = false;
    replica->ready = false;
}

static enum slc_status
check_shape(const struct slc_tensor_shape *shape, unsigned workers, struct slc_error *err)
{
    bool fits = shape->order >= 1 && shape->order <= SLC_MAX_ORDER && workers >= 1 &&
                workers <= SLC_MAX_THREADS && (shape->nnz == 0 || shape->tile_nnz > 0);

    for (unsigned m = 0; fits && m < shape->order; m++) {
        fits = shape->dims[m] > 0;
    }
    return fits ? SLC_OK
                : slc_fail(err, SLC_ERR_USAGE,
                           "no copies can be made of a tensor of order %u in tiles of %u nonzeros "
                           "for %u threads: these numbers and the mode sizes must be at least 1, "
                           "with at most %d modes and %d threads",
                           shape->order, shape->tile_nnz, workers, SLC_MAX_ORDER, SLC_MAX_THREADS);
}

enum slc_status slc_replica_begin(struct slc_replica *replica,
                                  const struct slc_tensor_shape *shape,
                                  enum slc_value_type type,
                                  unsigned workers,
                                  struct slc_error *err)
{
    enum slc_status status = check_shape(shape, workers, err);

    slc_replica_drop(replica);
    SLC_TRY(status);
    if (slc_replica_bytes(shape, 1, type, workers) == UINT64_MAX) {
        return slc_fail(err, SLC_ERR_MEMORY,
                        "copies of %" PRIu64 " nonzeros exceed the address space", shape->nnz);
    }
    replica->shape = *shape;
    replica->type = type;
    replica->workers = workers;
    replica->record_bytes = record_bytes(shape->order, type);
    atomic_store(&replica->loaded, 0);
    uint64_t bytes = shape->nnz * replica->record_bytes;
    status = slc_buffer_create(&replica->records, bytes, SLC_PAGES_HUGE, err);
    SLC_THEN(status, slc_buffer_create(&replica->sorted, bytes, SLC_PAGES_HUGE, err));
    SLC_THEN(status, slc_buffer_create(&replica->scratch, slc_replica_sort_bytes() * workers,
                                       SLC_PAGES_HUGE, err));
    replica->begun = status == SLC_OK;
    if (status != SLC_OK) {
        slc_replica_drop(replica);
    }
    return status;
}

static void add_chunk(const struct slc_replica *replica,
                      const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      unsigned char *record)
{
    const unsigned order = replica->shape.order;
    const uint32_t value_bytes = slc_value_bytes(replica->type);
    const unsigned char *values = chunk->values;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        for (unsigned m = 0; m < order; m++) {
            const uint32_t at = (uint32_t)tile->corner[m] + chunk->offset[m][i];

            memcpy(record + m * sizeof at, &at, sizeof at);
        }
        memcpy(record + order * sizeof(uint32_t), values + (uint64_t)i * value_bytes, value_bytes);
        record += replica->record_bytes;
    }
}

enum slc_status
slc_replica_add_tile(struct slc_replica *replica, struct slc_tile_view *tile, struct slc_error *err)
{
    uint64_t left = tile->nnz;
    struct slc_chunk_view chunk;
    uint64_t at;

    if (!replica->begun || !slc_tile_place(&replica->shape, replica->type, tile, &at)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "tile %" PRIu64
                        " (order %u, %u nonzeros) does not belong to the tensor of %" PRIu64
                        " nonzeros for which copies were begun",
                        tile->ordinal, tile->order, tile->nnz, replica->shape.nnz);
    }
    do {
        const enum slc_status status = slc_tile_next(tile, &left, &chunk, err);

        SLC_TRY(status);
        add_chunk(replica, tile, &chunk,
                  (unsigned char *)replica->records.data + at * replica->record_bytes);
        at += chunk.nnz;
    } while (chunk.nnz > 0);
    atomic_fetch_add(&replica->loaded, tile->nnz);
    return SLC_OK;
}

static enum slc_status build_mode(struct slc_replica *replica,
                                  unsigned mode,
                                  struct slc_cpu_backend *tried_by,
                                  struct slc_error *err)
{
    const uint64_t bytes =
        slc_replica_chunks_bytes_max(replica->shape.order, replica->type, replica->shape.nnz);

    SLC_TRY(slc_buffer_create(&replica->modes[mode].chunks, bytes, SLC_PAGES_HUGE, err));
    SLC_TRY(slc_replica_split(replica, mode, err));
    SLC_TRY(slc_replica_choose_form(replica, mode, tried_by, err));
    return slc_replica_write_chunks(replica, mode, &replica->modes[mode], err);
}

/* Returns SLC_ERR_INTERRUPTED if a stop was requested. Called between modes, which may take seconds
 * each. */
static enum slc_status
check_stop(const struct slc_stop *stop, unsigned mode, unsigned order, struct slc_error *err)
{
    if (!slc_stop_wanted(stop)) {
        return SLC_OK;
    }
    return slc_fail(err, SLC_ERR_INTERRUPTED, "stopped when %u of %u copies were made", mode,
                    order);
}

enum slc_status slc_replica_end(struct slc_replica *replica,
                                struct slc_cpu_backend *tried_by,
                                const struct slc_stop *stop,
                                struct slc_error *err)
{
    const uint64_t loaded = atomic_load(&replica->loaded);
    enum slc_status status = SLC_OK;

    if (!replica->begun) {
        status = slc_fail(err, SLC_ERR_USAGE, "replica_end was called, but no copies were begun");
    } else if (loaded != replica->shape.nnz) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "copies were begun for %" PRIu64 " nonzeros, but %" PRIu64 " were added",
                          replica->shape.nnz, loaded);
    }
    for (unsigned m = 0; m < replica->shape.order && status == SLC_OK; m++) {
        status = check_stop(stop, m, replica->shape.order, err);
        SLC_THEN(status, build_mode(replica, m, tried_by, err));
    }
    if (status != SLC_OK) {
        slc_replica_drop(replica);
        return status;
    }
    slc_buffer_destroy(&replica->records);
    slc_buffer_destroy(&replica->sorted);
    slc_buffer_destroy(&replica->scratch);
    replica->begun = false;
    replica->ready = true;
    return SLC_OK;
}
