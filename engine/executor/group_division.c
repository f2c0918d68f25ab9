/* Divides a layout between devices. Cost: a few scans and one sort of all index entries. */
#include "engine/executor/group_division.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Maximum number of bytes of rows in a unit. A unit is small compared with a device's part of a
     * large factor, but solving a unit takes far longer than assigning it. */
    UNIT_BYTES = 256 * 1024,
    /* Dense algebra processes 32 rows at once (SLC_BLOCK_ROWS of cpu/kernel/dense_kernels.h). */
    UNIT_ROWS_STEP = 32,
    /* Least number of units that a mode has if it has enough rows: four units for each of
     * SLC_MAX_DEVICES devices. */
    UNITS_LEAST = 4 * SLC_MAX_DEVICES,
    /* Least number of rows per unit, because a device processes this many rows at once. A small
     * mode therefore has fewer than UNITS_LEAST units. */
    UNIT_ROWS_LEAST = 64
};

uint64_t slc_group_unit_rows(uint64_t row_bytes, uint64_t rows)
{
    const uint64_t steps = slc_min_u64(
        UNIT_BYTES / (row_bytes * UNIT_ROWS_STEP),
        slc_max_u64(rows / (UNITS_LEAST * UNIT_ROWS_STEP), UNIT_ROWS_LEAST / UNIT_ROWS_STEP));

    return slc_max_u64(steps, 1) * UNIT_ROWS_STEP;
}

/* A block, and the fraction of its device's work that precedes the block or, in a sorted layout,
 * the block's partition. */
struct placed_block {
    double done;
    uint64_t block;
};

static int earlier_first(const void *a, const void *b)
{
    const struct placed_block *x = a;
    const struct placed_block *y = b;

    if (x->done != y->done) {
        return x->done < y->done ? -1 : 1;
    }
    return x->block < y->block ? -1 : x->block > y->block;
}

/* Items that are assigned to devices: partitions, or blocks if the layout has no partitions. */
struct items {
    bool partitions;
    uint64_t count;
    uint64_t *nnz;
    uint32_t *device;
};

static uint64_t item_of(const struct items *items, const struct slc_block_entry *entry, uint64_t b)
{
    return items->partitions ? entry->partition : b;
}

static enum slc_status create_items(const struct slc_reader *reader,
                                    enum slc_split split,
                                    struct items *items,
                                    struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);

    items->partitions = split == SLC_SPLIT_PARTITIONS;
    items->count = items->partitions ? info->partition_count : info->block_count;
    items->nnz = slc_calloc(items->count, sizeof *items->nnz);
    items->device = slc_calloc(items->count, sizeof *items->device);
    SLC_TRY(slc_check_memory(items->nnz != NULL && items->device != NULL, err,
                             "to divide %" PRIu64 " parts of a layout", items->count));
    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        items->nnz[item_of(items, &entry, b)] += entry.nnz;
    }
    return SLC_OK;
}

/* Assigns the items to devices. The caller frees the arrays of `items`, also after an error. */
static enum slc_status assign_items(const struct slc_reader *reader,
                                    enum slc_split split,
                                    unsigned devices,
                                    struct items *items,
                                    struct slc_error *err)
{
    uint64_t loads[SLC_MAX_DEVICES];

    SLC_TRY(create_items(reader, split, items, err));
    return items->partitions ? slc_assign_largest_first(items->nnz, items->count, devices,
                                                        items->device, loads, err)
                             : slc_assign_equal_shares(items->nnz, items->count, devices,
                                                       items->device, loads, err);
}

enum slc_status slc_group_owners(const struct slc_reader *reader,
                                 enum slc_split split,
                                 unsigned devices,
                                 uint32_t *owner,
                                 struct slc_error *err)
{
    struct items items = {0};
    const enum slc_status status = assign_items(reader, split, devices, &items, err);

    for (uint64_t b = 0; status == SLC_OK && b < slc_reader_info(reader)->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        owner[b] = items.device[item_of(&items, &entry, b)];
    }
    slc_free(items.nnz);
    slc_free(items.device);
    return status;
}

