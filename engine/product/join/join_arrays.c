/* Joins .npy files: copies the rows of all parts, in the order of the parts. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "engine/product/join/join_internal.h"
#include "engine/product/npy_pair.h"
#include "storage/file/output.h"
#include "storage/manifest/path_guard.h"
#include "storage/model/npy.h"
#include "storage/model/npy_header.h"

#include <inttypes.h>
#include <string.h>

enum {
    /* Bytes that are copied at once, unless a row is longer. */
    BATCH_BYTES = SLC_OUTPUT_BUFFER_BYTES,
    /* Bytes of a buffer of the pair. */
    PAIR_BUFFER_BYTES = 1 << 20
};

/* Receives `count` consecutive rows; the first is row `first` of the result. */
typedef enum slc_status sink_fn(void *context,
                                uint64_t first,
                                uint64_t count,
                                uint64_t row_bytes,
                                const void *rows,
                                struct slc_error *err);

static enum slc_status sink_coords(void *context,
                                   uint64_t first,
                                   uint64_t count,
                                   uint64_t row_bytes,
                                   const void *rows,
                                   struct slc_error *err)
{
    (void)row_bytes;
    return slc_npy_pair_write_coords(context, first, count, rows, err);
}

static enum slc_status sink_rows(void *context,
                                 uint64_t first,
                                 uint64_t count,
                                 uint64_t row_bytes,
                                 const void *rows,
                                 struct slc_error *err)
{
    return slc_npy_pair_write_rows(context, first, count, rows, row_bytes, err);
}

static enum slc_status sink_output(void *context,
                                   uint64_t first,
                                   uint64_t count,
                                   uint64_t row_bytes,
                                   const void *rows,
                                   struct slc_error *err)
{
    struct slc_output *output = context;
    uint8_t *space;

    (void)first;
    for (uint64_t done = 0, bytes; done < count * row_bytes; done += bytes) {
        bytes = slc_min_u64(count * row_bytes - done, SLC_OUTPUT_BUFFER_BYTES);
        SLC_TRY(slc_output_reserve(output, bytes, &space, err));
        memcpy(space, (const char *)rows + done, bytes);
        output->used += bytes;
    }
    return SLC_OK;
}

/* The files of one kind, and where their rows go. */
struct copying {
    const struct slc_joining *joining;
    const char *name; /* of the file in the folder of a part; NULL: the part is the file */
    uint32_t cols;
    uint64_t row_bytes;
    sink_fn *sink;
    void *context;
};

/* Sets *path to the file of part `i`. Ownership: release with slc_free. */
static enum slc_status
file_path(const struct copying *copying, unsigned i, char **path, struct slc_error *err)
{
    const char *part = copying->joining->paths[i];

    *path = copying->name != NULL ? slc_path_join(part, copying->name) : slc_strdup(part);
    return slc_check_memory(*path != NULL, err, "for a path");
}

/* Sets *rows to the number of rows of a file. */
static enum slc_status
count_rows(const struct copying *copying, unsigned i, uint64_t *rows, struct slc_error *err)
{
    const struct slc_part *part = &copying->joining->parts[i];
    const struct slc_files *files = slc_files_or_system(copying->joining->options->files);
    struct slc_file_stat stat = {.bytes = 0};
    uint32_t cols = 0;
    char *path;

    SLC_TRY(file_path(copying, i, &path, err));
    enum slc_status status = slc_npy_shape(files, path, 0, rows, &cols, err);
    if (status == SLC_OK && (files->stat_path(files->self, path, &stat) != 0 ||
                             cols != copying->cols || (part->empty && *rows > 0) ||
                             stat.bytes != SLC_NPY_STORED_BYTES + *rows * copying->row_bytes)) {
        status = slc_fail_file(err, SLC_ERR_INPUT, path,
                               "this file of %" PRIu64 " x %" PRIu32 " numbers is not the one that "
                               "was written for this part: compute the part again",
                               *rows, cols);
    }
    slc_free(path);
    return status;
}

static enum slc_status copy_open(const struct copying *copying,
                                 int fd,
                                 const char *path,
                                 uint64_t first,
                                 uint64_t rows,
                                 char *batch,
                                 struct slc_error *err)
{
    const struct slc_join_options *options = copying->joining->options;
    const uint64_t most = slc_max_u64(BATCH_BYTES / copying->row_bytes, 1);
    const struct slc_files *files = slc_files_or_system(options->files);

    for (uint64_t done = 0, count; done < rows; done += count) {
        count = slc_min_u64(rows - done, most);
        SLC_TRY(slc_stop_check(options->stop, err));
        SLC_TRY(slc_file_read_at(files, fd, path, batch, count * copying->row_bytes,
                                 SLC_NPY_STORED_BYTES + done * copying->row_bytes, err));
        SLC_TRY(
            copying->sink(copying->context, first + done, count, copying->row_bytes, batch, err));
    }
    return SLC_OK;
}

/* Copies the files of all parts. */
static enum slc_status copy_files(const struct copying *copying, struct slc_error *err)
{
    const struct slc_joining *joining = copying->joining;
    const struct slc_files *files = slc_files_or_system(joining->options->files);
    char *batch = slc_malloc(slc_max_u64(BATCH_BYTES, copying->row_bytes));
    enum slc_status status = slc_check_memory(batch != NULL, err, "to copy rows");
    uint64_t first = 0;

