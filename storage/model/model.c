/* Reads and writes Kruskal models as .npy files, and has functions that all file formats share. */
#include "storage/model/model.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/manifest/path_guard.h"
#include "storage/model/model_forms.h"
#include "storage/model/npy.h"
#include "storage/model/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes read at a time for hashing, enough to make the cost of a system call negligible. */
enum { HASH_BYTES = 256 * 1024 };

static enum slc_status write_npy(const struct slc_files *files,
                                 const char *folder,
                                 const struct slc_model_view *model,
                                 struct slc_error *err)
{
    int rc = files->make_folder(files->self, folder);
    enum slc_status status = SLC_OK;
    char *path;

    if (rc < 0 && rc != -EEXIST) {
        return slc_fail_errno(err, -rc, folder, "creating the folder");
    }
    /* Sync the name of an existing folder, too: a killed run may have created it without a sync. */
    status = slc_name_sync(files, folder, err);
    for (unsigned mode = 0; mode < model->order && status == SLC_OK; mode++) {
        path = slc_run_folder_factor(folder, mode);
        status = slc_check_memory(path != NULL, err, "for the path of a model's file");
        SLC_THEN(status, slc_npy_write(files, path, model->factors[mode], err));
        slc_free(path);
    }
    if (status == SLC_OK) {
        path = slc_path_join(folder, "lambda.npy");
        status = slc_check_memory(path != NULL, err, "for the path of a model's file");
        SLC_THEN(status, slc_npy_write_vector(files, path, model->lambda, model->rank, err));
        slc_free(path);
    }
    return status;
}

/* Rejects a path in the folder of a store, because a model there would damage the store. */
static enum slc_status check_place(const struct slc_files *files,
                                   enum slc_model_form form,
                                   const char *path,
                                   unsigned order,
                                   struct slc_error *err)
{
    if (form != SLC_MODEL_SPLATT) {
        return slc_check_outside_stores(files, path, err);
    }
    char *first = slc_model_path(form, path, order, order);
    enum slc_status status = slc_check_memory(first != NULL, err, "for the path of a model's file");
    SLC_THEN(status, slc_check_parent_outside_stores(files, first, err));
    slc_free(first);
    return status;
}

unsigned slc_model_files(enum slc_model_form form, unsigned order)
{
    return form == SLC_MODEL_KTENSOR || form == SLC_MODEL_MATLAB ? 1 : order + 1;
}

char *slc_model_path(enum slc_model_form form, const char *path, unsigned order, unsigned file)
{
    const char *const ending = form == SLC_MODEL_NPY      ? ".npy"
                               : form == SLC_MODEL_SPLATT ? ".mat"
                                                          : ".csv";
    const char *const dash = form == SLC_MODEL_SPLATT ? "" : "-";
    const size_t length = strlen(path);
    char name[32];

    if (slc_model_files(form, order) == 1) {
        return slc_strdup(path);
    }
    (void)snprintf(name, sizeof name, "lambda%s", ending);
    if (file < order) {
        (void)snprintf(name, sizeof name, "mode%s%u%s", dash, file + 1, ending);
    }
    if (form != SLC_MODEL_SPLATT) {
        return slc_path_join(path, name);
    }
    char *joined = slc_malloc(length + sizeof name);
    if (joined != NULL) {
        memcpy(joined, path, length);
        memcpy(joined + length, name, sizeof name);
    }
    return joined;
}

uint64_t slc_model_length(const struct slc_model_view *model, unsigned mode)
{
    uint64_t rows;
    uint32_t cols;
    enum slc_value_type type;

    if (model->factors[mode] != NULL) {
        return model->factors[mode]->rows;
    }
    slc_npy_rows_shape(model->files[mode], &rows, &cols, &type);
    return rows;
}

enum slc_value_type slc_model_type(const struct slc_model_view *model, unsigned mode)
{
    uint64_t rows;
    uint32_t cols;
    enum slc_value_type type;

    if (model->factors[mode] != NULL) {
        return model->factors[mode]->type;
    }
    slc_npy_rows_shape(model->files[mode], &rows, &cols, &type);
    return type;
}

enum slc_status slc_model_rows(const struct slc_model_view *model,
                               unsigned mode,
                               uint64_t first,
                               uint64_t count,
                               double *values,
                               struct slc_error *err)
{
    const struct slc_matrix *factor = model->factors[mode];
    struct slc_model_work *work = model->work;

    if (work != NULL && slc_stop_check(work->stop, err) != SLC_OK) {
        return SLC_ERR_INTERRUPTED;
    }
    if (work != NULL && work->progress != NULL) {
        work->done = slc_min_u64(work->done + count * model->rank, work->total);
        work->progress(work->context, "export", work->done, work->total);
    }
    if (factor == NULL) {
        return slc_npy_rows_read(model->files[mode], first, count, values, err);
    }
    for (uint64_t row = first; row < first + count; row++) {
        for (uint32_t col = 0; col < model->rank; col++) {
            *values++ = slc_matrix_get(factor, row, col);
        }
    }
    return SLC_OK;
}

