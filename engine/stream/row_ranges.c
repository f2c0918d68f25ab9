#include "engine/stream/row_ranges.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Limits for the ranges of a layout that is not sorted by the mode. A range has 1/64 of the
 * tensor's nonzeros, as partitions have (convert/layout/sorted_cuts.h), so that there are several
 * ranges per worker. It has at least 2 tiles and at most 1 Mi nonzeros. Smaller ranges would cost
 * time, because a tile at the border of two ranges is decoded for both. RANGES_MAX takes
 * precedence: the index of a damaged store may state any number of nonzeros, and this error is
 * found only when blocks are read. */
enum { RANGES_WANTED = 64, RANGES_MAX = 1 << 16 };
#define RANGE_NNZ_MIN (UINT64_C(2) * SLC_TILE_NNZ)
#define RANGE_NNZ_MAX (UINT64_C(1) << 20)

static int by_size(const void *a, const void *b)
{
    const struct slc_row_range *left = a;
    const struct slc_row_range *right = b;

    if (left->nnz != right->nnz) {
        return left->nnz > right->nnz ? -1 : 1;
    }
    return left->first_row < right->first_row ? -1 : left->first_row > right->first_row;
}

/* Makes the ranges of a layout that is sorted by the mode, in file order. */
static void add_partition_ranges(const struct slc_reader *reader, struct slc_row_ranges *ranges)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct slc_row_range *range = NULL;

    for (uint64_t p = 0; p < info->partition_count; p++) {
        struct slc_partition partition;

        slc_reader_partition(reader, p, &partition);
        if (!partition.continued) {
            if (range != NULL) {
                range->end_row = partition.first_row;
            }
            range = &ranges->ranges[ranges->count];
            *range = (struct slc_row_range){
                .first_row = ranges->count == 0 ? 0 : partition.first_row,
                .first_block = partition.first_block,
            };
            ranges->count++;
        }
        assert(range != NULL); /* the first partition does not continue a row */
        range->block_count += partition.block_count;
        range->nnz += partition.nnz;
    }
    if (range != NULL) {
        range->end_row = info->dims[ranges->mode];
    }
}

/* State while a layout that is not sorted by the mode is divided. */
struct cutting {
    const struct slc_reader *reader;
    unsigned mode;
    uint64_t target_nnz;
    uint64_t step;                /* see rows_together */
    uint64_t *min_from;           /* per block: smallest row in this block or any later block */
    struct slc_row_range *ranges; /* NULL while ranges are only counted */
    uint64_t count;
    /* blocks first .. end - 1 of the last range, and their nonzeros */
    uint64_t first, end, nnz;
};

/* If keys begin with bits of the mode, returns the number of consecutive rows that agree in these
 * bits, and are therefore adjacent in the file; otherwise returns 0. */
static uint64_t rows_together(const struct slc_key_layout *keys, unsigned mode)
{
    const slc_u128 mask = slc_key_join(keys->mask_lo[mode], keys->mask_hi[mode]);
    unsigned surplus = 0;

    while (surplus < keys->bits && (mask >> (keys->bits - 1 - surplus) & 1) != 0) {
        surplus++;
    }
    return surplus > 0 ? UINT64_C(1) << (keys->mode_bits[mode] - surplus) : 0;
}

/* Adds the range of rows first_row .. end_row - 1. Needs: no block after `last` has nonzeros in
 * these rows. */
static void add_range(struct cutting *cutting, uint64_t first_row, uint64_t end_row, uint64_t last)
{
    struct slc_block_entry entry;

    if (cutting->ranges == NULL) {
        cutting->count++;
        return;
    }
    while (cutting->end <= last &&
           (cutting->end == cutting->first || cutting->min_from[cutting->end] < end_row)) {
        slc_reader_entry(cutting->reader, cutting->end++, &entry);
        cutting->nnz += entry.nnz;
    }
    slc_reader_entry(cutting->reader, cutting->first, &entry);
    while (cutting->first + 1 < cutting->end && entry.max[cutting->mode] < first_row) {
        cutting->nnz -= entry.nnz;
        slc_reader_entry(cutting->reader, ++cutting->first, &entry);
    }
    cutting->ranges[cutting->count++] =
        (struct slc_row_range){.first_row = first_row,
                               .end_row = end_row,
                               .first_block = cutting->first,
                               .block_count = cutting->end - cutting->first,
                               .nnz = cutting->nnz};
}

