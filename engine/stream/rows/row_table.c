/* Divides the rows of a mode into the positions of an update. */
#include "engine/stream/rows/row_pass_impl.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "engine/plan/plan_sizes.h"

#include <inttypes.h>
#include <string.h>

uint64_t slc_row_blocks_bytes(const struct slc_reader *reader, uint64_t first, uint64_t count)
{
    struct slc_block_entry entry;
    uint64_t bytes = 0;

    for (uint64_t b = first; b < first + count; b++) {
        slc_reader_entry(reader, b, &entry);
        bytes += entry.padded_bytes;
    }
    return bytes;
}

bool slc_row_range_single(const struct slc_reader *reader,
                          unsigned mode,
                          const struct slc_row_range *range)
{
    struct slc_block_entry first, last;

    slc_reader_entry(reader, range->first_block, &first);
    slc_reader_entry(reader, range->first_block + range->block_count - 1, &last);
    return first.min[mode] == last.max[mode];
}

/* All workers compute a row together if its blocks exceed the ring, or if it is large and always in
 * memory. */
static struct row_streaming choose_streaming(const struct slc_plan *plan,
                                             const struct row_table *table,
                                             unsigned mode,
                                             const struct slc_row_range *range)
{
    const struct slc_plan_layout *layout = &plan->layouts[table->layout];
    const uint64_t blocks = slc_reader_info(table->reader)->block_count;
    struct row_streaming streaming = {.nnz = range->nnz};

    for (uint64_t b = 0; b < range->block_count && !streaming.reads; b++) {
        streaming.reads = !slc_plan_caches(layout, blocks, range->first_block + b);
    }
    streaming.single = slc_row_range_single(table->reader, mode, range);
    streaming.used =
        streaming.single &&
        (range->block_count > plan->slot_count ||
         (!streaming.reads && plan->threads > 1 && range->nnz > plan->rows.segment_nnz));
    return streaming;
}

static enum slc_status make_sorted(const struct slc_plan *plan,
                                   unsigned mode,
                                   struct row_table *table,
                                   struct slc_error *err)
{
    struct slc_row_ranges *ranges = &table->ranges;

    SLC_TRY(
        slc_row_ranges_make(table->reader, mode, plan->schedule == SLC_SCHEDULE_FILE, ranges, err));
    table->count = ranges->count;
    table->streamed = slc_calloc(ranges->count, sizeof *table->streamed);
    table->measures = slc_calloc(ranges->count, sizeof *table->measures);
    SLC_TRY(slc_check_memory(table->streamed != NULL && table->measures != NULL, err,
                             "for %" PRIu64 " ranges of rows", ranges->count));
    ranges->max_blocks = 0;
    for (uint64_t r = 0; r < ranges->count; r++) {
        table->streamed[r] = choose_streaming(plan, table, mode, &ranges->ranges[r]);
        if (!table->streamed[r].used) {
            ranges->max_blocks = slc_max_u64(ranges->max_blocks, ranges->ranges[r].block_count);
        }
    }
    return SLC_OK;
}

enum slc_status slc_row_table_make(struct slc_row_passes *passes,
                                   const struct slc_plan *plan,
                                   unsigned mode,
                                   struct slc_error *err)
{
    struct row_table *table = &passes->tables[mode];

    table->layout = plan->mode_layout[mode];
    table->reader = slc_stream_reader(passes->stream, table->layout);
    const struct slc_layout_info *info = slc_reader_info(table->reader);
    table->rows = info->dims[mode];
    table->count = table->rows;
    table->sorted = slc_layout_partitions(info, mode) > 0;
    if (table->sorted) {
        return make_sorted(plan, mode, table, err);
    }
    table->counts = slc_calloc(table->rows, sizeof *table->counts);
    return slc_check_memory(table->counts != NULL, err, "to count the nonzeros of %" PRIu64 " rows",
                            table->rows);
}

void slc_row_table_destroy(struct row_table *table)
{
    slc_row_ranges_destroy(&table->ranges);
    slc_free(table->streamed);
    slc_free(table->measures);
    slc_free(table->counts);
}

/* Adds the nonzeros of a tile to the counts of their rows. */
static enum slc_status
count_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_row_passes *passes = context;
    struct slc_chunk_view chunk;

    (void)worker;
    for (;;) {
        SLC_TRY(tile->next(tile, SLC_ROW_PIECE, &chunk, err));
        if (chunk.nnz == 0) {
            return SLC_OK;
        }
        for (unsigned n = 0; n < passes->order; n++) {
            const uint64_t corner = tile->corner[n];
            uint64_t *counts = passes->tables[n].counts;

            for (uint32_t i = 0; counts != NULL && i < chunk.nnz; i++) {
                (void)__atomic_fetch_add(&counts[corner + chunk.offset[n][i]], 1, __ATOMIC_RELAXED);
            }
        }
    }
}

/* Adds the nonzeros of a tile to the number at `context`. */
static enum slc_status
count_row(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_chunk_view chunk;

    (void)worker;
    do {
        SLC_TRY(tile->next(tile, SLC_ROW_PIECE, &chunk, err));
        (void)__atomic_fetch_add((uint64_t *)context, chunk.nnz, __ATOMIC_RELAXED);
    } while (chunk.nnz > 0);
    return SLC_OK;
}