enum slc_status slc_model_write(const struct slc_files *files,
                                enum slc_model_form form,
                                const char *path,
                                const struct slc_model_view *model,
                                struct slc_error *err)
{
    files = slc_files_or_system(files);
    SLC_TRY(check_place(files, form, path, model->order, err));
    if (form == SLC_MODEL_NPY) {
        return write_npy(files, path, model, err);
    }
    return form == SLC_MODEL_MATLAB ? slc_model_write_matlab(files, path, model, err)
                                    : slc_model_write_text(files, form, path, model, err);
}

enum slc_status slc_model_file_find(const struct slc_files *files,
                                    const char *path,
                                    bool *found,
                                    struct slc_error *err)
{
    *found = false;
    SLC_TRY(slc_check_memory(path != NULL, err, "for the path of a model's file"));
    const int fd = slc_file_open(files, path, SLC_OPEN_PLAIN);

    *found = fd >= 0;
    if (fd >= 0) {
        (void)files->close(files->self, fd);
    }
    return fd >= 0 || fd == -ENOENT || fd == -ENOTDIR
               ? SLC_OK
               : slc_fail_errno(err, -fd, path, "looking for the results");
}

/* Finds the file at `path` and frees the path. */
static enum slc_status
open_file(const struct slc_files *files, char *path, bool *found, struct slc_error *err)
{
    const enum slc_status status = slc_model_file_find(files, path, found, err);

    slc_free(path);
    return status;
}

/* Opens all files of the model; *recorded is true if it has a run.json. */
static enum slc_status
open_files(const struct slc_files *files, const char *folder, bool *recorded, struct slc_error *err)
{
    bool found;

    SLC_TRY(open_file(files, slc_path_join(folder, "run.json"), recorded, err));
    SLC_TRY(open_file(files, slc_path_join(folder, "lambda.npy"), &found, err));
    found = true;
    for (unsigned mode = 0; mode < SLC_MAX_ORDER && found; mode++) {
        SLC_TRY(open_file(files, slc_run_folder_factor(folder, mode), &found, err));
    }
    return SLC_OK;
}

enum slc_status slc_model_hold(const struct slc_files *files,
                               const char *folder,
                               struct slc_held_folder **held,
                               struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    bool recorded = false, changed = true;

    *held = NULL;
    for (unsigned k = 0; k < SLC_HELD_ATTEMPTS && changed && status == SLC_OK; k++) {
        bool record = false;

        slc_held_folder_close(*held);
        *held = NULL;
        status = slc_held_folder_open(files, folder, held, err);
        SLC_THEN(status, open_files(slc_held_folder_files(*held), folder, &record, err));
        /* A run removes run.json before it replaces the first factor, and writes it last. */
        changed =
            status == SLC_OK && (slc_held_folder_changed(*held, NULL) || (recorded && !record));
        recorded = recorded || record;
    }
    if (status == SLC_OK && changed) {
        status = slc_fail_file(err, SLC_ERR_IO, folder,
                               "another run is writing its results to this folder: try again when "
                               "it has ended");
    }
    if (status != SLC_OK) {
        slc_held_folder_close(*held);
        *held = NULL;
        return status;
    }
    slc_held_folder_seal(*held);
    return SLC_OK;
}

enum slc_status slc_model_read(const struct slc_files *files,
                               const char *folder,
                               enum slc_value_type type,
                               unsigned order,
                               const uint64_t *dims,
                               unsigned skip_mode,
                               uint32_t *rank,
                               struct slc_matrix *factors,
                               struct slc_error *err)
{
    struct slc_held_folder *held = NULL;
    enum slc_status status = SLC_OK;

    files = slc_files_or_system(files);
    memset(factors, 0, order * sizeof factors[0]);
    if (files->held == NULL || !slc_held_folder_is(files->held, folder)) {
        struct slc_error fault = SLC_ERROR_INIT;

        status = slc_model_hold(files, folder, &held, &fault);
        if (status == SLC_OK) {
            files = slc_held_folder_files(held);
        } else if (fault.system_errno != ENOENT && fault.system_errno != ENOTDIR) {
            return slc_error_pass(err, &fault);
        }
        /* A missing folder is reported as a missing factor. */
        status = SLC_OK;
    }
    for (unsigned mode = 0; mode < order && status == SLC_OK; mode++) {
        if (mode == skip_mode) {
            continue;
        }
        char *path = slc_run_folder_factor(folder, mode);
        status = slc_check_memory(path != NULL, err, "for the path of a model's file");
        SLC_THEN(status, slc_npy_read(files, path, type, dims[mode], *rank, &factors[mode], err));
        if (status == SLC_OK && factors[mode].cols > SLC_MAX_RANK) {
            status = slc_fail_file(err, SLC_ERR_INPUT, path,
                                   "the model has rank %" PRIu32 "; at most %d is supported",
                                   factors[mode].cols, SLC_MAX_RANK);
        }
        if (status == SLC_OK) {
            *rank = factors[mode].cols;
        }
        slc_free(path);
    }
    slc_held_folder_close(held);
    return status;
}

