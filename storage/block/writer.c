/* Writes a block file (docs/FORMAT.md, sections 4 and 5).
 *
 * Tile data and directory entries are collected in separate buffers, because the size of the
 * directory is known only when the block closes. Then the data is moved to its position after the
 * directory, and the block is hashed and written as a whole. The index stays in memory until
 * slc_writer_finish. The header is written last, after everything else has been synced, so a file
 * with a valid header is complete.
 *
 * Cost: one copy of every tile, one move and one xxh3 pass over every block. */
#include "storage/block/writer.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "storage/block/writer_internal.h"
#include "storage/codec/block_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum slc_status
slc_writer_reserve(uint8_t **array, uint64_t *capacity, uint64_t bytes, struct slc_error *err)
{
    uint64_t new_capacity = slc_max_u64(bytes, *capacity < 4096 ? 4096 : 2 * *capacity);

    if (bytes <= *capacity) {
        return SLC_OK;
    }
    uint8_t *grown = slc_realloc(*array, new_capacity);
    SLC_TRY(
        slc_check_memory(grown != NULL, err, "for %" PRIu64 " bytes of block index", new_capacity));
    *array = grown;
    *capacity = new_capacity;
    return SLC_OK;
}

enum slc_status
slc_writer_reserve_block(struct slc_writer *writer, uint64_t bytes, struct slc_error *err)
{
    struct slc_buffer grown = SLC_BUFFER_INIT;

    if (slc_pad_to_page(bytes) <= writer->block.bytes) {
        return SLC_OK;
    }
    SLC_TRY(slc_buffer_create(&grown, slc_pad_to_page(bytes), SLC_PAGES_SMALL, err));
    if (writer->data_bytes > 0) {
        memcpy(grown.data, writer->block.data, writer->data_bytes);
    }
    slc_buffer_destroy(&writer->block);
    writer->block = grown;
    return SLC_OK;
}

enum slc_status slc_writer_add_block(struct slc_writer *writer,
                                     const struct slc_block_entry *entry,
                                     struct slc_error *err)
{
    struct slc_layout_info *info = &writer->header.info;
    uint64_t entry_bytes = slc_index_entry_bytes(info->order);
    uint64_t used = info->block_count * entry_bytes;

    SLC_TRY(slc_writer_reserve(&writer->index, &writer->index_capacity, used + entry_bytes, err));
    slc_index_entry_encode(entry, info->order, writer->index + used);
    writer->header.index_offset += entry->padded_bytes;
    info->block_count++;
    info->tile_count += entry->tile_count;
    info->nnz += entry->nnz;
    info->sum_of_squares += entry->sum_of_squares;
    info->content_sum += entry->content_sum;
    info->fiber_count += info->layout == SLC_LAYOUT_FIBER ? entry->partition : 0;
    return SLC_OK;
}

void slc_writer_add_rows(struct slc_writer *writer, const uint64_t *min, const uint64_t *max)
{
    struct slc_open_partition *partition = &writer->partition;
    unsigned mode = writer->header.info.layout_mode;

    partition->low = partition->empty ? min[mode] : slc_min_u64(partition->low, min[mode]);
    partition->high = partition->empty ? max[mode] : slc_max_u64(partition->high, max[mode]);
    partition->empty = false;
}

void slc_writer_end_partition(struct slc_writer *writer)
{
    struct slc_open_partition *partition = &writer->partition;

    partition->ordinal++;
    partition->before = partition->high;
    partition->empty = true;
}

enum slc_status slc_writer_sync(struct slc_writer *writer, struct slc_error *err)
{
    int rc = writer->files->sync(writer->files->self, writer->fd);

    SLC_TRY(slc_check_call(rc, err, writer->path, "syncing the block file"));
    writer->unsynced_bytes = 0;
    return SLC_OK;
}

/* Returns the bytes of a block with `tiles` tiles and `data_bytes` bytes of data, unpadded. */
static uint64_t payload_bytes(const struct slc_writer *writer, uint64_t tiles, uint64_t data_bytes)
{
    return SLC_BLOCK_HEADER_BYTES + tiles * slc_tile_entry_bytes(writer->header.info.order) +
           data_bytes + SLC_BLOCK_SLACK_BYTES;
}

