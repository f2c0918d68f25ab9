/* Opens a block file for writing: a new file, or the file of an interrupted build. The journal of
 * an interrupted build lists the blocks that were written. These blocks are read and hashed in
 * order until a check fails. Writing resumes after the last complete partition.
 *
 * Cost of resuming: reading and hashing the blocks that are kept. */
#include "storage/block/reader.h"
#include "storage/block/writer_internal.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

void slc_writer_destroy(struct slc_writer *writer)
{
    if (writer->fd >= 0) {
        (void)writer->files->close(writer->files->self, writer->fd);
    }
    if (writer->direct_fd >= 0) {
        (void)writer->files->close(writer->files->self, writer->direct_fd);
    }
    slc_journal_close(writer->journal);
    slc_buffer_destroy(&writer->block);
    slc_free(writer->directory);
    slc_free(writer->index);
    slc_free(writer->path);
    slc_free(writer);
}

static enum slc_status check_options(const struct slc_writer_options *options,
                                     struct slc_error *err)
{
    if (options->block_bytes != 0 && (options->block_bytes < SLC_MIN_BLOCK_BYTES ||
                                      options->block_bytes > SLC_MAX_BLOCK_BYTES)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "block size %" PRIu64 " is not between %" PRIu64 " and %" PRIu64 " bytes",
                        options->block_bytes, SLC_MIN_BLOCK_BYTES, SLC_MAX_BLOCK_BYTES);
    }
    if (options->layout_mode != 0 &&
        (options->layout == SLC_LAYOUT_BLCO || options->layout_mode >= options->order)) {
        return slc_fail(err, SLC_ERR_USAGE, "the layout with mode %u of %u is not valid",
                        options->layout_mode + 1, options->order);
    }
    return SLC_OK;
}

/* Sets the fields that are known before the first tile and allocates the block buffer. */
static enum slc_status prepare_writer(struct slc_writer *writer,
                                      const struct slc_writer_options *options,
                                      struct slc_error *err)
{
    struct slc_layout_info *info = &writer->header.info;

    SLC_TRY(slc_key_layout_init_run(&info->keys, options->order, options->dims, options->run, err));
    SLC_TRY(slc_key_layout_init_run(
        &info->content_keys, options->order, options->dims,
        options->content_run == NULL ? info->keys.run : *options->content_run, err));
    info->layout = options->layout;
    info->layout_mode = options->layout_mode;
    info->codec = options->codec;
    info->order = options->order;
    info->relabelled_modes = options->relabelled_modes;
    memcpy(info->dims, options->dims, options->order * sizeof info->dims[0]);
    writer->header.index_offset = SLC_HEADER_BYTES;
    writer->partition.empty = true;
    writer->all_f32 = true;
    writer->target_bytes =
        options->block_bytes == 0 ? SLC_DEFAULT_BLOCK_BYTES : options->block_bytes;
    writer->sync_bytes = options->sync_bytes == 0 ? SLC_DEFAULT_SYNC_BYTES : options->sync_bytes;
    return slc_writer_reserve_block(writer, writer->target_bytes, err);
}

/* Creates a writer and opens its file with `flags`, which determine if the file may exist. After an
 * error, *writer may be set; the caller must destroy it. */
static enum slc_status create_writer(const struct slc_writer_options *options,
                                     int flags,
                                     int direct_flags,
                                     struct slc_writer **writer,
                                     struct slc_error *err)
{
    SLC_TRY(check_options(options, err));
    struct slc_writer *created = slc_calloc(1, sizeof *created);
    SLC_TRY(slc_check_memory(created != NULL, err, "for the writer of a block file"));
    created->fd = -1;
    created->direct_fd = -1;
    created->files = options->files != NULL ? options->files : slc_files_system();
    created->path = slc_strdup(options->path);
    enum slc_status status = created->path == NULL
                                 ? slc_fail(err, SLC_ERR_MEMORY, "no memory for a path")
                                 : prepare_writer(created, options, err);
    if (status == SLC_OK) {
        created->fd = created->files->open(created->files->self, created->path, flags, 0666);
        status = created->fd < 0
                     ? slc_fail_errno(err, -created->fd, created->path, "creating the block file")
                     : slc_file_open_direct(created->files, created->fd, created->path,
                                            direct_flags, &created->direct_fd, err);
    }
    *writer = created;
    return status;
}

enum slc_status slc_writer_open(const struct slc_writer_options *options,
                                struct slc_writer **writer,
                                struct slc_error *err)
{
    struct slc_writer *opened = NULL;
    enum slc_status status =
        create_writer(options, O_RDWR | O_CREAT | O_EXCL, O_WRONLY, &opened, err);

    if (status != SLC_OK && opened != NULL) {
        if (opened->fd >= 0) {
            (void)opened->files->unlink(opened->files->self, opened->path);
        }
        slc_writer_destroy(opened);
    }
    SLC_TRY(status);
    *writer = opened;
    return SLC_OK;
}

