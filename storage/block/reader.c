/* Opens a block file: reads and hashes header, closing page and index, and checks them against each
 * other and the file size (docs/FORMAT.md, section 4). Sizes are trusted only once they agree with
 * the size on disk, so a forged header cannot request more memory than the file has bytes. The
 * index stays in memory as stored; entries are decoded on demand.
 *
 * Cost: reading and hashing the index once, and one pass over its entries. */
#include "storage/block/reader.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/block/file_layout.h"
#include "storage/block/partitions.h"
#include "storage/codec/block_layout.h"
#include "storage/file/block_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* An index of up to this size is read regardless of the budget: see slc_reader_open_within. */
#define FREE_INDEX_BYTES (UINT64_C(8) << 20)

struct slc_reader {
    const struct slc_files *files;
    char *path;
    struct slc_file_header header;
    struct slc_buffer index; /* the index as stored in the file, including padding */
    struct slc_partitions partitions;
};

/* Opens `path` and reads its header; on success *file is open and has the size in the header. */
static enum slc_status open_header(const struct slc_files *files,
                                   const char *path,
                                   struct slc_block_file *file,
                                   struct slc_file_header *header,
                                   struct slc_error *err)
{
    uint8_t page[SLC_PAGE_BYTES] = {0};
    enum slc_status status;

    SLC_TRY(slc_block_file_open(files, path, "opening the block file", file, err));
    status = slc_block_file_read(file, page, slc_min_u64(file->bytes, sizeof page), 0, err);
    if (status != SLC_OK) {
        goto fail;
    }
    /* A file of an impossible size is damaged if it has the magic number, and foreign otherwise. */
    if (memcmp(page, SLC_FILE_MAGIC, SLC_MAGIC_BYTES) == 0 &&
        (file->bytes % SLC_PAGE_BYTES != 0 || file->bytes < SLC_HEADER_BYTES + SLC_CLOSING_BYTES)) {
        status = slc_fail(err, SLC_ERR_DAMAGED,
                          "the file has %" PRIu64
                          " bytes, but a block file consists of two or more whole pages of %d "
                          "bytes: it was truncated or extended",
                          file->bytes, SLC_PAGE_BYTES);
        slc_error_locate_block(err, path, SLC_NOWHERE, file->bytes);
        goto fail;
    }
    status = slc_header_decode(page, file->bytes, header, err);
    if (status == SLC_OK && file->shape.count > 0 &&
        header->info.header_hash != file->shape.header_hash) {
        status = slc_fail(err, SLC_ERR_DAMAGED,
                          "the stripes hold a block file with checksum %016" PRIx64
                          ", but the list of stripes states %016" PRIx64,
                          header->info.header_hash, file->shape.header_hash);
    }
    if (status == SLC_OK) {
        return SLC_OK;
    }
fail:
    slc_error_locate_file(err, path);
    slc_block_file_close(file);
    return status;
}

/* Totals over the entries that have been checked. */
struct index_totals {
    uint64_t next_offset;
    uint64_t nnz;
    uint64_t tiles;
    uint64_t content_sum;
    double sum_of_squares;
    slc_u128 last_first_key;
    uint32_t last_partition;
};

/* Checks the offset and the size of the block. */
static enum slc_status check_entry_place(const struct slc_file_header *header,
                                         const struct slc_block_entry *entry,
                                         const struct index_totals *totals,
                                         struct slc_error *err)
{
    uint64_t least = slc_tile_entry_offset(header->info.order, entry->tile_count) +
                     8 * (uint64_t)entry->tile_count + SLC_BLOCK_SLACK_BYTES;

    if (entry->offset != totals->next_offset) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the index has the block at offset %" PRIu64 " instead of %" PRIu64,
                        entry->offset, totals->next_offset);
    }
    if (entry->tile_count == 0 || entry->bytes < least ||
        entry->padded_bytes > SLC_MAX_BLOCK_BYTES) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the index has %" PRIu64 " bytes for the block and its %" PRIu32
                        " tiles; %" PRIu64 " to %" PRIu64 " are possible",
                        entry->bytes, entry->tile_count, least, SLC_MAX_BLOCK_BYTES);
    }
    if (entry->padded_bytes > header->index_offset - entry->offset) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the block ends after byte %" PRIu64 ", where the index starts",
                        header->index_offset);
    }
    return SLC_OK;
}

