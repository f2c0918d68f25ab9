/* Row source of a binary tensor. The data of a piece is a range of nonzeros, copied from one band
 * after another. */
#include "convert/ingest/binary/binary.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct binary_source {
    struct slc_row_source source;
    struct slc_binary binary;
    struct slc_spool *spool; /* NULL if the bands are in a file of the caller */
    uint32_t row_bytes;
    uint64_t row; /* number of the next nonzero to deliver */
    uint64_t stored_bytes;
    uint64_t other_bytes; /* number of bytes of the input outside the rows */
};

enum slc_status slc_bytes_read(const struct slc_bytes_view *view,
                               void *data,
                               uint64_t bytes,
                               uint64_t offset,
                               struct slc_error *err)
{
    const struct slc_files *files = view->files;
    uint64_t done = 0;

    assert(bytes <= view->bytes && offset <= view->bytes - bytes);
    while (done < bytes) {
        uint64_t at = view->begin + offset + done;
        int64_t got = files->read_at(files->self, view->fd, (char *)data + done, bytes - done, at);

        if (got == -EINTR) {
            continue;
        }
        if (got < 0) {
            return slc_fail_errno(err, (int)-got, view->name, "cannot read at byte %" PRIu64, at);
        }
        if (got == 0) {
            return slc_fail_file(
                err, SLC_ERR_INPUT, view->name,
                "the file ends at byte %" PRIu64 ", but was longer when it was opened", at);
        }
        done += (uint64_t)got;
    }
    return SLC_OK;
}

/* Fills a piece with `rows` nonzeros, starting at nonzero `first`. */
static enum slc_status read_rows(const struct binary_source *self,
                                 uint64_t first,
                                 uint64_t rows,
                                 struct slc_piece *piece,
                                 struct slc_error *err)
{
    uint8_t *to = piece->buffer.data;
    enum slc_status status = SLC_OK;

    assert(rows * self->row_bytes <= SLC_PIECE_BYTES);
    for (unsigned b = 0; b < self->binary.band_count && rows > 0 && status == SLC_OK; b++) {
        const struct slc_band *band = &self->binary.bands[b];

        status = slc_bytes_read(&band->view, to, rows * band->record_bytes,
                                first * band->record_bytes, err);
        to += rows * band->record_bytes;
    }
    piece->position = 0;
    piece->bytes = rows * self->row_bytes;
    piece->lines_before = first;
    return status;
}

static enum slc_status
binary_next(struct slc_row_source *source, struct slc_piece *piece, struct slc_error *err)
{
    struct binary_source *self = (struct binary_source *)source;
    uint64_t rows = slc_min_u64(SLC_PIECE_BYTES / self->row_bytes, self->binary.nnz - self->row);
    enum slc_status status = read_rows(self, self->row, rows, piece, err);

    self->row += status == SLC_OK ? rows : 0;
    return status;
}

static enum slc_status binary_go_to(struct slc_row_source *source,
                                    uint64_t offset,
                                    uint64_t lines,
                                    struct slc_piece *piece,
                                    bool *there,
                                    struct slc_error *err)
{
    struct binary_source *self = (struct binary_source *)source;

    (void)piece;
    (void)err;
    *there = lines <= self->binary.nnz && offset == lines * self->row_bytes;
    if (*there) {
        self->row = lines;
    }
    return SLC_OK;
}

static enum slc_status binary_sample(struct slc_row_source *source,
                                     uint64_t offset,
                                     size_t bytes,
                                     struct slc_piece *piece,
                                     struct slc_error *err)
{
    const struct binary_source *self = (const struct binary_source *)source;
    uint64_t first = slc_min_u64(offset / self->row_bytes, self->binary.nnz);
    uint64_t rows = slc_min_u64(bytes / self->row_bytes, self->binary.nnz - first);

    return read_rows(self, first, rows, piece, err);
}

static enum slc_status binary_parse(const struct slc_row_source *source,
                                    const struct slc_piece *piece,
                                    size_t *position,
                                    struct slc_text_rows *rows,
                                    struct slc_error *err)
{
    const struct binary_source *self = (const struct binary_source *)source;
    uint64_t piece_rows = piece->bytes / self->row_bytes;
    uint64_t first = *position / self->row_bytes;
    uint32_t before = rows->count;
    uint32_t count =
        (uint32_t)slc_min_u64(rows->capacity - before, piece_rows - slc_min_u64(first, piece_rows));
    if (self->binary.dense) {
        uint64_t next = first;
        enum slc_status dense =
            slc_binary_decode_dense(&self->binary, piece->buffer.data, piece_rows, &next,
                                    piece->lines_before + 1, rows, err);

        rows->lines += next - first;
        *position += (size_t)(next - first) * self->row_bytes;
        slc_error_locate_file(err, self->source.name);
        return dense;
    }
    enum slc_status status = slc_binary_decode(&self->binary, piece->buffer.data, piece_rows, first,
                                               count, piece->lines_before + 1, rows, err);

    rows->lines += rows->count - before;
    *position += (size_t)(rows->count - before) * self->row_bytes;
    slc_error_locate_file(err, self->source.name);
    return status;
}

/* Adds the number of the nonzero to the message, because a binary file has no lines. */
static void binary_locate_fault(const struct slc_row_source *source,
                                uint64_t line,
                                uint64_t column,
                                struct slc_error *err)
{
    char prefix[48];

    (void)column;
    if (!err) {
        return;
    }
    size_t length = (size_t)snprintf(prefix, sizeof prefix, "nonzero %" PRIu64 ": ", line);
    size_t kept = strlen(err->message);
    if (kept > sizeof err->message - 1 - length) {
        kept = sizeof err->message - 1 - length;
    }
    memmove(err->message + length, err->message, kept);
    memcpy(err->message, prefix, length);
    err->message[length + kept] = '\0';
    slc_error_locate_file(err, source->name);
}

static uint64_t binary_lines(const struct slc_row_source *source)
{
    return ((const struct binary_source *)source)->row;
}

static uint64_t binary_consumed(const struct slc_row_source *source)
{
    const struct binary_source *self = (const struct binary_source *)source;

    return self->spool ? self->stored_bytes : self->other_bytes + self->row * self->row_bytes;
}

static void binary_close(struct slc_row_source *source)
{
    struct binary_source *self = (struct binary_source *)source;

    slc_spool_destroy(self->spool);
    slc_free(self);
}

enum slc_status slc_binary_source_open(const struct slc_binary *binary,
                                       struct slc_spool *spool,
                                       const char *name,
                                       uint64_t stored_bytes,
                                       const struct slc_text_header *header,
                                       struct slc_row_source **source,
                                       struct slc_error *err)
{
    static const struct slc_row_source_ops ops = {
        .next = binary_next,
        .go_to = binary_go_to,
        .sample = binary_sample,
        .parse = binary_parse,
        .locate_fault = binary_locate_fault,
        .lines = binary_lines,
        .consumed = binary_consumed,
        .close = binary_close,
    };
    struct binary_source *self = slc_calloc(1, sizeof *self);

    *source = NULL;
    if (!self) {
        slc_spool_destroy(spool);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to read the input");
    }
    self->source = (struct slc_row_source){.ops = &ops, .name = name, .header = header};
    self->binary = *binary;
    self->spool = spool;
    self->row_bytes = slc_binary_row_bytes(binary);
    uint64_t rows_bytes = binary->nnz * self->row_bytes;
    self->source.sampled_bytes = rows_bytes;
    self->stored_bytes = stored_bytes;
    self->other_bytes = stored_bytes - slc_min_u64(rows_bytes, stored_bytes);
    *source = &self->source;
    return SLC_OK;
}