/* Adds the rows first_row .. end_row - 1, which have about `nnz` nonzeros, as one range. If this is
 * too much for one range and the rows can be divided (see rows_together), adds several ranges. */
static void add_pieces(
    struct cutting *cutting, uint64_t first_row, uint64_t end_row, uint64_t last, uint64_t nnz)
{
    const uint64_t pieces = cutting->step > 0 ? slc_div_up_u64(nnz, cutting->target_nnz) : 1;
    const uint64_t piece_rows = slc_max_u64((end_row - first_row) / pieces, 1);
    uint64_t begin = first_row;

    for (uint64_t i = 1; i < pieces && i * piece_rows < end_row - first_row; i++) {
        uint64_t row = first_row + i * piece_rows;

        row -= row % cutting->step;
        if (row > begin) {
            add_range(cutting, begin, row, last);
            begin = row;
        }
    }
    add_range(cutting, begin, end_row, last);
}

static void cut_blocks(struct cutting *cutting)
{
    const struct slc_layout_info *info = slc_reader_info(cutting->reader);
    uint64_t first_row = 0, nnz = 0;
    struct slc_block_entry entry;

    cutting->count = 0;
    for (uint64_t b = 0; b < info->block_count; b++) {
        const bool end = b + 1 == info->block_count;
        const uint64_t end_row = end ? info->dims[cutting->mode] : cutting->min_from[b + 1];

        slc_reader_entry(cutting->reader, b, &entry);
        nnz += entry.nnz;
        if (!end && (nnz < cutting->target_nnz || end_row <= first_row)) {
            continue;
        }
        add_pieces(cutting, first_row, end_row, b, nnz);
        first_row = end_row;
        nnz = 0;
    }
}

static enum slc_status make_cuts(struct cutting *cutting, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(cutting->reader);
    uint64_t least = UINT64_MAX;

    cutting->min_from = slc_calloc(info->block_count, sizeof *cutting->min_from);
    SLC_TRY(slc_check_memory(cutting->min_from != NULL, err, "to cut %" PRIu64 " blocks by rows",
                             info->block_count));
    for (uint64_t b = info->block_count; b-- > 0;) {
        struct slc_block_entry entry;

        slc_reader_entry(cutting->reader, b, &entry);
        least = slc_min_u64(least, entry.min[cutting->mode]);
        cutting->min_from[b] = least;
    }
    cut_blocks(cutting);
    cutting->ranges = slc_calloc(cutting->count, sizeof *cutting->ranges);
    SLC_TRY(slc_check_memory(cutting->ranges != NULL, err, "for %" PRIu64 " ranges of rows",
                             cutting->count));
    cut_blocks(cutting);
    return SLC_OK;
}

/* Makes the ranges of a layout that is not sorted by the mode, in file order. */
static enum slc_status add_cut_ranges(const struct slc_reader *reader,
                                      struct slc_row_ranges *ranges,
                                      struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct cutting cutting = {
        .reader = reader,
        .mode = ranges->mode,
        .target_nnz = slc_max_u64(
            slc_min_u64(slc_max_u64(info->nnz / RANGES_WANTED, RANGE_NNZ_MIN), RANGE_NNZ_MAX),
            info->nnz / RANGES_MAX),
        .step = rows_together(&info->keys, ranges->mode),
    };
    const enum slc_status status = make_cuts(&cutting, err);

    slc_free(cutting.min_from);
    ranges->ranges = cutting.ranges;
    ranges->count = cutting.count;
    return status;
}

