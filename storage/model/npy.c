/* Reads and writes .npy matrices through a bounded buffer, so that a factor of any size needs no
 * second copy. npy_header.c parses the header. */
#include "storage/model/npy.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/file/output.h"
#include "storage/model/npy_header.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SCRATCH_BYTES = 256 * 1024,
    /* Largest number of columns: far above any rank, and small enough for a 32-bit row pitch. */
    MAX_COLS = 1 << 30
};

static enum slc_status write_header(struct slc_output *output,
                                    enum slc_value_type type,
                                    unsigned dimensions,
                                    uint64_t rows,
                                    uint64_t cols,
                                    struct slc_error *err)
{
    const struct slc_npy_header header = {.kind = 'f',
                                          .item_bytes = (uint8_t)slc_value_bytes(type),
                                          .dimensions = dimensions,
                                          .shape = {rows, cols}};
    uint8_t *space;

    SLC_TRY(slc_output_reserve(output, SLC_NPY_STORED_BYTES, &space, err));
    slc_npy_header_store(&header, space);
    output->used += SLC_NPY_STORED_BYTES;
    return SLC_OK;
}

/* Appends `count` consecutive elements at `values`, little-endian. */
static enum slc_status write_values(struct slc_output *output,
                                    enum slc_value_type type,
                                    const void *values,
                                    uint64_t count,
                                    struct slc_error *err)
{
    uint32_t item = slc_value_bytes(type);
    const uint8_t *at = values;

    while (count > 0) {
        size_t items = (size_t)slc_min_u64(count, SLC_OUTPUT_BUFFER_BYTES / 8);
        uint8_t *space;

        SLC_TRY(slc_output_reserve(output, items * item, &space, err));
        for (size_t i = 0; i < items; i++, at += item, space += item) {
            if (type == SLC_F32) {
                float value;
                memcpy(&value, at, sizeof value);
                slc_store_f32(space, value);
            } else {
                double value;
                memcpy(&value, at, sizeof value);
                slc_store_f64(space, value);
            }
        }
        output->used += items * item;
        count -= items;
    }
    return SLC_OK;
}

enum slc_status slc_npy_write(const struct slc_files *files,
                              const char *path,
                              const struct slc_matrix *matrix,
                              struct slc_error *err)
{
    uint64_t pitch_bytes = (uint64_t)matrix->pitch * slc_value_bytes(matrix->type);
    const uint8_t *data = matrix->buffer.data;
    struct slc_output output;

    SLC_TRY(slc_output_open(&output, files, path, err));
    enum slc_status status =
        write_header(&output, matrix->type, 2, matrix->rows, matrix->cols, err);
    for (uint64_t row = 0; row < matrix->rows && status == SLC_OK; row++) {
        status = write_values(&output, matrix->type, data + row * pitch_bytes, matrix->cols, err);
    }
    if (status != SLC_OK) {
        slc_output_abandon(&output);
        return status;
    }
    return slc_output_commit(&output, err);
}

enum slc_status slc_npy_write_vector(const struct slc_files *files,
                                     const char *path,
                                     const double *values,
                                     uint64_t count,
                                     struct slc_error *err)
{
    struct slc_output output;

    SLC_TRY(slc_output_open(&output, files, path, err));
    enum slc_status status = write_header(&output, SLC_F64, 1, count, 1, err);
    SLC_THEN(status, write_values(&output, SLC_F64, values, count, err));
    if (status != SLC_OK) {
        slc_output_abandon(&output);
        return status;
    }
    return slc_output_commit(&output, err);
}

/* An open .npy file whose header has been read. */
struct slc_npy_rows {
    const struct slc_files *files;
    char *path;
    int fd;
    uint64_t file_bytes;
    uint64_t data_offset;
    struct slc_npy_header header;
    uint8_t *scratch;
};

/* Reads and parses the header; `text` has SLC_NPY_MAX_HEADER bytes. */
static enum slc_status read_header(struct slc_npy_rows *source, char *text, struct slc_error *err)
{
    uint8_t start[SLC_NPY_START_BYTES] = {0};
    uint64_t have = slc_min_u64(source->file_bytes, sizeof start);
    uint32_t text_offset;
    uint32_t text_bytes;

    SLC_TRY(slc_file_read_at(source->files, source->fd, source->path, start, have, 0, err));
    SLC_TRY(slc_npy_start_parse(start, have, &text_offset, &text_bytes, err));
    source->data_offset = (uint64_t)text_offset + text_bytes;
    if (source->data_offset > source->file_bytes) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the .npy header ends at byte %" PRIu64
                        ", but the file ends at byte %" PRIu64,
                        source->data_offset, source->file_bytes);
    }
    SLC_TRY(slc_file_read_at(source->files, source->fd, source->path, text, text_bytes, text_offset,
                             err));
    return slc_npy_header_parse(text, text_bytes, &source->header, err);
}