/* State of a writer at the end of a partition, from which a build can resume. */
struct resume_point {
    struct slc_file_header header;
    struct slc_open_partition partition;
    struct slc_journal_record last;
};

/* Checks that the block of `record` directly follows the blocks before it, is within the file and
 * valid, and that its number of coordinate bytes is possible. `coordinate_bytes` is the total of
 * the previous blocks. */
static enum slc_status check_block(struct slc_writer *writer,
                                   const struct slc_journal_record *record,
                                   uint64_t coordinate_bytes,
                                   uint64_t file_bytes,
                                   bool *sound,
                                   struct slc_error *err)
{
    const struct slc_block_entry *entry = &record->entry;
    uint64_t offset = writer->header.index_offset;
    slc_u128 last_key = 0;

    *sound = false;
    if (entry->offset != offset || offset > file_bytes ||
        entry->padded_bytes > slc_min_u64(file_bytes - offset, SLC_MAX_BLOCK_BYTES) ||
        entry->first_tile != writer->header.info.tile_count ||
        record->coordinate_bytes < coordinate_bytes ||
        record->coordinate_bytes - coordinate_bytes > entry->padded_bytes ||
        (writer->header.info.layout == SLC_LAYOUT_SORTED &&
         entry->partition != writer->partition.ordinal)) {
        return SLC_OK;
    }
    enum slc_status status = slc_writer_reserve_block(writer, entry->padded_bytes, err);
    SLC_THEN(status,
             slc_file_read_pages(writer->files, writer->direct_fd, writer->fd, writer->path,
                                 writer->block.data, entry->padded_bytes, entry->offset, err));
    *sound = status == SLC_OK &&
             slc_block_agrees(&writer->header.info, writer->header.info.block_count, entry,
                              writer->block.data, &last_key) &&
             last_key == record->last_key;
    return status;
}

/* Adds the journal's valid blocks to the writer. Sets *point to the state after the last complete
 * partition. */
static enum slc_status keep_sound_blocks(struct slc_writer *writer,
                                         uint64_t partitions,
                                         struct resume_point *point,
                                         struct slc_error *err)
{
    struct slc_file_stat stat;
    uint64_t coordinate_bytes = 0;
    int rc = writer->files->stat_fd(writer->files->self, writer->fd, &stat);

    *point = (struct resume_point){.header = writer->header, .partition = writer->partition};
    SLC_TRY(slc_check_call(rc, err, writer->path, "getting the size of the block file"));
    while (writer->partition.ordinal < partitions) {
        struct slc_journal_record record;
        bool found = false;
        enum slc_status status = slc_journal_next(writer->journal, &record, &found, err);

        if (status == SLC_OK && found) {
            status = check_block(writer, &record, coordinate_bytes, stat.bytes, &found, err);
            coordinate_bytes = record.coordinate_bytes;
        }
        if (status == SLC_OK && found) {
            status = slc_writer_add_block(writer, &record.entry, err);
        }
        if (status != SLC_OK || !found) {
            return status;
        }
        slc_writer_add_rows(writer, record.entry.min, record.entry.max);
        if (record.completes) {
            if (writer->header.info.layout == SLC_LAYOUT_SORTED) {
                slc_writer_end_partition(writer);
            }
            *point = (struct resume_point){writer->header, writer->partition, record};
        }
    }
    return SLC_OK;
}

/* Resets the writer to `point` and truncates file and journal there. */
static enum slc_status
restore_state(struct slc_writer *writer, const struct resume_point *point, struct slc_error *err)
{
    static const uint8_t zeros[SLC_HEADER_BYTES];
    uint64_t blocks = point->header.info.block_count;

    SLC_TRY(slc_journal_keep(writer->journal, blocks, &point->last, err));
    writer->header = point->header;
    writer->partition = point->partition;
    if (blocks > 0) {
        writer->all_f32 = point->last.all_f32;
        writer->values = point->last.values;
        writer->coordinate_bytes = point->last.coordinate_bytes;
        writer->last_key = point->last.last_key;
    }
    int rc = writer->files->truncate(writer->files->self, writer->fd,
                                     blocks > 0 ? writer->header.index_offset : 0);
    SLC_TRY(slc_check_call(rc, err, writer->path, "truncating the block file"));
    if (blocks == 0) {
        return SLC_OK;
    }
    /* Clear a header that was already written: with it, the truncated file would look whole. */
    SLC_TRY(
        slc_file_write_at(writer->files, writer->fd, writer->path, zeros, sizeof zeros, 0, err));
    /* Sync the kept blocks, which may not be on the drive yet. */
    SLC_TRY(slc_writer_sync(writer, err));
    return slc_journal_sync(writer->journal, err);
}