/* Checks the counts, keys, sums and ranges of the block. */
static enum slc_status check_entry_content(const struct slc_layout_info *info,
                                           uint64_t block,
                                           const struct slc_block_entry *entry,
                                           const struct index_totals *totals,
                                           struct slc_error *err)
{
    slc_u128 key = slc_key_join(entry->first_key_lo, entry->first_key_hi);

    if (entry->nnz < entry->tile_count || entry->nnz > (uint64_t)entry->tile_count * SLC_TILE_NNZ) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "%" PRIu64 " nonzeros in %" PRIu32 " tiles are not possible", entry->nnz,
                        entry->tile_count);
    }
    if (entry->first_tile != totals->tiles) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the block's first tile is %" PRIu64 " instead of %" PRIu64,
                        entry->first_tile, totals->tiles);
    }
    if (entry->codec < SLC_CODEC_PACKED || entry->codec > SLC_CODEC_BLCO) {
        return slc_fail(err, SLC_ERR_DAMAGED, "the block has the unknown codec %u",
                        (unsigned)entry->codec);
    }
    if ((info->keys.bits < SLC_MAX_KEY_BITS && key >> info->keys.bits != 0) ||
        (block > 0 && slc_keys_ascend_across(info, totals->last_partition, entry) &&
         key <= totals->last_first_key)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the block's first key exceeds the mode sizes or is not above the previous "
                        "block's first key");
    }
    if (!(entry->sum_of_squares >= 0)) {
        return slc_fail(err, SLC_ERR_DAMAGED, "the block's sum of squares %g is not possible",
                        entry->sum_of_squares);
    }
    for (unsigned mode = 0; mode < info->order; mode++) {
        if (entry->min[mode] > entry->max[mode] || entry->max[mode] >= info->dims[mode]) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "coordinates %" PRIu64 " to %" PRIu64 " in mode %u of size %" PRIu64
                            " are not possible",
                            entry->min[mode], entry->max[mode], mode + 1, info->dims[mode]);
        }
    }
    return SLC_OK;
}

static enum slc_status check_totals(const struct slc_file_header *header,
                                    const struct index_totals *totals,
                                    struct slc_error *err)
{
    const struct slc_layout_info *info = &header->info;

    if (totals->next_offset != header->index_offset) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the blocks end at %" PRIu64 ", but the index starts at %" PRIu64,
                        totals->next_offset, header->index_offset);
    }
    if (totals->nnz != info->nnz || totals->tiles != info->tile_count) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the index has %" PRIu64 " nonzeros in %" PRIu64
                        " tiles, but the header has %" PRIu64 " in %" PRIu64,
                        totals->nnz, totals->tiles, info->nnz, info->tile_count);
    }
    if (slc_bits_f64(totals->sum_of_squares) != slc_bits_f64(info->sum_of_squares)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the index has a sum of squares of %.17g, but the header has %.17g",
                        totals->sum_of_squares, info->sum_of_squares);
    }
    if (totals->content_sum != info->content_sum) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the index has the content sum %016" PRIx64
                        ", but the header has %016" PRIx64,
                        totals->content_sum, info->content_sum);
    }
    return SLC_OK;
}

/* Checks every entry, the sums over all entries and the padding, and finds the largest block. */
static enum slc_status check_index(struct slc_reader *reader, struct slc_error *err)
{
    struct slc_file_header *header = &reader->header;
    struct slc_layout_info *info = &header->info;
    struct index_totals totals = {.next_offset = SLC_HEADER_BYTES};
    const uint8_t *index = reader->index.data;
    uint64_t entry_bytes = slc_index_entry_bytes(info->order);
    uint64_t used = info->block_count * entry_bytes;
    enum slc_status status = SLC_OK;