/* Compares the shape with the expected shape and with the file size. */
static enum slc_status check_shape(const struct slc_npy_rows *source,
                                   uint64_t expect_rows,
                                   uint32_t expect_cols,
                                   struct slc_error *err)
{
    const struct slc_npy_header *header = &source->header;
    uint64_t rows = header->shape[0];
    uint64_t cols = header->shape[1];
    uint64_t bytes;
    uint64_t end;

    if ((expect_rows != 0 && rows != expect_rows) || (expect_cols != 0 && cols != expect_cols)) {
        char expected_rows[24] = "any";
        char expected_cols[24] = "any";

        if (expect_rows != 0) {
            snprintf(expected_rows, sizeof expected_rows, "%" PRIu64, expect_rows);
        }
        if (expect_cols != 0) {
            snprintf(expected_cols, sizeof expected_cols, "%" PRIu32, expect_cols);
        }
        return slc_fail(err, SLC_ERR_INPUT,
                        "the matrix is %" PRIu64 " x %" PRIu64 ", but %s x %s is needed", rows,
                        cols, expected_rows, expected_cols);
    }
    if (cols == 0 || cols > MAX_COLS) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the array has %" PRIu64 " columns; 1 to %d can be read", cols, MAX_COLS);
    }
    if (!slc_mul_u64(rows, cols, &bytes) || !slc_mul_u64(bytes, header->item_bytes, &bytes) ||
        !slc_add_u64(bytes, source->data_offset, &end) || end != source->file_bytes) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "an array of %" PRIu64 " x %" PRIu64 " items of %u bytes after %" PRIu64
                        " bytes of header does not match the file size of %" PRIu64 " bytes",
                        rows, cols, header->item_bytes, source->data_offset, source->file_bytes);
    }
    return SLC_OK;
}