/* Opens the journal of a file that starts with header `initial`, which has no totals yet. */
static enum slc_status open_journal(const struct slc_files *files,
                                    const char *path,
                                    const struct slc_file_header *initial,
                                    uint64_t target_bytes,
                                    uint64_t tag,
                                    struct slc_journal **journal,
                                    struct slc_error *err)
{
    struct slc_file_header empty = *initial;
    uint8_t page[SLC_HEADER_BYTES];

    slc_header_encode(&empty, page);
    return slc_journal_open(
        files, path, empty.info.order,
        &(struct slc_journal_identity){empty.info.header_hash, target_bytes, tag}, journal, err);
}

/* Reads as many records as the file of `reader` has blocks. Sets *same to true if the last record
 * describes the last block. */
static enum slc_status last_record(struct slc_journal *journal,
                                   const struct slc_reader *reader,
                                   struct slc_journal_record *last,
                                   bool *same,
                                   struct slc_error *err)
{
    const uint64_t blocks = slc_reader_info(reader)->block_count;
    struct slc_block_entry entry = {.hash = 0};
    bool found = true;
    enum slc_status status = SLC_OK;

    *last = (struct slc_journal_record){.coordinate_bytes = 0};
    for (uint64_t block = 0; block < blocks && found && status == SLC_OK; block++) {
        status = slc_journal_next(journal, last, &found, err);
    }
    if (blocks > 0) {
        slc_reader_entry(reader, blocks - 1, &entry);
    }
    *same = status == SLC_OK && found && entry.hash == last->entry.hash &&
            entry.offset == last->entry.offset;
    return status;
}

enum slc_status slc_writer_finished(const struct slc_writer_options *options,
                                    uint64_t tag,
                                    const struct slc_reader *reader,
                                    struct slc_writer_summary *summary,
                                    bool *finished,
                                    struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct slc_file_header initial = {.info = {.layout = info->layout,
                                               .layout_mode = info->layout_mode,
                                               .codec = info->codec,
                                               .order = info->order,
                                               .relabelled_modes = info->relabelled_modes,
                                               .keys = info->keys,
                                               .content_keys = info->content_keys},
                                      .index_offset = SLC_HEADER_BYTES};
    struct slc_journal_record last;
    struct slc_journal *journal = NULL;
    enum slc_status status = SLC_OK;

    *finished = false;
    memcpy(initial.info.dims, info->dims, sizeof initial.info.dims);
    status =
        open_journal(slc_files_or_system(options->files), options->path, &initial,
                     options->block_bytes == 0 ? SLC_DEFAULT_BLOCK_BYTES : options->block_bytes,
                     tag, &journal, err);
    if (status == SLC_OK) {
        status = last_record(journal, reader, &last, finished, err);
        slc_journal_close(journal);
    }
    if (status == SLC_OK && *finished) {
        *summary = (struct slc_writer_summary){.nnz = info->nnz,
                                               .block_count = info->block_count,
                                               .tile_count = info->tile_count,
                                               .file_bytes = info->file_bytes,
                                               .index_bytes = last.coordinate_bytes,
                                               .sum_of_squares = info->sum_of_squares,
                                               .content_sum = info->content_sum,
                                               .header_hash = info->header_hash,
                                               .fiber_count = info->fiber_count,
                                               .value_type = info->value_type,
                                               .values = last.values};
    }
    return status;
}

enum slc_status slc_writer_resume(const struct slc_writer_options *options,
                                  uint64_t tag,
                                  uint64_t partitions,
                                  struct slc_writer **writer,
                                  struct slc_writer_kept *kept,
                                  struct slc_error *err)
{
    struct slc_writer *opened = NULL;
    struct resume_point point;
    enum slc_status status =
        create_writer(options, O_RDWR | O_CREAT | SLC_OPEN_OWN, O_RDWR, &opened, err);

    if (status == SLC_OK) {
        opened->keep_journal = options->keep_journal;
        status = open_journal(opened->files, opened->path, &opened->header, opened->target_bytes,
                              tag, &opened->journal, err);
    }
    if (status == SLC_OK) {
        /* Both files may be new. Later syncs preserve data only if the file names are on disk. */
        status = slc_name_sync(opened->files, opened->path, err);
    }
    SLC_THEN(status, keep_sound_blocks(opened, partitions, &point, err));
    SLC_THEN(status, restore_state(opened, &point, err));
    if (status != SLC_OK) {
        if (opened != NULL) {
            slc_writer_destroy(opened);
        }
        return status;
    }
    *kept = (struct slc_writer_kept){.partitions = opened->partition.ordinal,
                                     .blocks = opened->header.info.block_count,
                                     .nnz = opened->header.info.nnz,
                                     .file_bytes = opened->header.index_offset,
                                     .last_row = opened->partition.before,
                                     .last_key = opened->last_key};
    *writer = opened;
    return SLC_OK;
}
