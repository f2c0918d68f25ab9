/* Writes a file atomically, either sequentially (output.h) or as a whole (slc_file_replace of
 * files.h). */
#include "storage/file/output.h"

#include "base/memory/memory.h"
#include "storage/file/folder_lock.h"

#include <assert.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void release_output(struct slc_output *output)
{
    slc_free(output->buffer);
    slc_free(output->temporary);
    slc_free(output->path);
    memset(output, 0, sizeof *output);
}

enum slc_status slc_output_open(struct slc_output *output,
                                const struct slc_files *files,
                                const char *path,
                                struct slc_error *err)
{
    size_t length = strlen(path);

    memset(output, 0, sizeof *output);
    output->files = files != NULL ? files : slc_files_system();
    output->path = slc_strdup(path);
    output->temporary = slc_malloc(length + sizeof ".tmp");
    output->buffer = slc_malloc(SLC_OUTPUT_BUFFER_BYTES);
    enum slc_status status = slc_check_memory(output->path != NULL && output->temporary != NULL &&
                                                  output->buffer != NULL,
                                              err, "for writing %s", path);
    if (status == SLC_OK) {
        memcpy(output->temporary, path, length);
        memcpy(output->temporary + length, ".tmp", sizeof ".tmp");
        status = slc_file_create_locked(output->files, output->temporary, &output->lock,
                                        &output->fd, err);
    }
    if (status != SLC_OK) {
        release_output(output);
    }
    return status;
}

static enum slc_status flush_buffer(struct slc_output *output, struct slc_error *err)
{
    enum slc_status status = slc_file_write_at(output->files, output->fd, output->temporary,
                                               output->buffer, output->used, output->written, err);

    output->written += output->used;
    output->used = 0;
    return status;
}

enum slc_status
slc_output_reserve(struct slc_output *output, size_t bytes, uint8_t **space, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    assert(bytes <= SLC_OUTPUT_BUFFER_BYTES);
    if (SLC_OUTPUT_BUFFER_BYTES - output->used < bytes) {
        status = flush_buffer(output, err);
    }
    *space = output->buffer + output->used;
    return status;
}

enum slc_status
slc_output_print(struct slc_output *output, struct slc_error *err, const char *format, ...)
{
    uint8_t *space;
    enum slc_status status = slc_output_reserve(output, SLC_OUTPUT_LINE_BYTES, &space, err);

    if (status == SLC_OK) {
        va_list args;

        va_start(args, format);
        int length = vsnprintf((char *)space, SLC_OUTPUT_LINE_BYTES, format, args);
        va_end(args);
        assert(length >= 0 && length < SLC_OUTPUT_LINE_BYTES);
        output->used += (size_t)length;
    }
    return status;
}

enum slc_status
slc_output_skip(struct slc_output *output, uint64_t bytes, uint64_t *offset, struct slc_error *err)
{
    enum slc_status status = flush_buffer(output, err);

    *offset = output->written;
    output->written += bytes;
    return status;
}

enum slc_status slc_output_fill(struct slc_output *output,
                                uint64_t offset,
                                const void *data,
                                uint64_t bytes,
                                struct slc_error *err)
{
    return slc_file_write_at(output->files, output->fd, output->temporary, data, bytes, offset,
                             err);
}

/* Syncs the folder that holds the file, which makes the rename durable. */
static enum slc_status sync_folder_of(struct slc_output *output, struct slc_error *err)
{
    char *slash = strrchr(output->path, '/');
    const char *folder = ".";

    if (slash == output->path) {
        folder = "/";
    } else if (slash != NULL) {
        *slash = '\0';
        folder = output->path;
    }
    int rc = output->files->sync_folder(output->files->self, folder);
    return slc_check_call(rc, err, folder, "syncing the folder");
}

enum slc_status slc_output_commit(struct slc_output *output, struct slc_error *err)
{
    const struct slc_files *files = output->files;
    enum slc_status status = flush_buffer(output, err);
    int rc;

    if (status == SLC_OK && (rc = files->sync(files->self, output->fd)) < 0) {
        status = slc_fail_errno(err, -rc, output->temporary, "syncing the file");
    }
    /* Network file systems may report a failed write only on close. */
    if ((rc = files->close(files->self, output->fd)) < 0 && status == SLC_OK) {
        status = slc_fail_errno(err, -rc, output->temporary, "closing the file");
    }
    if (status == SLC_OK &&
        (rc = files->rename(files->self, output->temporary, output->path)) < 0) {
        status = slc_fail_errno(err, -rc, output->path, "renaming %s to its final name",
                                output->temporary);
    }
    if (status != SLC_OK) {
        (void)files->unlink(files->self, output->temporary);
    }
    slc_folder_unlock(files, &output->lock);
    SLC_THEN(status, sync_folder_of(output, err));
    release_output(output);
    return status;
}

void slc_output_abandon(struct slc_output *output)
{
    (void)output->files->close(output->files->self, output->fd);
    (void)output->files->unlink(output->files->self, output->temporary);
    slc_folder_unlock(output->files, &output->lock);
    release_output(output);
}

enum slc_status slc_file_replace(const struct slc_files *files,
                                 const char *path,
                                 const void *data,
                                 uint64_t bytes,
                                 struct slc_error *err)
{
    struct slc_output output;

    SLC_TRY(slc_output_open(&output, files, path, err));
    /* Write the data directly, without the buffer. */
    enum slc_status status =
        slc_file_write_at(output.files, output.fd, output.temporary, data, bytes, 0, err);
    if (status != SLC_OK) {
        slc_output_abandon(&output);
        return status;
    }
    output.written = bytes;
    return slc_output_commit(&output, err);
}