/* Converts one item of the file to f64. */
static double load_item(const struct slc_npy_header *header, const uint8_t *at)
{
    if (header->item_bytes == 8) {
        uint64_t bits = slc_load_u64(at);
        double value;

        bits = header->big_endian ? __builtin_bswap64(bits) : bits;
        if (header->kind == 'i') {
            return (double)(int64_t)bits;
        }
        memcpy(&value, &bits, sizeof value);
        return value;
    } else {
        uint32_t bits = slc_load_u32(at);
        float value;

        bits = header->big_endian ? __builtin_bswap32(bits) : bits;
        if (header->kind == 'i') {
            return (double)(int32_t)bits;
        }
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
}

/* Reads `count` items of the file, starting at item `first`, into `matrix` or, if `matrix` is NULL,
 * into every `stride`-th element of `values`. */
static enum slc_status read_items(const struct slc_npy_rows *source,
                                  uint64_t first,
                                  uint64_t count,
                                  struct slc_matrix *matrix,
                                  double *values,
                                  uint64_t stride,
                                  struct slc_error *err)
{
    const struct slc_npy_header *header = &source->header;
    const struct slc_matrix shape = {.cols = (uint32_t)header->shape[1]};
    const bool narrow = matrix != NULL && matrix->type == SLC_F32;
    const uint64_t line = header->shape[header->fortran_order ? 0 : 1];
    uint64_t major = line > 0 ? first / line : 0;
    uint64_t minor = line > 0 ? first % line : 0;

    for (uint64_t done = 0, more; done < count; done += more) {
        more = slc_min_u64(count - done, SCRATCH_BYTES / header->item_bytes);
        SLC_TRY(slc_file_read_at(source->files, source->fd, source->path, source->scratch,
                                 more * header->item_bytes,
                                 source->data_offset + (first + done) * header->item_bytes, err));
        for (uint64_t i = 0; i < more; i++) {
            const uint64_t row = header->fortran_order ? minor : major;
            const uint64_t col = header->fortran_order ? major : minor;
            const double value = load_item(header, source->scratch + i * header->item_bytes);

            if (!isfinite(narrow ? (double)(float)value : value)) {
                enum slc_status status = slc_matrix_refuse(&shape, row, col, value, err);

                slc_error_locate_file(err, source->path);
                return status;
            }
            if (matrix == NULL) {
                values[(done + i) * stride] = value;
            } else if (narrow) {
                slc_matrix_row_f32(matrix, row)[col] = (float)value;
            } else {
                slc_matrix_row_f64(matrix, row)[col] = value;
            }
            if (++minor == line) {
                minor = 0;
                major++;
            }
        }
    }
    return SLC_OK;
}

/* Reads and checks the header of the open file; `text` has SCRATCH_BYTES bytes. */
static enum slc_status read_shape(struct slc_npy_rows *source,
                                  uint64_t expect_rows,
                                  uint32_t expect_cols,
                                  uint8_t *text,
                                  struct slc_error *err)
{
    struct slc_file_stat stat;
    int rc = source->files->stat_fd(source->files->self, source->fd, &stat);

    SLC_TRY(slc_check_call(rc, err, source->path, "getting the size of the file"));
    if (stat.kind != 'f') {
        return slc_fail(err, SLC_ERR_INPUT, "not a plain file");
    }
    source->file_bytes = stat.bytes;
    SLC_TRY(read_header(source, (char *)text, err));
    return check_shape(source, expect_rows, expect_cols, err);
}

static enum slc_status open_rows(struct slc_npy_rows *rows,
                                 uint64_t expect_rows,
                                 uint32_t expect_cols,
                                 struct slc_error *err)
{
    rows->fd = slc_file_open(rows->files, rows->path, SLC_OPEN_PLAIN);
    SLC_TRY(slc_check_call(rows->fd, err, rows->path, "opening the file"));
    rows->scratch = slc_malloc(SCRATCH_BYTES); /* read_shape uses it for the header's text */
    SLC_TRY(slc_check_memory(rows->scratch != NULL, err, "for reading %s", rows->path));
    return read_shape(rows, expect_rows, expect_cols, rows->scratch, err);
}

enum slc_status slc_npy_rows_open(const struct slc_files *files,
                                  const char *path,
                                  uint64_t expect_rows,
                                  uint32_t expect_cols,
                                  struct slc_npy_rows **rows,
                                  struct slc_error *err)
{
    struct slc_npy_rows *opened = slc_calloc(1, sizeof *opened);

    *rows = NULL;
    if (opened == NULL || (opened->path = slc_strdup(path)) == NULL) {
        slc_free(opened);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for reading %s", path);
    }
    opened->files = slc_files_or_system(files);
    enum slc_status status = open_rows(opened, expect_rows, expect_cols, err);
    if (status != SLC_OK) {
        slc_error_locate_file(opened->fd >= 0 ? err : NULL, path);
        slc_npy_rows_close(opened);
        return status;
    }
    *rows = opened;
    return SLC_OK;
}

void slc_npy_rows_close(struct slc_npy_rows *rows)
{
    if (rows != NULL) {
        if (rows->fd >= 0) {
            (void)rows->files->close(rows->files->self, rows->fd);
        }
        slc_free(rows->scratch);
        slc_free(rows->path);
        slc_free(rows);
    }
}

enum slc_status slc_npy_read(const struct slc_files *files,
                             const char *path,
                             enum slc_value_type type,
                             uint64_t expect_rows,
                             uint32_t expect_cols,
                             struct slc_matrix *matrix,
                             struct slc_error *err)
{
    struct slc_matrix read = {.rows = 0};
    struct slc_npy_rows *rows;

    memset(matrix, 0, sizeof *matrix);
    SLC_TRY(slc_npy_rows_open(files, path, expect_rows, expect_cols, &rows, err));
    const uint64_t *shape = rows->header.shape;
    enum slc_status status = slc_matrix_create(&read, type, shape[0], (uint32_t)shape[1], err);
    SLC_THEN(status, read_items(rows, 0, shape[0] * shape[1], &read, NULL, 0, err));
    slc_npy_rows_close(rows);
    if (status == SLC_OK) {
        *matrix = read;
    } else {
        slc_error_locate_file(err, path);
        slc_matrix_destroy(&read);
    }
    return status;
}

enum slc_status slc_npy_shape(const struct slc_files *files,
                              const char *path,
                              uint64_t expect_rows,
                              uint64_t *rows,
                              uint32_t *cols,
                              struct slc_error *err)
{
    struct slc_npy_rows *opened;
    enum slc_value_type type;

    SLC_TRY(slc_npy_rows_open(files, path, expect_rows, 0, &opened, err));
    slc_npy_rows_shape(opened, rows, cols, &type);
    slc_npy_rows_close(opened);
    return SLC_OK;
}

void slc_npy_rows_shape(const struct slc_npy_rows *rows,
                        uint64_t *count,
                        uint32_t *cols,
                        enum slc_value_type *type)
{
    *count = rows->header.shape[0];
    *cols = (uint32_t)rows->header.shape[1];
    *type = rows->header.kind == 'f' && rows->header.item_bytes == 4 ? SLC_F32 : SLC_F64;
}

enum slc_status slc_npy_rows_read(struct slc_npy_rows *rows,
                                  uint64_t first,
                                  uint64_t count,
                                  double *values,
                                  struct slc_error *err)
{
    const struct slc_npy_header *header = &rows->header;
    const uint64_t cols = header->shape[1];

    assert(first <= header->shape[0] && count <= header->shape[0] - first);
    if (!header->fortran_order) {
        return read_items(rows, first * cols, count * cols, NULL, values, 1, err);
    }
    for (uint64_t col = 0; col < cols; col++) {
        SLC_TRY(
            read_items(rows, col * header->shape[0] + first, count, NULL, values + col, cols, err));
    }
    return SLC_OK;
}