    for (uint64_t block = 0; block < info->block_count; block++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, block, &entry);
        status = check_entry_place(header, &entry, &totals, err);
        SLC_THEN(status, check_entry_content(info, block, &entry, &totals, err));
        if (status == SLC_OK && !slc_add_u64(totals.nnz, entry.nnz, &totals.nnz)) {
            status = slc_fail(err, SLC_ERR_DAMAGED,
                              "the number of nonzeros in the blocks exceeds 64 bits");
        }
        if (status == SLC_OK) {
            uint32_t flags = slc_load_u32(index + block * entry_bytes + SLC_INDEX_PARTITION_FLAGS);

            status = slc_partitions_add(&reader->partitions, info, block, &entry, flags, err);
        }
        if (status != SLC_OK) {
            slc_error_locate_block(err, reader->path, block,
                                   header->index_offset + block * entry_bytes);
            return status;
        }
        totals.next_offset += entry.padded_bytes;
        totals.tiles += entry.tile_count;
        totals.content_sum += entry.content_sum;
        totals.sum_of_squares += entry.sum_of_squares;
        totals.last_first_key = slc_key_join(entry.first_key_lo, entry.first_key_hi);
        totals.last_partition = entry.partition;
        info->max_block_bytes = slc_max_u64(info->max_block_bytes, entry.padded_bytes);
        info->max_block_nnz = slc_max_u64(info->max_block_nnz, entry.nnz);
    }
    if (header->index_bytes > 0) {
        uint64_t nonzero = slc_find_nonzero(index, used, header->index_bytes);

        if (nonzero != header->index_bytes) {
            status = slc_fail(err, SLC_ERR_DAMAGED, "the padding of the index is not zero");
            slc_error_locate_block(err, reader->path, SLC_NOWHERE, header->index_offset + nonzero);
            return status;
        }
    }
    status = check_totals(header, &totals, err);
    if (status != SLC_OK) {
        slc_error_locate_block(err, reader->path, SLC_NOWHERE, header->index_offset);
    }
    return status;
}

/* Reads the index in sections and checks the block offsets of each section before it reads the
 * next. A sparse file occupies no disk space, and its index reads as zeros. The check of its first
 * block offset fails, so such a file cannot fill much memory. */
static enum slc_status read_index(const struct slc_reader *reader,
                                  const struct slc_block_file *file,
                                  struct slc_error *err)
{
    const struct slc_file_header *header = &reader->header;
    const uint64_t entry_bytes = slc_index_entry_bytes(header->info.order);
    struct index_totals totals = {.next_offset = SLC_HEADER_BYTES};
    enum slc_status status = SLC_OK;
    uint64_t block = 0;

    for (uint64_t at = 0, more; at < header->index_bytes && status == SLC_OK; at += more) {
        more = slc_min_u64(header->index_bytes - at, FREE_INDEX_BYTES);
        status = slc_block_file_read(file, (char *)reader->index.data + at, more,
                                     header->index_offset + at, err);
        for (; at + more < header->index_bytes && (block + 1) * entry_bytes <= at + more &&
               status == SLC_OK;
             block++) {
            struct slc_block_entry entry;

            slc_reader_entry(reader, block, &entry);
            status = check_entry_place(header, &entry, &totals, err);
            totals.next_offset += entry.padded_bytes;
            if (status != SLC_OK) {
                slc_error_locate_block(err, reader->path, block,
                                       header->index_offset + block * entry_bytes);
            }
        }
    }
    return status;
}

/* Reads the closing page and the index. */
static enum slc_status
load_index(struct slc_reader *reader, const struct slc_block_file *file, struct slc_error *err)
{
    struct slc_file_header *header = &reader->header;
    uint8_t page[SLC_PAGE_BYTES];
    uint64_t hash;
    enum slc_status status = slc_block_file_read(file, page, sizeof page,
                                                 header->info.file_bytes - SLC_CLOSING_BYTES, err);

    SLC_THEN(status, slc_closing_check(page, header, err));
    SLC_THEN(status, slc_buffer_create(&reader->index, header->index_bytes, SLC_PAGES_SMALL, err));
    SLC_THEN(status, read_index(reader, file, err));
    if (status == SLC_OK) {
        hash = slc_hash64(reader->index.data, header->index_bytes);
        if (hash != header->index_hash) {
            status = slc_fail(err, SLC_ERR_DAMAGED,
                              "checksum mismatch in the index: expected %016" PRIx64
                              ", but its bytes hash to %016" PRIx64
                              "; restore the file or convert it again",
                              header->index_hash, hash);
            slc_error_locate_block(err, reader->path, SLC_NOWHERE, header->index_offset);
        }
    }
    SLC_THEN(status, slc_partitions_create(&reader->partitions, &header->info, err));
    SLC_THEN(status, check_index(reader, err));
    slc_error_locate_file(err, reader->path);
    return status;
}