/* Sets the owner of each block, and the nonzeros and bytes of each device. */
static void set_owners(const struct slc_reader *reader,
                       const struct items *items,
                       struct slc_group_division *division)
{
    for (uint64_t b = 0; b < division->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        division->owner[b] = items->device[item_of(items, &entry, b)];
        division->nnz[division->owner[b]] += entry.nnz;
        division->bytes[division->owner[b]] += entry.padded_bytes;
    }
}

static enum slc_status make_order(const struct slc_reader *reader,
                                  const struct items *items,
                                  struct slc_group_division *division,
                                  struct slc_error *err)
{
    struct placed_block *placed = slc_calloc(division->block_count, sizeof *placed);
    uint64_t done[SLC_MAX_DEVICES] = {0};
    uint64_t last_item = UINT64_MAX;

    SLC_TRY(slc_check_memory(placed != NULL, err, "to order %" PRIu64 " blocks",
                             division->block_count));
    for (uint64_t b = 0; b < division->block_count; b++) {
        const uint32_t owner = division->owner[b];
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        uint64_t item = item_of(items, &entry, b);
        placed[b].block = b;
        if (item == last_item) {
            placed[b].done = placed[b - 1].done;
        } else {
            placed[b].done = (double)done[owner] / (double)slc_max_u64(division->nnz[owner], 1);
        }
        done[owner] += entry.nnz;
        last_item = item;
    }
    if (division->block_count > 0) {
        qsort(placed, division->block_count, sizeof *placed, earlier_first);
    }
    for (uint64_t i = 0; i < division->block_count; i++) {
        division->order[i] = placed[i].block;
    }
    slc_free(placed);
    return SLC_OK;
}

/* Called by each_run for every run of rows with one owner, in row order. */
typedef void add_rows_fn(struct slc_group_division *division,
                         uint32_t owner,
                         uint64_t first,
                         uint64_t end,
                         uint64_t unit_rows);

static void each_run(const struct slc_reader *reader,
                     const struct items *items,
                     uint64_t rows,
                     uint64_t unit_rows,
                     struct slc_group_division *division,
                     add_rows_fn *add)
{
    uint64_t first = 0;

    if (!items->partitions) {
        const uint64_t units = slc_div_up_u64(rows, unit_rows);

        for (unsigned d = 0; d < division->devices; d++) {
            const uint64_t end_unit =
                units / division->devices * (d + 1) + slc_min_u64(d + 1, units % division->devices);
            const uint64_t end = slc_min_u64(end_unit * unit_rows, rows);

            add(division, d, first, end, unit_rows);
            first = end;
        }
        return;
    }
    for (uint64_t p = 0; p < items->count;) {
        const uint32_t owner = items->device[p];
        struct slc_partition next = {.first_row = rows};

        do { /* skip partitions that only continue the row */
            p++;
            if (p < items->count) {
                slc_reader_partition(reader, p, &next);
            }
        } while (p < items->count && next.continued);
        next.first_row = p < items->count ? next.first_row : rows;
        add(division, owner, first, next.first_row, unit_rows);
        first = next.first_row;
    }
}

static void count_units(struct slc_group_division *division,
                        uint32_t owner,
                        uint64_t first,
                        uint64_t end,
                        uint64_t unit_rows)
{
    const uint64_t units = slc_div_up_u64(end - first, unit_rows);

    division->pieces[owner].count += units;
    division->unit_count += units;
}

/* Stores the units of one run of rows. pieces[].count is the number of units of the device that are
 * stored so far. */
static void add_units(struct slc_group_division *division,
                      uint32_t owner,
                      uint64_t first,
                      uint64_t end,
                      uint64_t unit_rows)
{
    struct slc_device_rows *piece = &division->pieces[owner];

    for (uint64_t row = first; row < end; row += unit_rows) {
        const uint64_t at = (uint64_t)(piece->ranges - division->units) + piece->count++;

        division->units[at] = (struct slc_row_span){row, slc_min_u64(row + unit_rows, end)};
        division->ordinal[at] = division->unit_count++;
    }
}

