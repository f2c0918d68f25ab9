/* Partitions of a sorted-n file. Every block stores the ordinal of its partition; from these
 * ordinals and the blocks' coordinate ranges, opening a file builds a table of partitions and
 * checks their invariants: ordinals increase by one, and the rows of a partition are above the rows
 * of the previous partition, unless both hold only a single row that they share.
 *
 * Cost: constant time and 32 bytes per block. */
#include "storage/block/partitions.h"

#include "base/memory/checked.h"
#include "storage/block/file_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum slc_status slc_partitions_create(struct slc_partitions *partitions,
                                      const struct slc_layout_info *info,
                                      struct slc_error *err)
{
    if (info->layout != SLC_LAYOUT_SORTED) {
        return SLC_OK;
    }
    return slc_buffer_create(&partitions->marks,
                             info->block_count * sizeof(struct slc_partition_mark), SLC_PAGES_SMALL,
                             err);
}

void slc_partitions_destroy(struct slc_partitions *partitions)
{
    slc_buffer_destroy(&partitions->marks);
}

uint64_t slc_partitions_memory_bytes(const struct slc_layout_info *info)
{
    return info->layout != SLC_LAYOUT_SORTED
               ? 0
               : slc_buffer_footprint(info->block_count * sizeof(struct slc_partition_mark),
                                      SLC_PAGES_SMALL);
}

/* Checks ordinal and flags against the previous block. */
static enum slc_status check_ordinal(const struct slc_partitions *partitions,
                                     const struct slc_layout_info *info,
                                     const struct slc_block_entry *entry,
                                     uint32_t flags,
                                     struct slc_error *err)
{
    uint64_t count = info->partition_count;

    if ((flags & ~SLC_PARTITION_CONTINUED) != 0) {
        return slc_fail(err, SLC_ERR_DAMAGED, "unknown partition flags %08" PRIx32, flags);
    }
    if (entry->partition != count && (count == 0 || entry->partition != count - 1)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the block belongs to partition %" PRIu32 ", but %" PRIu64
                        " partitions start before it",
                        entry->partition, count);
    }
    if (entry->partition == count ? entry->continued && count == 0
                                  : entry->continued != partitions->continued) {
        return slc_fail(
            err, SLC_ERR_DAMAGED,
            "the block of partition %" PRIu32
            " is %smarked as the continuation of a row, which contradicts the previous blocks",
            entry->partition, entry->continued ? "" : "not ");
    }
    return SLC_OK;
}

/* Checks the rows of a block against the rows of the previous partition. */
static enum slc_status check_rows(const struct slc_layout_info *info,
                                  const struct slc_partition_mark *before,
                                  const struct slc_block_entry *entry,
                                  struct slc_error *err)
{
    uint64_t low = entry->min[info->layout_mode];
    uint64_t high = entry->max[info->layout_mode];

    if (entry->continued
            ? low != high || low != before->last_row || before->first_row != before->last_row
            : low <= before->last_row) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the block has rows %" PRIu64 " to %" PRIu64
                        " of mode %u, which cannot follow rows %" PRIu64 " to %" PRIu64
                        " of the previous partition%s",
                        low, high, info->layout_mode + 1, before->first_row, before->last_row,
                        entry->continued ? " as the continuation of a row" : "");
    }
    return SLC_OK;
}

enum slc_status slc_partitions_add(struct slc_partitions *partitions,
                                   struct slc_layout_info *info,
                                   uint64_t block,
                                   const struct slc_block_entry *entry,
                                   uint32_t flags,
                                   struct slc_error *err)
{
    struct slc_partition_mark *mark = partitions->marks.data;
    uint64_t low = entry->min[info->layout_mode];
    uint64_t high = entry->max[info->layout_mode];

    if (info->layout == SLC_LAYOUT_FIBER) {
        info->fiber_count += entry->partition;
        return entry->partition <= entry->nnz && flags == 0
                   ? SLC_OK
                   : slc_fail(err, SLC_ERR_DAMAGED,
                              "%" PRIu32 " fibers cannot end in a block of %" PRIu64
                              " nonzeros, or a reserved flag is set",
                              entry->partition, entry->nnz);
    }
    if (info->layout != SLC_LAYOUT_SORTED) {
        return entry->partition == 0 && flags == 0
                   ? SLC_OK
                   : slc_fail(err, SLC_ERR_DAMAGED, "reserved bytes of the index are not zero");
    }
    enum slc_status status = check_ordinal(partitions, info, entry, flags, err);
    mark += status == SLC_OK ? entry->partition : 0;
    SLC_TRY(status);
    if (entry->partition > 0) {
        SLC_TRY(check_rows(info, mark - 1, entry, err));
    }
    if (entry->partition == info->partition_count) {
        *mark = (struct slc_partition_mark){block, partitions->nnz, low, high};
        partitions->first_offset = entry->offset;
        partitions->continued = entry->continued;
        info->partition_count++;
    }
    mark->first_row = slc_min_u64(mark->first_row, low);
    mark->last_row = slc_max_u64(mark->last_row, high);
    partitions->nnz += entry->nnz;
    info->max_partition_nnz =
        slc_max_u64(info->max_partition_nnz, partitions->nnz - mark->first_nnz);
    info->max_partition_bytes = slc_max_u64(
        info->max_partition_bytes, entry->offset + entry->padded_bytes - partitions->first_offset);
    return SLC_OK;
}

void slc_partition_from_marks(const struct slc_partitions *partitions,
                              const struct slc_layout_info *info,
                              uint64_t ordinal,
                              struct slc_partition *partition)
{
    const struct slc_partition_mark *marks = partitions->marks.data;
    const struct slc_partition_mark *mark = &marks[ordinal];
    bool last = ordinal + 1 == info->partition_count;

    assert(ordinal < info->partition_count);
    memset(partition, 0, sizeof *partition);
    partition->first_block = mark->first_block;
    partition->block_count = (last ? info->block_count : mark[1].first_block) - mark->first_block;
    partition->nnz = (last ? info->nnz : mark[1].first_nnz) - mark->first_nnz;
    partition->first_row = mark->first_row;
    partition->last_row = mark->last_row;
}
