/* Writes the names of a mode (storage/manifest/names.h). */
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/file/output.h"
#include "storage/manifest/names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct slc_names_writer {
    struct slc_output output;
    struct slc_hash_stream hash; /* hash of all bytes written */
    unsigned mode;
    uint64_t count;
    uint64_t offset;  /* bytes written */
    uint64_t largest; /* bytes of the largest piece so far */
    /* The piece that is being filled: end offsets and names are in separate arrays. */
    uint32_t in_piece;
    uint32_t used; /* bytes of the names in the piece */
    uint8_t ends[SLC_NAMES_ENDS_BYTES];
    uint8_t *bytes;
    uint32_t capacity; /* capacity of `bytes` */
    /* Table entries of the pieces so far, as stored in the file. */
    uint8_t *table;
    uint64_t pieces, table_capacity;
};

void slc_names_file(unsigned mode, char file[SLC_STORE_FILE_BYTES])
{
    (void)snprintf(file, SLC_STORE_FILE_BYTES, "names-%u.bin", mode + 1);
}

void slc_names_encode_head(unsigned mode, uint8_t head[SLC_NAMES_HEAD_BYTES])
{
    memset(head, 0, SLC_NAMES_HEAD_BYTES);
    memcpy(head + SLC_NAMES_HEAD_MAGIC, SLC_NAMES_MAGIC, sizeof SLC_NAMES_MAGIC - 1);
    slc_store_u32(head + SLC_NAMES_HEAD_MODE, mode);
    slc_store_u32(head + SLC_NAMES_HEAD_PIECE, SLC_NAMES_PIECE);
}

uint64_t slc_names_memory_bytes(uint64_t count)
{
    /* Count the names of a piece and the table twice: when either grows (by half), it is copied,
     * and the old and the new memory exist together. */
    return 2 * (SLC_NAMES_PIECE_BYTES_MAX +
                slc_div_up_u64(count, SLC_NAMES_PIECE) * SLC_NAMES_ENTRY_BYTES) +
           SLC_OUTPUT_BUFFER_BYTES;
}

static enum slc_status append_bytes(struct slc_names_writer *writer,
                                    const void *data,
                                    uint64_t bytes,
                                    struct slc_error *err)
{
    const uint8_t *from = data;
    enum slc_status status = SLC_OK;

    slc_hash_stream_add(&writer->hash, data, bytes);
    writer->offset += bytes;
    while (bytes > 0 && status == SLC_OK) {
        const size_t now = (size_t)slc_min_u64(bytes, SLC_OUTPUT_BUFFER_BYTES);
        uint8_t *capacity;

        status = slc_output_reserve(&writer->output, now, &capacity, err);
        if (status == SLC_OK) {
            memcpy(capacity, from, now);
            writer->output.used += now;
        }
        from += now;
        bytes -= now;
    }
    return status;
}

enum slc_status slc_names_writer_open(const struct slc_files *files,
                                      const char *folder,
                                      unsigned mode,
                                      struct slc_names_writer **writer,
                                      struct slc_error *err)
{
    struct slc_names_writer *w = slc_calloc(1, sizeof *w);
    uint8_t head[SLC_NAMES_HEAD_BYTES];
    char file[SLC_STORE_FILE_BYTES];

    assert(mode < SLC_MAX_ORDER);
    slc_names_file(mode, file);
    char *path = w != NULL ? slc_path_join(folder, file) : NULL;
    if (path == NULL) {
        slc_free(w);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for writing the names of mode %u",
                        mode + 1);
    }
    enum slc_status status = slc_output_open(&w->output, files, path, err);
    slc_free(path);
    if (status != SLC_OK) {
        slc_free(w);
        return status;
    }
    w->mode = mode;
    slc_hash_stream_begin(&w->hash);
    slc_names_encode_head(mode, head);
    status = append_bytes(w, head, sizeof head, err);
    if (status != SLC_OK) {
        slc_names_writer_abandon(w);
        return status;
    }
    *writer = w;
    return SLC_OK;
}

static void release_writer(struct slc_names_writer *writer)
{
    slc_free(writer->bytes);
    slc_free(writer->table);
    slc_free(writer);
}

void slc_names_writer_abandon(struct slc_names_writer *writer)
{
    if (writer != NULL) {
        slc_output_abandon(&writer->output);
        release_writer(writer);
    }
}

/* Reserves memory for one more table entry. */
static enum slc_status grow_table(struct slc_names_writer *writer, struct slc_error *err)
{
    uint64_t capacity = writer->table_capacity + writer->table_capacity / 2 + 64;

