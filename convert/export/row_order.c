/* Writes nonzeros in row-major order. A key concatenates the indices, mode 1 in the highest
 * bits. */
#include "convert/export/row_order.h"

#include "base/key.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/sort/column_sort.h"
#include "storage/scan/tile_scan.h"

#include <stdatomic.h>
#include <string.h>

enum {
    CHUNK_NNZ = 256,
    /* Nonzeros are counted in 2^18 bins by the upper bits of their keys; the counters need 2 MiB.
     * Parts are cut at the boundaries of bins. */
    BIN_BITS = 18,
    /* Number of nonzeros in memory per worker, below which another worker is not worthwhile. */
    WORTH_A_WORKER_NNZ = 1 << 20,
    SMALL_OBJECTS_BYTES = 512 << 10,
    UNTOUCHED_BYTES = 2 << 20
};

struct row_order {
    const struct slc_row_order_options *options;
    unsigned order;
    unsigned below[SLC_MAX_ORDER]; /* number of key bits below the bits of a mode */
    unsigned shift;                /* key >> shift is the bin */
    unsigned workers;
    bool wide;         /* keys have more than 64 bits */
    uint64_t capacity; /* maximum number of nonzeros in memory at a time */
    struct slc_buffer bins;
    struct slc_buffer memory;
    struct slc_key_columns columns, scratch;
    struct slc_list_part part;

    /* The current scan gathers the `needed` nonzeros of bins first_bin .. last_bin. */
    uint64_t first_bin, last_bin, needed;
    atomic_uint_fast64_t gathered;
    uint64_t written;
};

static void init_keys(struct row_order *work)
{
    const struct slc_manifest *manifest = &work->options->store->manifest;
    unsigned bits = 0;

    work->order = manifest->order;
    for (unsigned n = manifest->order; n-- > 0;) {
        work->below[n] = bits;
        bits += slc_bits_for_length(manifest->dims[n]);
    }
    work->wide = bits > 64;
    work->shift = bits > BIN_BITS ? bits - BIN_BITS : 0;
}

static slc_u128 key_of(const struct row_order *work,
                       const struct slc_tile_view *tile,
                       const struct slc_chunk_view *chunk,
                       uint32_t i)
{
    slc_u128 key = 0;

    for (unsigned n = 0; n < work->order; n++) {
        key |= (slc_u128)slc_input_number(work->options->numbers, n,
                                          tile->corner[n] + chunk->offset[n][i])
               << work->below[n];
    }
    return key;
}

static enum slc_status
count_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct row_order *work = context;
    _Atomic uint64_t *bins = work->bins.data;
    struct slc_chunk_view chunk = {.nnz = 1};

    (void)worker;
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            const slc_u128 key = key_of(work, tile, &chunk, i);

            atomic_fetch_add_explicit(&bins[(uint64_t)(key >> work->shift)], 1,
                                      memory_order_relaxed);
        }
    }
    return SLC_OK;
}

/* Appends those nonzeros of a chunk that are in the current bins to the gathered nonzeros. */
static enum slc_status gather_chunk(struct row_order *work,
                                    const struct slc_tile_view *tile,
                                    const struct slc_chunk_view *chunk,
                                    struct slc_error *err)
{
    const double *values = chunk->values;
    slc_u128 keys[CHUNK_NNZ];
    uint32_t from[CHUNK_NNZ];
    uint32_t count = 0;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        const uint64_t bin =
            (uint64_t)((keys[count] = key_of(work, tile, chunk, i)) >> work->shift);

        from[count] = i;
        count += bin >= work->first_bin && bin <= work->last_bin;
    }
    uint64_t at = atomic_fetch_add_explicit(&work->gathered, count, memory_order_relaxed);
    if (count > work->needed || at > work->needed - count) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the nonzeros of the store changed after the previous scan");
    }
    for (uint32_t i = 0; i < count; i++) {
        work->columns.lo[at + i] = (uint64_t)keys[i];
        if (work->wide) {
            work->columns.hi[at + i] = (uint64_t)(keys[i] >> 64);
        }
        work->columns.values[at + i] = values[from[i]];
    }
    return SLC_OK;
}

static enum slc_status
gather_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};

    (void)worker;
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        if (chunk.nnz > 0) {
            SLC_TRY(gather_chunk(context, tile, &chunk, err));
        }
    }
    return SLC_OK;
}

