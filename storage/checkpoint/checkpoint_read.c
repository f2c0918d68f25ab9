/* Reads one generation: verifies it completely when it is opened, and reads it section by section.
 *
 * A section is hashed again while it is read, because a drive may return other bytes than before.
 * Memory: one buffer, regardless of the file size. */
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/checkpoint/checkpoint_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct slc_checkpoint_reader {
    const struct slc_files *files;
    char *path;
    int fd;
    struct slc_checkpoint_info info;
    struct slc_buffer memory;
    uint8_t *buffer;                /* in `memory` */
    struct slc_hash_stream *stream; /* in `memory` */

    /* The section being read. */
    const struct slc_checkpoint_section *section;
    uint64_t loaded;     /* padded bytes loaded so far; the buffer holds the last of them */
    uint64_t used, held; /* bytes used and bytes held in the buffer */
    uint64_t returned;   /* bytes returned to the caller */
    struct slc_error fault;
};

/* A file whose disk space is less than 1 / HOLES_MAX of its size consists of holes and is rejected,
 * because reading it might take years. No file system compresses numbers by such a factor. Small
 * files are always read. */
enum { HOLES_MAX = 4096 };
#define HOLES_ALLOWED_BYTES (UINT64_C(256) << 20)

static uint64_t padded_bytes(uint64_t bytes)
{
    return (bytes + SLC_PAGE_BYTES - 1) / SLC_PAGE_BYTES * SLC_PAGE_BYTES;
}

/* Reads the next bytes of the section into the buffer, and adds them to the hash of the section. */
static enum slc_status load_buffer(struct slc_checkpoint_reader *reader, struct slc_error *err)
{
    const struct slc_checkpoint_section *section = reader->section;
    const uint64_t bytes =
        slc_min_u64(padded_bytes(section->bytes) - reader->loaded, SLC_CHECKPOINT_BUFFER_BYTES);

    SLC_TRY(slc_file_read_at(reader->files, reader->fd, reader->path, reader->buffer, bytes,
                             section->offset + reader->loaded, err));
    slc_hash_stream_add(reader->stream, reader->buffer, bytes);
    reader->loaded += bytes;
    reader->used = 0;
    reader->held = bytes;
    return SLC_OK;
}

static void start_section(struct slc_checkpoint_reader *reader,
                          const struct slc_checkpoint_section *section)
{
    reader->section = section;
    reader->loaded = 0;
    reader->used = 0;
    reader->held = 0;
    reader->returned = 0;
    slc_hash_stream_begin(reader->stream);
}

/* Reads the rest of the section and compares its hash. */
static enum slc_status finish_section(struct slc_checkpoint_reader *reader, struct slc_error *err)
{
    const struct slc_checkpoint_section *section = reader->section;
    enum slc_status status = SLC_OK;

    while (reader->loaded < padded_bytes(section->bytes) && status == SLC_OK) {
        status = load_buffer(reader, err);
    }
    SLC_TRY(status);
    if (slc_hash_stream_end(reader->stream) != section->hash) {
        SLC_TRY(slc_checkpoint_damaged(err, reader->path, section->offset,
                                       "checksum mismatch in a section"));
    }
    return SLC_OK;
}

/* Checks header, table and every section of an open file. Sets *empty if the file has no complete
 * generation. */
static enum slc_status
verify_file(struct slc_checkpoint_reader *reader, bool *empty, struct slc_error *err)
{
    struct slc_file_stat stat;
    uint8_t *header = reader->buffer;
    uint8_t *table = reader->buffer + SLC_PAGE_BYTES;
    const int rc = reader->files->stat_fd(reader->files->self, reader->fd, &stat);

    SLC_TRY(slc_check_call(rc, err, reader->path, "getting the size of the checkpoint"));
    if (stat.kind != 'f') {
        return slc_fail_file(err, SLC_ERR_FORMAT, reader->path,
                             "not a checkpoint, because it is not a plain file");
    }
    uint64_t available = slc_min_u64(stat.bytes, SLC_CHECKPOINT_BODY_OFFSET);
    enum slc_status status =
        slc_file_read_at(reader->files, reader->fd, reader->path, header, available, 0, err);
    SLC_THEN(status, slc_checkpoint_header_decode(header, slc_min_u64(available, SLC_PAGE_BYTES),
                                                  reader->path, &reader->info, empty, err));
    if (status != SLC_OK || *empty) {
        return status;
    }
    if (available < SLC_CHECKPOINT_BODY_OFFSET) {
        return slc_checkpoint_damaged(err, reader->path, available, "the file is truncated");
    }
    status =
        slc_checkpoint_table_decode(header, table, stat.bytes, reader->path, &reader->info, err);
    if (status == SLC_OK && reader->info.file_bytes > HOLES_ALLOWED_BYTES &&
        stat.stored_bytes > 0 && reader->info.file_bytes / HOLES_MAX > stat.stored_bytes) {
        return slc_checkpoint_damaged(err, reader->path, SLC_CHECKPOINT_BODY_OFFSET,
                                      "nearly all of the file is a hole");
    }
    for (unsigned s = 0; s < reader->info.section_count && status == SLC_OK; s++) {
        start_section(reader, &reader->info.sections[s]);
        status = finish_section(reader, err);
    }
    reader->section = NULL;
    return status;
}

/* Allocates a reader. */
static enum slc_status create_reader(const struct slc_files *files,
                                     const char *path,
                                     struct slc_checkpoint_reader **reader,
                                     struct slc_error *err)
{
    struct slc_checkpoint_reader *created = slc_calloc(1, sizeof *created);
    enum slc_status status = SLC_OK;