/* Orders the blocks by the first range that needs them, and finds the largest range. */
static void order_blocks(const struct slc_reader *reader, struct slc_row_ranges *ranges)
{
    uint64_t placed = 0;
    /* blocks first .. end - 1 of the current range, and their bytes */
    uint64_t first = 0, end = 0, bytes = 0;
    struct slc_block_entry entry;

    for (uint64_t r = 0; r < ranges->count; r++) {
        const struct slc_row_range *range = &ranges->ranges[r];

        if (!ranges->shared) {
            first = end = range->first_block;
            bytes = 0;
        }
        while (end < range->first_block + range->block_count) {
            slc_reader_entry(reader, end, &entry);
            bytes += entry.padded_bytes;
            ranges->block_order[placed++] = end++;
        }
        for (; first < range->first_block; first++) {
            slc_reader_entry(reader, first, &entry);
            bytes -= entry.padded_bytes;
        }
        ranges->max_blocks = slc_max_u64(ranges->max_blocks, range->block_count);
        ranges->max_bytes = slc_max_u64(ranges->max_bytes, bytes);
    }
    assert(placed == ranges->block_count);
}

enum slc_status slc_row_ranges_make(const struct slc_reader *reader,
                                    unsigned mode,
                                    bool in_order,
                                    struct slc_row_ranges *ranges,
                                    struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    const bool sorted = info->layout == SLC_LAYOUT_SORTED && info->layout_mode == mode;
    enum slc_status status = SLC_OK;

    assert(mode < info->order);
    *ranges =
        (struct slc_row_ranges){.mode = mode, .shared = !sorted, .block_count = info->block_count};
    ranges->block_order = slc_calloc(info->block_count, sizeof *ranges->block_order);
    SLC_TRY(slc_check_memory(ranges->block_order != NULL, err, "to order %" PRIu64 " blocks",
                             info->block_count));
    if (sorted) {
        ranges->ranges = slc_calloc(info->partition_count, sizeof *ranges->ranges);
        if (ranges->ranges == NULL) {
            status = slc_fail(err, SLC_ERR_MEMORY, "no memory for %" PRIu64 " ranges of rows",
                              info->partition_count);
        } else {
            add_partition_ranges(reader, ranges);
        }
    } else if (info->block_count > 0) {
        status = add_cut_ranges(reader, ranges, err);
    }
    if (status != SLC_OK) {
        slc_row_ranges_destroy(ranges);
        return status;
    }
    if (sorted && !in_order && ranges->count > 0) {
        qsort(ranges->ranges, ranges->count, sizeof *ranges->ranges, by_size);
    }
    order_blocks(reader, ranges);
    return SLC_OK;
}

void slc_row_ranges_destroy(struct slc_row_ranges *ranges)
{
    slc_free(ranges->ranges);
    slc_free(ranges->block_order);
    memset(ranges, 0, sizeof *ranges);
}

void slc_row_ranges_blocks(const struct slc_row_ranges *ranges,
                           uint64_t first,
                           uint64_t end,
                           uint64_t *first_block,
                           uint64_t *end_block)
{
    uint64_t position = 0;

    assert(first < end && end <= ranges->count);
    if (ranges->shared) {
        /* Rows ascend from range to range, so their first and last blocks ascend, too. */
        *first_block = ranges->ranges[first].first_block;
        *end_block = ranges->ranges[end - 1].first_block + ranges->ranges[end - 1].block_count;
        return;
    }
    for (uint64_t r = 0; r < end; r++) {
        if (r == first) {
            *first_block = position;
        }
        position += ranges->ranges[r].block_count;
    }
    *end_block = position;
}

uint64_t slc_row_ranges_memory_bytes(const struct slc_row_ranges *ranges)
{
    return ranges->count * sizeof *ranges->ranges +
           ranges->block_count * sizeof *ranges->block_order;
}