static enum slc_status scan_rows(struct row_order *work,
                                 enum slc_status (*decode)(void *context,
                                                           unsigned worker,
                                                           struct slc_tile_view *tile,
                                                           struct slc_error *err),
                                 struct slc_error *err)
{
    const struct slc_store *store = work->options->store;
    struct slc_tile_scan_options options = {.files = store->files,
                                            .reader = store->reader,
                                            .workers = work->workers,
                                            .last_row = UINT64_MAX,
                                            .stop = work->options->stop};

    if (slc_manifest_permutation(&store->manifest, 0) == NULL) {
        const slc_u128 first = (slc_u128)work->first_bin << work->shift;
        const slc_u128 last = ((slc_u128)work->last_bin + 1) << work->shift;

        options.first_row = (uint64_t)(first >> work->below[0]);
        options.last_row = last == 0 ? UINT64_MAX : (uint64_t)((last - 1) >> work->below[0]);
    }
    return slc_tile_scan(&options, &(struct slc_tile_steps){.context = work, .decode = decode},
                         err);
}

/* Writes the nonzeros that were gathered and sorted. */
static enum slc_status write_sorted(struct row_order *work, struct slc_error *err)
{
    const struct slc_manifest *manifest = &work->options->store->manifest;
    struct slc_list_output *output = work->options->output;
    uint64_t indices[SLC_MAX_ORDER][CHUNK_NNZ];
    const uint64_t *coords[SLC_MAX_ORDER];
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        coords[n] = indices[n];
    }
    for (uint64_t begin = 0; begin < work->needed && status == SLC_OK;) {
        const uint64_t end = slc_min_u64(work->needed, begin + SLC_TILE_NNZ);

        work->part.count = 0;
        for (uint32_t count; begin < end; begin += count) {
            count = (uint32_t)slc_min_u64(end - begin, CHUNK_NNZ);
            for (uint32_t i = 0; i < count; i++) {
                const slc_u128 key = slc_key_columns_get(work->columns, begin + i);

                for (unsigned n = 0; n < work->order; n++) {
                    const unsigned bits = slc_bits_for_length(manifest->dims[n]);

                    indices[n][i] = (uint64_t)(key >> work->below[n]) & ((UINT64_C(1) << bits) - 1);
                }
            }
            slc_list_part_add(&output->file, &work->part, count, coords,
                              work->columns.values + begin);
        }
        slc_list_part_sum(&output->file, &work->part);
        slc_list_output_sum(output, &work->part);
        status = slc_stop_check(work->options->stop, err);
        SLC_THEN(status, slc_list_output_write(output, &work->part, work->written, err));
        work->written += work->part.count;
    }
    return status;
}

/* Gathers, sorts and writes the `needed` nonzeros of bins first .. last. */
static enum slc_status write_bins(
    struct row_order *work, uint64_t first, uint64_t last, uint64_t needed, struct slc_error *err)
{
    const struct slc_row_order_options *options = work->options;

    work->first_bin = first;
    work->last_bin = last;
    work->needed = needed;
    atomic_store(&work->gathered, 0);
    SLC_TRY(scan_rows(work, gather_tile, err));
    if (atomic_load(&work->gathered) != needed) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the nonzeros of the store changed after the previous scan");
    }
    slc_column_sort(work->columns, work->scratch, needed);
    enum slc_status status = write_sorted(work, err);
    if (options->progress != NULL) {
        options->progress(options->context, "export", work->written, options->store->manifest.nnz);
    }
    return status;
}

static uint64_t each_bytes(const struct row_order *work)
{
    /* a key and a value, twice, because the sort needs scratch of the same size */
    return work->wide ? 48 : 32;
}

static uint64_t fixed_bytes(const struct row_order *work)
{
    const struct slc_layout_info *info = slc_reader_info(work->options->store->reader);

    return SMALL_OBJECTS_BYTES + UNTOUCHED_BYTES + SLC_OUTPUT_BUFFER_BYTES + slc_memory_resident() +
           slc_tile_scan_memory_bytes(info, work->workers) +
           slc_list_part_bytes(work->order, SLC_TILE_NNZ) +
           slc_buffer_footprint(sizeof(uint64_t) << BIN_BITS, SLC_PAGES_SMALL);
}

/* Chooses the number of nonzeros in memory; uses fewer workers if the memory is small. */
static void choose_capacity(struct row_order *work)
{
    const uint64_t budget = work->options->memory_bytes;
    const uint64_t nnz = work->options->store->manifest.nnz;

    work->capacity = nnz;
    while (budget != 0) {
        const uint64_t fixed = fixed_bytes(work);
        const uint64_t fitting = budget > fixed ? (budget - fixed) / each_bytes(work) : 0;

        work->capacity = slc_min_u64(nnz, fitting);
        if (work->capacity == nnz || fitting >= WORTH_A_WORKER_NNZ || work->workers == 1) {
            break;
        }
        work->workers--;
    }
}