/* Writes header and directory before the tile data, slack and padding after it; hashes all. */
static void assemble_block(struct slc_writer *writer)
{
    const struct slc_layout_info *info = &writer->header.info;
    struct slc_block_entry *entry = &writer->entry;
    uint8_t *block = writer->block.data;
    uint64_t entry_bytes = slc_tile_entry_bytes(info->order);
    uint64_t data_at = slc_tile_entry_offset(info->order, entry->tile_count);
    uint64_t data_end = data_at + writer->data_bytes;

    entry->bytes = data_end + SLC_BLOCK_SLACK_BYTES;
    entry->padded_bytes = slc_pad_to_page(entry->bytes);
    memmove(block + data_at, block, writer->data_bytes);
    memset(block + data_end, 0, entry->padded_bytes - data_end);

    memset(block, 0, SLC_BLOCK_HEADER_BYTES);
    slc_store_u32(block + SLC_BLOCK_AT_MAGIC, SLC_BLOCK_MAGIC);
    slc_store_u16(block + SLC_BLOCK_AT_CODEC, (uint16_t)entry->codec);
    slc_store_u64(block + SLC_BLOCK_AT_ORDINAL, info->block_count);
    slc_store_u64(block + SLC_BLOCK_AT_NNZ, entry->nnz);
    slc_store_u32(block + SLC_BLOCK_AT_TILE_COUNT, entry->tile_count);
    slc_store_u32(block + SLC_BLOCK_AT_ENTRY_BYTES, (uint32_t)entry_bytes);
    slc_store_u64(block + SLC_BLOCK_AT_FIRST_TILE, entry->first_tile);

    memcpy(block + SLC_BLOCK_HEADER_BYTES, writer->directory, entry->tile_count * entry_bytes);
    for (uint32_t tile = 0; tile < entry->tile_count; tile++) {
        uint8_t *at = block + slc_tile_entry_offset(info->order, tile) + SLC_TILE_AT_DATA_OFFSET;

        slc_store_u64(at, slc_load_u64(at) + data_at);
    }
    entry->hash = slc_hash64(block, entry->padded_bytes);
}

/* Adds the block just written to the journal. At the end of a partition, writes all pending records
 * to the journal file, and syncs if enough bytes are unsynced. */
static enum slc_status journal_block(struct slc_writer *writer,
                                     const struct slc_block_entry *entry,
                                     bool completes,
                                     struct slc_error *err)
{
    const struct slc_journal_record record = {
        .entry = *entry,
        .coordinate_bytes = writer->coordinate_bytes,
        .last_key = writer->last_key,
        .all_f32 = writer->all_f32,
        .values = writer->values,
        .completes = completes,
    };

    SLC_TRY(slc_journal_add(writer->journal, &record, err));
    if (completes) {
        SLC_TRY(slc_journal_commit(writer->journal, err));
    }
    if (completes && writer->unsynced_bytes >= writer->sync_bytes) {
        SLC_TRY(slc_writer_sync(writer, err));
        SLC_TRY(slc_journal_sync(writer->journal, err));
    }
    return SLC_OK;
}

/* Writes the open block, if any, and adds it to the index and the journal. `completes` is true if
 * the block is the last block of its partition, `fiber_continues` if the last fiber of the block
 * continues in the next block. */
static enum slc_status
close_block(struct slc_writer *writer, bool completes, bool fiber_continues, struct slc_error *err)
{
    struct slc_block_entry *entry = &writer->entry;

    if (entry->tile_count == 0) {
        return SLC_OK;
    }
    assemble_block(writer);
    entry->offset = writer->header.index_offset;
    if (writer->header.info.layout == SLC_LAYOUT_FIBER) {
        entry->partition -= fiber_continues;
    }
    /* In layouts without partitions, a build can resume after any block. */
    completes = completes || writer->header.info.layout != SLC_LAYOUT_SORTED;
    enum slc_status status =
        slc_file_write_pages(writer->files, writer->direct_fd, writer->fd, writer->path,
                             writer->block.data, entry->padded_bytes, entry->offset, err);
    if (status != SLC_OK) {
        slc_error_locate_block(err, writer->path, writer->header.info.block_count, entry->offset);
        return status;
    }
    writer->unsynced_bytes += entry->padded_bytes;
    status = slc_writer_add_block(writer, entry, err);
    if (status == SLC_OK && writer->journal != NULL) {
        status = journal_block(writer, entry, completes, err);
    }
    memset(entry, 0, sizeof *entry);
    writer->data_bytes = 0;
    return status;
}