static uint64_t memory_bytes_of(const char *path, const struct slc_file_header *header)
{
    return sizeof(struct slc_reader) + strlen(path) + 1 +
           slc_buffer_footprint(header->index_bytes, SLC_PAGES_SMALL) +
           slc_partitions_memory_bytes(&header->info);
}

enum slc_status slc_reader_open_within(const struct slc_files *files,
                                       const char *path,
                                       uint64_t memory_bytes,
                                       struct slc_reader **reader,
                                       struct slc_error *err)
{
    struct slc_reader *opened = slc_calloc(1, sizeof *opened);
    uint64_t need;
    struct slc_block_file file = SLC_BLOCK_FILE_INIT;

    if (opened == NULL || (opened->path = slc_strdup(path)) == NULL) {
        slc_free(opened);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the reader of %s", path);
    }
    opened->files = slc_files_or_system(files);
    enum slc_status status = open_header(opened->files, path, &file, &opened->header, err);
    if (status == SLC_OK) {
        need = memory_bytes_of(path, &opened->header);
        if (need > slc_max_u64(memory_bytes, FREE_INDEX_BYTES)) {
            status = slc_fail_budget(err, memory_bytes, need, "the index of %" PRIu64 " blocks",
                                     opened->header.info.block_count);
            slc_error_locate_file(err, path);
        } else {
            status = load_index(opened, &file, err);
        }
        slc_block_file_close(&file);
    }
    if (status != SLC_OK) {
        slc_reader_close(opened);
        return status;
    }
    *reader = opened;
    return SLC_OK;
}

enum slc_status slc_reader_open(const struct slc_files *files,
                                const char *path,
                                struct slc_reader **reader,
                                struct slc_error *err)
{
    return slc_reader_open_within(files, path, UINT64_MAX, reader, err);
}

void slc_reader_close(struct slc_reader *reader)
{
    if (reader != NULL) {
        slc_buffer_destroy(&reader->index);
        slc_partitions_destroy(&reader->partitions);
        slc_free(reader->path);
        slc_free(reader);
    }
}

const struct slc_layout_info *slc_reader_info(const struct slc_reader *reader)
{
    return &reader->header.info;
}

const char *slc_reader_path(const struct slc_reader *reader)
{
    return reader->path;
}

const struct slc_files *slc_reader_files(const struct slc_reader *reader)
{
    return reader->files;
}

void slc_reader_entry(const struct slc_reader *reader,
                      uint64_t block,
                      struct slc_block_entry *entry)
{
    unsigned order = reader->header.info.order;
    const uint8_t *index = reader->index.data;

    slc_index_entry_decode(index + block * slc_index_entry_bytes(order), order, entry);
}

void slc_reader_partition(const struct slc_reader *reader,
                          uint64_t ordinal,
                          struct slc_partition *partition)
{
    struct slc_block_entry first;
    struct slc_block_entry last;

    slc_partition_from_marks(&reader->partitions, &reader->header.info, ordinal, partition);
    slc_reader_entry(reader, partition->first_block, &first);
    slc_reader_entry(reader, partition->first_block + partition->block_count - 1, &last);
    partition->padded_bytes = last.offset + last.padded_bytes - first.offset;
    partition->continued = first.continued;
}

enum slc_status slc_block_open(const struct slc_reader *reader,
                               uint64_t block,
                               const void *data,
                               bool verified,
                               struct slc_block_view *view,
                               struct slc_error *err)
{
    view->reader = reader;
    view->path = reader->path;
    view->block = block;
    view->data = data;
    slc_reader_entry(reader, block, &view->entry);
    return slc_block_check(&reader->header.info, view, verified, err);
}

uint64_t slc_reader_memory_bytes(const struct slc_reader *reader)
{
    return memory_bytes_of(reader->path, &reader->header);
}