static enum slc_status fail_small(const struct row_order *work, uint64_t nnz, struct slc_error *err)
{
    return slc_fail_budget(err, work->options->memory_bytes,
                           fixed_bytes(work) + nnz * each_bytes(work) + (UINT64_C(1) << 20),
                           "sorting the nonzeros of this store in row-major order");
}

static enum slc_status allocate_memory(struct row_order *work, struct slc_error *err)
{
    const uint64_t sets = (work->wide ? 6U : 4U) * work->capacity;
    const uint64_t part = slc_list_part_bytes(work->order, SLC_TILE_NNZ);

    SLC_TRY(slc_buffer_create(&work->memory, part + sets * sizeof(uint64_t), SLC_PAGES_SMALL, err));
    work->part = (struct slc_list_part){.bytes = work->memory.data, .capacity = SLC_TILE_NNZ};
    uint64_t *at = (uint64_t *)work->memory.data + part / sizeof *at;
    for (unsigned set = 0; set < 2; set++) {
        struct slc_key_columns *columns = set == 0 ? &work->columns : &work->scratch;

        columns->lo = at;
        at += work->capacity;
        columns->hi = work->wide ? at : NULL;
        at += work->wide ? work->capacity : 0;
        columns->values = (double *)(void *)at;
        at += work->capacity;
    }
    return SLC_OK;
}

/* Writes the nonzeros in parts; each part consists of as many bins as fit in memory. */
static enum slc_status write_parts(struct row_order *work, struct slc_error *err)
{
    const uint64_t count = UINT64_C(1) << BIN_BITS;
    const uint64_t *bins;
    uint64_t largest = 0;

    SLC_TRY(slc_buffer_create(&work->bins, count * sizeof *bins, SLC_PAGES_SMALL, err));
    work->last_bin = count - 1;
    SLC_TRY(scan_rows(work, count_tile, err));
    bins = work->bins.data;
    for (uint64_t b = 0; b < count; b++) {
        largest = slc_max_u64(largest, bins[b]);
    }
    if (largest > work->capacity) {
        return fail_small(work, largest, err);
    }
    for (uint64_t first = 0, end; first < count; first = end) {
        uint64_t needed = bins[first];

        for (end = first + 1; end < count && bins[end] <= work->capacity - needed; end++) {
            needed += bins[end];
        }
        if (needed > 0) {
            SLC_TRY(write_bins(work, first, end - 1, needed, err));
        }
    }
    return SLC_OK;
}

static enum slc_status plan_parts(const struct slc_row_order_options *options,
                                  struct row_order *work,
                                  struct slc_error *err)
{
    const uint64_t nnz = options->store->manifest.nnz;

    *work = (struct row_order){.options = options, .workers = options->workers};
    init_keys(work);
    choose_capacity(work);
    return work->capacity == 0 && nnz > 0 ? fail_small(work, slc_min_u64(nnz, SLC_TILE_NNZ), err)
                                          : SLC_OK;
}

enum slc_status slc_row_order_forecast(const struct slc_row_order_options *options,
                                       uint64_t *memory_bytes,
                                       uint64_t *scans,
                                       struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(options->store->reader);
    struct row_order work;
    enum slc_status status = plan_parts(options, &work, err);

    if (status == SLC_OK) {
        const bool parts = work.capacity < info->nnz;

        *memory_bytes = slc_tile_scan_memory_bytes(info, work.workers) +
                        slc_list_part_bytes(work.order, SLC_TILE_NNZ) +
                        work.capacity * each_bytes(&work) +
                        (parts ? sizeof(uint64_t) << BIN_BITS : 0);
        *scans = parts ? 1 + slc_div_up_u64(info->nnz, work.capacity) : 1;
    }
    return status;
}

enum slc_status slc_row_order_write(const struct slc_row_order_options *options,
                                    struct slc_error *err)
{
    const uint64_t nnz = options->store->manifest.nnz;
    struct row_order work;

    SLC_TRY(plan_parts(options, &work, err));
    enum slc_status status = allocate_memory(&work, err);
    SLC_THEN(status, work.capacity < nnz
                         ? write_parts(&work, err)
                         : write_bins(&work, 0, (UINT64_C(1) << BIN_BITS) - 1, nnz, err));
    if (status == SLC_OK && work.written != nnz) {
        status = slc_fail(err, SLC_ERR_DAMAGED,
                          "the nonzeros of the store changed after the previous scan");
    }
    slc_buffer_destroy(&work.bins);
    slc_buffer_destroy(&work.memory);
    return status;
}