    if (created == NULL || (created->path = slc_strdup(path)) == NULL) {
        slc_free(created);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for reading a checkpoint");
    }
    created->files = files;
    created->fd = -1;
    slc_error_clear(&created->fault);
    status = slc_buffer_create(&created->memory,
                               SLC_CHECKPOINT_BUFFER_BYTES + sizeof(struct slc_hash_stream),
                               SLC_PAGES_SMALL, err);
    if (status != SLC_OK) {
        slc_checkpoint_reader_close(created);
        return status;
    }
    created->buffer = created->memory.data;
    created->stream = (struct slc_hash_stream *)(created->buffer + SLC_CHECKPOINT_BUFFER_BYTES);
    *reader = created;
    return SLC_OK;
}

enum slc_status slc_checkpoint_reader_open(const struct slc_files *files,
                                           const char *path,
                                           struct slc_checkpoint_reader **reader,
                                           struct slc_error *err)
{
    struct slc_checkpoint_reader *created = NULL;
    bool empty = false;
    enum slc_status status = create_reader(slc_files_or_system(files), path, &created, err);

    *reader = NULL;
    SLC_TRY(status);
    /* With SLC_OPEN_PLAIN, opening a device or a pipe does not block. */
    created->fd = created->files->open(created->files->self, path, O_RDONLY | SLC_OPEN_PLAIN, 0);
    if (created->fd == -ENOENT) {
        empty = true;
    } else if (created->fd < 0) {
        status = slc_fail_errno(err, -created->fd, path, "opening the checkpoint");
    } else {
        status = verify_file(created, &empty, err);
    }
    if (status != SLC_OK || empty) {
        slc_checkpoint_reader_close(created);
        return status;
    }
    *reader = created;
    return SLC_OK;
}

void slc_checkpoint_reader_close(struct slc_checkpoint_reader *reader)
{
    if (reader != NULL) {
        if (reader->fd >= 0) {
            (void)reader->files->close(reader->files->self, reader->fd);
        }
        slc_buffer_destroy(&reader->memory);
        slc_free(reader->path);
        slc_free(reader);
    }
}

const struct slc_checkpoint_info *
slc_checkpoint_reader_info(const struct slc_checkpoint_reader *reader)
{
    return &reader->info;
}

const char *slc_checkpoint_reader_path(const struct slc_checkpoint_reader *reader)
{
    return reader->path;
}

const struct slc_checkpoint_section *slc_checkpoint_find(const struct slc_checkpoint_reader *reader,
                                                         const char *name)
{
    for (unsigned s = 0; s < reader->info.section_count; s++) {
        if (strcmp(reader->info.sections[s].name, name) == 0) {
            return &reader->info.sections[s];
        }
    }
    return NULL;
}

void slc_checkpoint_seek(struct slc_checkpoint_reader *reader, const char *name)
{
    const struct slc_checkpoint_section *section = slc_checkpoint_find(reader, name);

    slc_error_clear(&reader->fault);
    if (section == NULL) {
        reader->section = NULL;
        (void)slc_fail(&reader->fault, SLC_ERR_FORMAT, "the checkpoint has no section '%s'", name);
        slc_error_locate_file(&reader->fault, reader->path);
        return;
    }
    start_section(reader, section);
}

void slc_checkpoint_get(struct slc_checkpoint_reader *reader, void *data, uint64_t bytes)
{
    uint8_t *to = data;
    enum slc_status status = reader->fault.status;

    if (status == SLC_OK && bytes > reader->section->bytes - reader->returned) {
        status = slc_fail(&reader->fault, SLC_ERR_FORMAT,
                          "section '%s' of the checkpoint is too short", reader->section->name);
        slc_error_locate_block(&reader->fault, reader->path, SLC_NOWHERE, reader->section->offset);
    }
    for (uint64_t done = 0, more; done < bytes && status == SLC_OK; done += more) {
        if (reader->used == reader->held) {
            status = load_buffer(reader, &reader->fault);
        }
        more = status == SLC_OK ? slc_min_u64(bytes - done, reader->held - reader->used) : 0;
        memcpy(to + done, reader->buffer + reader->used, more);
        reader->used += more;
        reader->returned += more;
    }
    if (status != SLC_OK) {
        memset(to, 0, bytes);
    }
}

uint64_t slc_checkpoint_get_u64(struct slc_checkpoint_reader *reader)
{
    uint8_t bytes[8];

    slc_checkpoint_get(reader, bytes, sizeof bytes);
    return slc_load_u64(bytes);
}

double slc_checkpoint_get_f64(struct slc_checkpoint_reader *reader)
{
    uint8_t bytes[8];

    slc_checkpoint_get(reader, bytes, sizeof bytes);
    return slc_load_f64(bytes);
}

enum slc_status slc_checkpoint_end(struct slc_checkpoint_reader *reader, struct slc_error *err)
{
    if (reader->fault.status == SLC_OK && reader->returned != reader->section->bytes) {
        (void)slc_fail(&reader->fault, SLC_ERR_FORMAT, "section '%s' of the checkpoint is too long",
                       reader->section->name);
        slc_error_locate_block(&reader->fault, reader->path, SLC_NOWHERE, reader->section->offset);
    }
    if (reader->fault.status == SLC_OK && finish_section(reader, &reader->fault) == SLC_OK) {
        return SLC_OK;
    }
    return slc_error_pass(err, &reader->fault);
}