/* Asserts the preconditions on keys and rows of partitions. */
static void assert_in_partition(const struct slc_writer *writer, const struct slc_tile_blob *tile)
{
    const struct slc_open_partition *partition = &writer->partition;
    unsigned mode = writer->header.info.layout_mode;

    if (partition->continued) {
        assert(tile->min[mode] == partition->before && tile->max[mode] == partition->before);
    } else {
        assert(partition->ordinal == 0 || tile->min[mode] > partition->before);
    }
    assert((partition->empty && !partition->continued) ||
           slc_key_join(tile->first_lo, tile->first_hi) > writer->last_key);
    (void)tile;
    (void)partition;
    (void)mode;
}

/* Asserts the preconditions on tiles. A violation would otherwise be detected only when the file is
 * read. */
static void assert_tile(const struct slc_writer *writer, const struct slc_tile_blob *tile)
{
    const struct slc_layout_info *info = &writer->header.info;
    slc_u128 first = slc_key_join(tile->first_lo, tile->first_hi);

    assert(tile->nnz >= 1 && tile->nnz <= SLC_TILE_NNZ);
    assert(tile->data_bytes % 8 == 0);
    assert(first <= slc_key_join(tile->last_lo, tile->last_hi));
    assert(info->layout == SLC_LAYOUT_SORTED || first > writer->last_key ||
           (info->block_count == 0 && writer->entry.tile_count == 0));
    if (info->layout == SLC_LAYOUT_SORTED) {
        assert_in_partition(writer, tile);
    }
    for (unsigned mode = 0; mode < info->order; mode++) {
        assert(tile->min[mode] <= tile->max[mode] && tile->max[mode] < info->dims[mode]);
        assert(tile->max[mode] - tile->min[mode] < UINT32_MAX);
    }
    (void)info;
    (void)first;
}

/* True if the tile's first nonzero is in the same fiber as the last nonzero before the tile. */
static bool continues_fiber(const struct slc_writer *writer, const struct slc_tile_blob *tile)
{
    return slc_key_same_fiber(&writer->header.info.keys, writer->last_key,
                              slc_key_join(tile->first_lo, tile->first_hi));
}

/* Adds `tile` to the directory and the entry of the open block. The caller has reserved memory. */
static void add_to_block(struct slc_writer *writer, const struct slc_tile_blob *tile)
{
    struct slc_layout_info *info = &writer->header.info;
    struct slc_block_entry *entry = &writer->entry;
    struct slc_tile_entry listed = {
        .data_offset = writer->data_bytes,
        .data_bytes = tile->data_bytes,
        .nnz = tile->nnz,
        .first_lo = tile->first_lo,
        .first_hi = tile->first_hi,
        .last_lo = tile->last_lo,
        .last_hi = tile->last_hi,
        .sum_of_squares = tile->sum_of_squares,
        .content_sum = tile->content_sum,
    };
    bool first = entry->tile_count == 0;

    for (unsigned mode = 0; mode < info->order; mode++) {
        listed.corner[mode] = tile->min[mode];
        listed.extent[mode] = (uint32_t)(tile->max[mode] - tile->min[mode]);
        entry->min[mode] = first ? tile->min[mode] : slc_min_u64(entry->min[mode], tile->min[mode]);
        entry->max[mode] = slc_max_u64(entry->max[mode], tile->max[mode]);
    }
    slc_tile_entry_store(writer->directory +
                             (uint64_t)entry->tile_count * slc_tile_entry_bytes(info->order),
                         info->order, &listed);
    if (first) {
        entry->codec = info->codec;
        entry->first_tile = info->tile_count;
        entry->first_key_lo = tile->first_lo;
        entry->first_key_hi = tile->first_hi;
        entry->partition = writer->partition.ordinal;
        entry->continued = writer->partition.continued;
    }
    if (info->layout == SLC_LAYOUT_FIBER) {
        /* Counts fibers that end in the block; close_block subtracts a fiber that continues. */
        entry->partition += tile->fibers - (!first && continues_fiber(writer, tile));
    }
    entry->tile_count++;
    entry->nnz += tile->nnz;
    entry->sum_of_squares += tile->sum_of_squares;
    entry->content_sum += tile->content_sum;
    writer->last_key = slc_key_join(tile->last_lo, tile->last_hi);
    writer->all_f32 = writer->all_f32 && tile->all_f32;
    slc_value_stats_merge(&writer->values, &tile->stats);
    writer->coordinate_bytes += tile->index_bytes;
}