    if (writer->pieces < writer->table_capacity) {
        return SLC_OK;
    }
    uint8_t *table = slc_realloc(writer->table, capacity * SLC_NAMES_ENTRY_BYTES);
    SLC_TRY(slc_check_memory(table != NULL, err, "for the names of mode %u", writer->mode + 1));
    writer->table = table;
    writer->table_capacity = capacity;
    return SLC_OK;
}

/* Writes the piece that is being filled, if it has any names. */
static enum slc_status end_piece(struct slc_names_writer *writer, struct slc_error *err)
{
    const uint64_t ends_bytes = 4 * (uint64_t)writer->in_piece;
    struct slc_hash_stream hash;

    if (writer->in_piece == 0) {
        return SLC_OK;
    }
    SLC_TRY(grow_table(writer, err));
    slc_hash_stream_begin(&hash);
    slc_hash_stream_add(&hash, writer->ends, ends_bytes);
    slc_hash_stream_add(&hash, writer->bytes, writer->used);
    uint8_t *entry = writer->table + writer->pieces * SLC_NAMES_ENTRY_BYTES;
    slc_store_u64(entry + SLC_NAMES_ENTRY_OFFSET, writer->offset);
    slc_store_u64(entry + SLC_NAMES_ENTRY_HASH, slc_hash_stream_end(&hash));
    writer->pieces++;
    writer->largest = slc_max_u64(writer->largest, ends_bytes + writer->used);
    enum slc_status status = append_bytes(writer, writer->ends, ends_bytes, err);
    SLC_THEN(status, append_bytes(writer, writer->bytes, writer->used, err));
    writer->in_piece = 0;
    writer->used = 0;
    return status;
}

/* Reserves memory for a name of `bytes` bytes in the piece. */
static enum slc_status
grow_bytes(struct slc_names_writer *writer, uint32_t bytes, struct slc_error *err)
{
    uint32_t capacity = writer->used + bytes + writer->used / 2 + 4096;

    if (writer->capacity - writer->used >= bytes) {
        return SLC_OK;
    }
    uint8_t *memory = slc_realloc(writer->bytes, capacity);
    SLC_TRY(slc_check_memory(memory != NULL, err, "for the names of mode %u", writer->mode + 1));
    writer->bytes = memory;
    writer->capacity = capacity;
    return SLC_OK;
}

enum slc_status slc_names_writer_add(struct slc_names_writer *writer,
                                     const char *name,
                                     size_t bytes,
                                     struct slc_error *err)
{
    if (bytes > SLC_NAME_BYTES_MAX) {
        return slc_fail(err, SLC_ERR_INPUT, "a name has %zu bytes; at most %d are possible", bytes,
                        (int)SLC_NAME_BYTES_MAX);
    }
    if (!slc_name_is_possible(name, bytes)) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "a name of mode %u contains a zero byte, which is not allowed",
                        writer->mode + 1);
    }
    SLC_TRY(grow_bytes(writer, (uint32_t)bytes, err));
    if (bytes > 0) {
        memcpy(writer->bytes + writer->used, name, bytes);
    }
    writer->used += (uint32_t)bytes;
    slc_store_u32(writer->ends + 4 * (size_t)writer->in_piece, writer->used);
    writer->in_piece++;
    writer->count++;
    return writer->in_piece == SLC_NAMES_PIECE ? end_piece(writer, err) : SLC_OK;
}

uint64_t slc_names_writer_count(const struct slc_names_writer *writer)
{
    return writer->count;
}

/* Writes the table and the trailer. */
static enum slc_status end_file(struct slc_names_writer *writer, struct slc_error *err)
{
    uint8_t tail[SLC_NAMES_TAIL_BYTES] = {0};
    enum slc_status status = end_piece(writer, err);

    slc_store_u64(tail + SLC_NAMES_TAIL_COUNT, writer->count);
    slc_store_u64(tail + SLC_NAMES_TAIL_TABLE, writer->offset);
    slc_store_u64(tail + SLC_NAMES_TAIL_LARGEST, writer->largest);
    SLC_TRY(status);
    SLC_TRY(append_bytes(writer, writer->table, writer->pieces * SLC_NAMES_ENTRY_BYTES, err));
    return append_bytes(writer, tail, sizeof tail, err);
}

enum slc_status slc_names_writer_finish(struct slc_names_writer *writer,
                                        struct slc_store_names *listed,
                                        struct slc_error *err)
{
    enum slc_status status = end_file(writer, err);

    if (status != SLC_OK) {
        slc_names_writer_abandon(writer);
        return status;
    }
    *listed = (struct slc_store_names){.mode = writer->mode,
                                       .count = writer->count,
                                       .file_bytes = writer->offset,
                                       .hash = slc_hash_stream_end(&writer->hash)};
    slc_names_file(writer->mode, listed->file);
    status = slc_output_commit(&writer->output, err);
    release_writer(writer);
    return status;
}