/* Checks that the file at `path` is a matrix of `rows` rows and `cols` columns. Its size then
 * matches this shape. */
static enum slc_status check_matrix(const struct slc_files *files,
                                    const char *path,
                                    uint64_t rows,
                                    uint32_t cols,
                                    struct slc_error *err)
{
    uint64_t found_rows;
    uint32_t found_cols;

    SLC_TRY(slc_npy_shape(files, path, rows, &found_rows, &found_cols, err));
    if (found_cols != cols) {
        return slc_fail_file(err, SLC_ERR_INPUT, path,
                             "the matrix is %" PRIu64 " x %" PRIu32 ", but %" PRIu64 " x %" PRIu32
                             " is needed",
                             found_rows, found_cols, rows, cols);
    }
    return SLC_OK;
}

/* Adds the size of an open file and its bytes to the hash. */
static enum slc_status hash_open(const struct slc_files *files,
                                 int fd,
                                 const char *path,
                                 uint8_t *buffer,
                                 struct slc_hash_stream *stream,
                                 struct slc_error *err)
{
    struct slc_file_stat stat;
    uint8_t length[8];
    enum slc_status status = SLC_OK;
    const int rc = files->stat_fd(files->self, fd, &stat);

    SLC_TRY(slc_check_call(rc, err, path, "getting the size of the file"));
    slc_store_u64(length, stat.bytes);
    slc_hash_stream_add(stream, length, sizeof length);
    for (uint64_t at = 0, more; at < stat.bytes && status == SLC_OK; at += more) {
        more = slc_min_u64(stat.bytes - at, HASH_BYTES);
        status = slc_file_read_at(files, fd, path, buffer, more, at, err);
        slc_hash_stream_add(stream, buffer, status == SLC_OK ? more : 0);
    }
    return status;
}

enum slc_status slc_model_hash(const struct slc_files *files,
                               const char *folder,
                               unsigned order,
                               const uint64_t *dims,
                               uint32_t rank,
                               uint64_t *hash,
                               struct slc_error *err)
{
    uint8_t *buffer = slc_malloc(HASH_BYTES);
    struct slc_hash_stream stream;
    enum slc_status status = SLC_OK;

    files = slc_files_or_system(files);
    slc_hash_stream_begin(&stream);
    for (unsigned mode = 0; mode < order && status == SLC_OK; mode++) {
        char *path = slc_run_folder_factor(folder, mode);

        if (buffer == NULL || path == NULL) {
            slc_free(path);
            status = slc_fail(err, SLC_ERR_MEMORY, "no memory for the path of a model's file");
            break;
        }
        status = check_matrix(files, path, dims[mode], rank, err);
        if (status != SLC_OK) {
            slc_free(path);
            break;
        }
        int fd = slc_file_open(files, path, SLC_OPEN_PLAIN);
        if (fd < 0) {
            status = slc_fail_errno(err, -fd, path, "opening the file");
        } else {
            status = hash_open(files, fd, path, buffer, &stream, err);
            (void)files->close(files->self, fd);
        }
        slc_free(path);
    }
    slc_free(buffer);
    *hash = slc_hash_stream_end(&stream);
    return status;
}

enum slc_status slc_model_read_lambda(const struct slc_files *files,
                                      const char *folder,
                                      uint32_t rank,
                                      double *lambda,
                                      bool *found,
                                      struct slc_error *err)
{
    char *path = slc_path_join(folder, "lambda.npy");
    struct slc_matrix vector;
    struct slc_file_stat stat;
    enum slc_status status;

    SLC_TRY(slc_check_memory(path != NULL, err, "for the path of a model's file"));
    files = files != NULL ? files : slc_files_system();
    *found = false;
    int rc = files->stat_path(files->self, path, &stat);
    if (rc == -ENOENT) {
        status = SLC_OK;
    } else if (rc < 0) {
        status = slc_fail_errno(err, -rc, path, "looking for the weights");
    } else {
        status = slc_npy_read(files, path, SLC_F64, rank, 1, &vector, err);
        if (status == SLC_OK) {
            for (uint32_t r = 0; r < rank; r++) {
                lambda[r] = slc_matrix_get(&vector, r, 0);
            }
            slc_matrix_destroy(&vector);
            *found = true;
        }
    }
    slc_free(path);
    return status;
}