    for (unsigned i = 0; i < joining->count && status == SLC_OK; i++) {
        uint64_t rows = 0;
        char *path = NULL;

        status = count_rows(copying, i, &rows, err);
        SLC_THEN(status, file_path(copying, i, &path, err));
        if (status == SLC_OK) {
            const int fd = slc_file_open(files, path, 0);

            status = slc_check_call(fd, err, path, "opening the file");
            SLC_THEN(status, copy_open(copying, fd, path, first, rows, batch, err));
            if (fd >= 0) {
                (void)files->close(files->self, fd);
            }
        }
        slc_free(path);
        first += rows;
        if (status == SLC_OK && joining->options->progress != NULL) {
            joining->options->progress(joining->options->context, "copy", i + 1, joining->count);
        }
    }
    slc_free(batch);
    return status;
}

/* Adds up the rows of all parts. */
static enum slc_status add_rows(const struct copying *copying, struct slc_error *err)
{
    struct slc_join_report *report = copying->joining->report;

    report->rows = 0;
    for (unsigned i = 0; i < copying->joining->count; i++) {
        uint64_t rows;

        SLC_TRY(count_rows(copying, i, &rows, err));
        report->rows += rows;
    }
    return SLC_OK;
}

/* Sets the columns of the result and the type of its numbers, from the record of the parts. */
static enum slc_status
read_shape(const struct slc_joining *joining, enum slc_value_type *type, struct slc_error *err)
{
    uint64_t cols, bits;

    SLC_TRY(slc_join_number(joining, "columns", UINT32_MAX, &cols, err));
    SLC_TRY(slc_join_number(joining, "bits", 64, &bits, err));
    joining->report->cols = (uint32_t)cols;
    *type = bits == 32 ? SLC_F32 : SLC_F64;
    return SLC_OK;
}

enum slc_status slc_join_fibers(struct slc_joining *joining, struct slc_error *err)
{
    const struct slc_join_options *options = joining->options;
    struct slc_npy_pair_options output = {.files = options->files,
                                          .folder = options->output,
                                          .buffer_bytes = PAIR_BUFFER_BYTES,
                                          .coord_buffers = SLC_OUTPUT_RING_BUFFERS_MIN,
                                          .row_buffers = SLC_OUTPUT_RING_BUFFERS_MIN};
    struct slc_npy_pair *pair = NULL;
    uint64_t modes;

    SLC_TRY(read_shape(joining, &output.type, err));
    SLC_TRY(slc_join_number(joining, "other modes", SLC_MAX_ORDER, &modes, err));
    output.modes = (unsigned)modes;
    output.cols = joining->report->cols;
    struct copying coords = {.joining = joining,
                             .name = SLC_PAIR_COORDS,
                             .cols = output.modes,
                             .row_bytes = modes * sizeof(int64_t),
                             .sink = sink_coords};
    struct copying rows = {.joining = joining,
                           .name = SLC_PAIR_ROWS,
                           .cols = output.cols,
                           .row_bytes = output.cols * (uint64_t)slc_value_bytes(output.type),
                           .sink = sink_rows};
    SLC_TRY(add_rows(&coords, err));
    const uint64_t fibers = joining->report->rows;
    SLC_TRY(add_rows(&rows, err));
    if (joining->report->rows != fibers) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the parts have %" PRIu64 " coordinates and %" PRIu64
                        " rows: compute them again",
                        fibers, joining->report->rows);
    }
    SLC_TRY(slc_npy_pair_create(&output, &pair, err));
    coords.context = pair;
    rows.context = pair;
    enum slc_status status = copy_files(&coords, err);
    SLC_THEN(status, copy_files(&rows, err));
    SLC_THEN(status, slc_npy_pair_finish(pair, fibers, err));
    SLC_THEN(status, slc_npy_pair_publish(pair, err));
    slc_npy_pair_destroy(pair);
    return status;
}

enum slc_status slc_join_rows(struct slc_joining *joining, struct slc_error *err)
{
    struct copying rows = {.joining = joining, .sink = sink_output};
    struct slc_npy_header header = {.kind = 'f', .dimensions = 2};
    struct slc_output output;
    enum slc_value_type type;
    uint8_t *space;
    uint64_t wanted;

    SLC_TRY(read_shape(joining, &type, err));
    SLC_TRY(slc_join_number(joining, "rows", UINT64_MAX, &wanted, err));
    rows.cols = joining->report->cols;
    rows.row_bytes = rows.cols * (uint64_t)slc_value_bytes(type);
    SLC_TRY(add_rows(&rows, err));
    if (joining->report->rows != wanted) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the parts have %" PRIu64 " rows instead of %" PRIu64
                        ": compute them again",
                        joining->report->rows, wanted);
    }
    header.item_bytes = (uint8_t)slc_value_bytes(type);
    header.shape[0] = wanted;
    header.shape[1] = rows.cols;
    SLC_TRY(slc_check_own_form(slc_files_or_system(joining->options->files),
                               joining->options->output, SLC_NPY_MAGIC, "a .npy file", err));
    SLC_TRY(slc_output_open(&output, joining->options->files, joining->options->output, err));
    rows.context = &output;
    enum slc_status status = slc_output_reserve(&output, SLC_NPY_STORED_BYTES, &space, err);
    if (status == SLC_OK) {
        slc_npy_header_store(&header, space);
        output.used += SLC_NPY_STORED_BYTES;
        status = copy_files(&rows, err);
    }
    if (status != SLC_OK) {
        slc_output_abandon(&output);
        return status;
    }
    return slc_output_commit(&output, err);
}