static enum slc_status
append_tile(struct slc_writer *writer, const struct slc_tile_blob *tile, struct slc_error *err)
{
    uint64_t entry_bytes = slc_tile_entry_bytes(writer->header.info.order);
    uint64_t payload = payload_bytes(writer, (uint64_t)writer->entry.tile_count + 1,
                                     writer->data_bytes + tile->data_bytes);
    enum slc_status status;

    if (writer->entry.tile_count > 0 && payload > writer->target_bytes) {
        status = close_block(writer, false, continues_fiber(writer, tile), err);
        SLC_TRY(status);
        payload = payload_bytes(writer, 1, tile->data_bytes);
    }
    if (payload > SLC_MAX_BLOCK_BYTES) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "a tile of %" PRIu32
                        " bytes does not fit into a block, which has at most %" PRIu64 " bytes",
                        tile->data_bytes, SLC_MAX_BLOCK_BYTES);
    }
    SLC_TRY(slc_writer_reserve(&writer->directory, &writer->directory_capacity,
                               ((uint64_t)writer->entry.tile_count + 1) * entry_bytes, err));
    SLC_TRY(slc_writer_reserve_block(writer, payload, err));
    memcpy((uint8_t *)writer->block.data + writer->data_bytes, tile->data, tile->data_bytes);
    add_to_block(writer, tile);
    slc_writer_add_rows(writer, tile->min, tile->max);
    writer->data_bytes += tile->data_bytes;
    return SLC_OK;
}

static enum slc_status fail_again(const struct slc_writer *writer, struct slc_error *err)
{
    return slc_fail(err, writer->status, "an earlier write to %s failed", writer->path);
}

enum slc_status slc_writer_append(struct slc_writer *writer,
                                  const struct slc_tile_blob *tile,
                                  struct slc_error *err)
{
    assert_tile(writer, tile);
    if (writer->status != SLC_OK) {
        return fail_again(writer, err);
    }
    writer->status = append_tile(writer, tile, err);
    return writer->status;
}

enum slc_status
slc_writer_next_partition(struct slc_writer *writer, bool continued, struct slc_error *err)
{
    struct slc_open_partition *partition = &writer->partition;

    assert(writer->header.info.layout == SLC_LAYOUT_SORTED);
    if (writer->status != SLC_OK) {
        return fail_again(writer, err);
    }
    if (!partition->empty) {
        if (partition->ordinal == UINT32_MAX - 1) {
            writer->status =
                slc_fail(err, SLC_ERR_UNSUPPORTED,
                         "more than %" PRIu32 " partitions: make partitions larger", UINT32_MAX);
            return writer->status;
        }
        writer->status = close_block(writer, true, false, err);
        if (writer->status != SLC_OK) {
            return writer->status;
        }
        slc_writer_end_partition(writer);
    }
    assert(!continued || (partition->ordinal > 0 && partition->low == partition->high));
    partition->continued = continued;
    return SLC_OK;
}

/* Writes the index and the closing page and, once these are synced, the header. */
static enum slc_status write_frame(struct slc_writer *writer, struct slc_error *err)
{
    struct slc_file_header *header = &writer->header;
    uint64_t used = header->info.block_count * slc_index_entry_bytes(header->info.order);
    uint8_t page[SLC_PAGE_BYTES];