/* For each range whose nonzeros are all in one row, counts the nonzeros that are not dropped. */
static enum slc_status count_single(struct slc_row_passes *passes,
                                    struct row_table *table,
                                    const volatile int *stop,
                                    struct slc_error *err)
{
    for (uint64_t r = 0; r < table->ranges.count; r++) {
        uint64_t first, end;

        if (table->streamed[r].single &&
            (table->streamed[r].used || table->ranges.ranges[r].nnz > passes->buffer_nnz)) {
            slc_row_ranges_blocks(&table->ranges, r, r + 1, &first, &end);
            table->streamed[r].nnz = 0;
            const struct slc_pass pass = {
                .kind = SLC_PASS_TILES,
                .layout = table->layout,
                .tiles = {.consumer = {.tile = count_row, .context = &table->streamed[r].nnz},
                          .blocks = table->ranges.block_order + first,
                          .block_count = end - first},
                .stop = stop};
            SLC_TRY(slc_stream_pass(passes->stream, &pass, err));
        }
    }
    return SLC_OK;
}

enum slc_status
slc_row_tables_count(struct slc_row_passes *passes, const volatile int *stop, struct slc_error *err)
{
    struct slc_pass pass = {.kind = SLC_PASS_TILES,
                            .tiles = {.consumer = {.tile = count_tile, .context = passes}},
                            .stop = stop};
    bool needed = false;

    for (unsigned n = 0; n < passes->order; n++) {
        struct row_table *table = &passes->tables[n];

        if (!table->sorted && table->rows > 0) {
            pass.layout = table->layout;
            needed = true;
        } else if (table->sorted && slc_stream_drops(passes->stream)) {
            SLC_TRY(count_single(passes, table, stop, err));
        }
    }
    return needed ? slc_stream_pass(passes->stream, &pass, err) : SLC_OK;
}

uint64_t slc_row_passes_count(const struct slc_row_passes *passes, unsigned mode)
{
    return passes->tables[mode].count;
}

uint64_t slc_row_interval_end(const struct slc_row_passes *passes,
                              const struct row_table *table,
                              uint64_t first,
                              uint64_t most)
{
    uint64_t nnz = table->counts[first];
    uint64_t end = first + 1;

    while (end < most && nnz + table->counts[end] <= passes->gather.capacity) {
        nnz += table->counts[end++];
    }
    return end;
}

bool slc_row_block_meets(const struct slc_block_entry *entry,
                         unsigned mode,
                         uint64_t first,
                         uint64_t end)
{
    return entry->nnz > 0 && entry->min[mode] < end && entry->max[mode] >= first;
}

static uint64_t
gathered_bytes(const struct slc_row_passes *passes, unsigned mode, uint64_t first, uint64_t end)
{
    const struct row_table *table = &passes->tables[mode];
    const uint64_t count = slc_reader_info(table->reader)->block_count;
    struct slc_block_entry entry;
    uint64_t bytes = 0;

    for (uint64_t row = first, next; row < end; row = next) {
        next = slc_row_interval_end(passes, table, row, end);
        for (uint64_t b = 0; b < count; b++) {
            slc_reader_entry(table->reader, b, &entry);
            bytes += slc_row_block_meets(&entry, mode, row, next) ? entry.padded_bytes : 0;
        }
    }
    return bytes;
}

uint64_t slc_row_passes_bytes(const struct slc_row_passes *passes,
                              unsigned mode,
                              uint64_t first,
                              uint64_t end)
{
    const struct row_table *table = &passes->tables[mode];
    uint64_t bytes = 0;

    if (!table->sorted) {
        return gathered_bytes(passes, mode, first, end);
    }
    for (uint64_t r = first; r < end; r++) {
        const struct slc_row_range *range = &table->ranges.ranges[r];

        bytes += slc_row_blocks_bytes(table->reader, range->first_block, range->block_count);
    }
    return bytes;
}

uint64_t slc_row_passes_end(const struct slc_row_passes *passes,
                            unsigned mode,
                            uint64_t first,
                            uint64_t bytes)
{
    const struct row_table *table = &passes->tables[mode];
    uint64_t end = first, used = 0;

    while (end < table->count) {
        const uint64_t next =
            table->sorted ? end + 1 : slc_row_interval_end(passes, table, end, table->count);

        used += slc_row_passes_bytes(passes, mode, end, next);
        if (end > first && used > bytes) {
            break;
        }
        end = next;
    }
    return end;
}

uint64_t slc_row_passes_hash(const struct slc_row_passes *passes, unsigned mode, uint64_t position)
{
    const struct row_table *table = &passes->tables[mode];
    uint64_t hash = slc_mix64(slc_reader_info(table->reader)->header_hash + position);

    for (uint64_t r = 0; table->sorted && r < position; r++) {
        const struct slc_row_range *range = &table->ranges.ranges[r];

        hash = slc_mix64(slc_mix64(hash + range->first_row) + range->end_row);
    }
    return hash;
}

uint64_t slc_row_table_bytes(const struct slc_layout_info *info, unsigned mode)
{
    if (slc_layout_partitions(info, mode) > 0) {
        return info->partition_count *
                   (sizeof(struct slc_row_range) + sizeof(struct row_streaming) +
                    SLC_ROW_MEASURES * sizeof(double)) +
               info->block_count * sizeof(uint64_t);
    }
    /* counts and cursors of rows, and the list of blocks */
    return slc_plan_plus(slc_plan_times(info->dims[mode], 2 * sizeof(uint64_t)),
                         info->block_count * 2 * sizeof(uint64_t));
}