static enum slc_status make_units(const struct slc_reader *reader,
                                  const struct items *items,
                                  uint64_t rows,
                                  uint64_t unit_rows,
                                  struct slc_group_division *division,
                                  struct slc_error *err)
{
    uint64_t before = 0;

    each_run(reader, items, rows, unit_rows, division, count_units);
    division->units = slc_calloc(division->unit_count, sizeof *division->units);
    division->ordinal = slc_calloc(division->unit_count, sizeof *division->ordinal);
    SLC_TRY(slc_check_memory(division->units != NULL && division->ordinal != NULL, err,
                             "for %" PRIu64 " units of rows", division->unit_count));
    for (unsigned d = 0; d < division->devices; d++) {
        division->pieces[d].ranges = division->units + before;
        before += division->pieces[d].count;
        division->pieces[d].count = 0;
    }
    division->unit_count = 0;
    each_run(reader, items, rows, unit_rows, division, add_units);
    return SLC_OK;
}

static enum slc_status divide_layout(const struct slc_reader *reader,
                                     enum slc_split split,
                                     uint64_t rows,
                                     uint64_t unit_rows,
                                     struct items *items,
                                     struct slc_group_division *division,
                                     struct slc_error *err)
{
    SLC_TRY(assign_items(reader, split, division->devices, items, err));
    division->owner = slc_calloc(division->block_count, sizeof *division->owner);
    division->order = slc_calloc(division->block_count, sizeof *division->order);
    SLC_TRY(slc_check_memory(division->owner != NULL && division->order != NULL, err,
                             "to divide %" PRIu64 " blocks", division->block_count));
    set_owners(reader, items, division);
    SLC_TRY(make_order(reader, items, division, err));
    return make_units(reader, items, rows, unit_rows, division, err);
}

enum slc_status slc_group_division_create(const struct slc_reader *reader,
                                          enum slc_split split,
                                          unsigned devices,
                                          uint64_t rows,
                                          uint64_t unit_rows,
                                          struct slc_group_division *division,
                                          struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct items items = {0};

    memset(division, 0, sizeof *division);
    if (split == SLC_SPLIT_PARTITIONS && info->partition_count == 0 && info->nnz > 0) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "%s has no partitions to assign to devices, because it is not sorted by a mode; use a "
            "sorted layout or the split 'nnz'",
            slc_reader_path(reader));
    }
    division->devices = devices;
    division->block_count = info->block_count;
    enum slc_status status = divide_layout(reader, split, rows, unit_rows, &items, division, err);
    slc_free(items.nnz);
    slc_free(items.device);
    if (status != SLC_OK) {
        slc_group_division_destroy(division);
    }
    return status;
}

void slc_group_division_destroy(struct slc_group_division *division)
{
    slc_free(division->owner);
    slc_free(division->order);
    slc_free(division->units);
    slc_free(division->ordinal);
    memset(division, 0, sizeof *division);
}

uint64_t slc_group_units_max(const struct slc_reader *reader,
                             unsigned devices,
                             uint64_t rows,
                             uint64_t unit_rows)
{
    /* Each run of rows with one owner has at most one unit that is not full. The sum cannot
     * overflow, because the numbers of rows and runs are far below 2^63. */
    return rows / unit_rows + slc_max_u64(slc_reader_info(reader)->partition_count, devices);
}

uint64_t slc_group_division_memory_bytes(const struct slc_reader *reader,
                                         unsigned devices,
                                         uint64_t rows,
                                         uint64_t unit_rows)
{
    const uint64_t blocks = slc_reader_info(reader)->block_count;
    /* Bytes for a block and for the item that it belongs to. */
    const uint64_t per_block =
        2 * sizeof(uint64_t) + 2 * sizeof(uint32_t) + sizeof(struct placed_block);
    const uint64_t per_unit = sizeof(struct slc_row_span) + sizeof(uint64_t);

    return sizeof(struct slc_group_division) + blocks * per_block +
           slc_group_units_max(reader, devices, rows, unit_rows) * per_unit;
}