    header->index_bytes = slc_pad_to_page(used);
    SLC_TRY(slc_writer_reserve(&writer->index, &writer->index_capacity, header->index_bytes, err));
    if (header->index_bytes > used) {
        memset(writer->index + used, 0, header->index_bytes - used);
    }
    header->index_hash = slc_hash64(writer->index, header->index_bytes);
    header->info.value_type = writer->all_f32 ? SLC_F32 : SLC_F64;
    header->info.has_zeros = writer->values.zeros > 0;
    header->info.file_bytes = header->index_offset + header->index_bytes + SLC_CLOSING_BYTES;

    SLC_TRY(slc_file_write_at(writer->files, writer->fd, writer->path, writer->index,
                              header->index_bytes, header->index_offset, err));
    slc_header_encode(header, page); /* computes the header hash, which the closing page repeats */
    slc_closing_encode(header, page);
    SLC_TRY(slc_file_write_at(writer->files, writer->fd, writer->path, page, sizeof page,
                              header->info.file_bytes - SLC_CLOSING_BYTES, err));
    SLC_TRY(slc_writer_sync(writer, err));
    slc_header_encode(header, page);
    SLC_TRY(slc_file_write_at(writer->files, writer->fd, writer->path, page, sizeof page, 0, err));
    return slc_writer_sync(writer, err);
}

/* Closes the files. Network file systems may report a failed write only on close. */
static enum slc_status close_files(struct slc_writer *writer, struct slc_error *err)
{
    int rc = writer->files->close(writer->files->self, writer->fd);

    writer->fd = -1;
    if (writer->direct_fd >= 0) {
        int direct_rc = writer->files->close(writer->files->self, writer->direct_fd);

        rc = rc < 0 ? rc : direct_rc;
        writer->direct_fd = -1;
    }
    return slc_check_call(rc, err, writer->path, "closing the block file");
}

enum slc_status slc_writer_finish(struct slc_writer *writer,
                                  struct slc_writer_summary *summary,
                                  struct slc_error *err)
{
    const struct slc_layout_info *info = &writer->header.info;
    enum slc_status status = writer->status == SLC_OK ? SLC_OK : fail_again(writer, err);

    SLC_THEN(status, close_block(writer, true, false, err));
    if (status == SLC_OK && writer->journal != NULL && writer->keep_journal) {
        status = slc_journal_sync(writer->journal, err);
    }
    SLC_THEN(status, write_frame(writer, err));
    SLC_THEN(status, close_files(writer, err));
    if (status == SLC_OK && writer->journal != NULL && !writer->keep_journal) {
        status = slc_journal_remove(writer->journal, err);
    }
    if (status != SLC_OK) {
        slc_writer_abandon(writer);
        return status;
    }
    *summary = (struct slc_writer_summary){
        .nnz = info->nnz,
        .block_count = info->block_count,
        .tile_count = info->tile_count,
        .file_bytes = info->file_bytes,
        .index_bytes = writer->coordinate_bytes,
        .sum_of_squares = info->sum_of_squares,
        .content_sum = info->content_sum,
        .header_hash = info->header_hash,
        .fiber_count = info->fiber_count,
        .value_type = info->value_type,
        .values = writer->values,
    };
    slc_writer_destroy(writer);
    return SLC_OK;
}

enum slc_status slc_writer_suspend(struct slc_writer *writer, struct slc_error *err)
{
    assert(writer->journal != NULL);
    enum slc_status status = slc_writer_sync(writer, err);
    SLC_THEN(status, slc_journal_sync(writer->journal, err));
    slc_writer_destroy(writer);
    return status;
}

void slc_writer_abandon(struct slc_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    (void)writer->files->unlink(writer->files->self, writer->path);
    if (writer->journal != NULL) {
        enum slc_status status = slc_journal_remove(writer->journal, NULL);

        (void)status; /* a journal without its file is harmless */
    }
    slc_writer_destroy(writer);
}
