#include "convert/export/text_output.h"

#include "base/memory/memory.h"
#include "storage/file/folder_lock.h"
#include "storage/manifest/path_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Opens and locks PATH.tmp. If another run that writes the same output holds the lock, its file
 * must not be truncated or removed. */
static enum slc_status open_temporary(struct slc_text_output *output, struct slc_error *err)
{
    const enum slc_status status =
        slc_file_create_locked(output->files, output->temporary, &output->lock, &output->fd, err);

    if (status != SLC_OK) {
        slc_free(output->temporary);
        output->temporary = NULL;
    }
    return status;
}

static enum slc_status
open_file(struct slc_text_output *output, const char *path, bool overwrite, struct slc_error *err)
{
    const struct slc_files *files = output->files;
    size_t length = strlen(path) + sizeof ".tmp";
    struct slc_file_stat stat;
    int code = files->stat_path(files->self, path, &stat);
    bool device = code >= 0 && stat.kind == 'o';
    int fd;

    if (code < 0 && code != -ENOENT) {
        return slc_fail_errno(err, -code, path, "looking for an existing output");
    }
    if (code >= 0 && !device && (!overwrite || stat.kind == 'd')) {
        enum slc_status status =
            slc_fail_field(err, SLC_ERR_IO, stat.kind == 'd' ? SLC_FIELD_NONE : SLC_FIELD_OVERWRITE,
                           stat.kind == 'd' ? "the output is a folder: name a file"
                                            : "the output exists: remove it, or replace it");

        slc_error_locate_file(err, path);
        return status;
    }
    if (!device) {
        SLC_TRY(slc_check_parent_outside_stores(files, path, err));
    }
    output->path = slc_strdup(path);
    if (output->path != NULL && !device) {
        output->temporary = slc_malloc(length);
    }
    if (output->path == NULL || (output->temporary == NULL && !device)) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the path of the output");
    }
    if (device) {
        fd = files->open(files->self, path, O_WRONLY | O_CLOEXEC, 0);
        output->fd = fd;
        return slc_check_call(fd, err, path, "opening the output");
    }
    snprintf(output->temporary, length, "%s.tmp", path);
    return open_temporary(output, err);
}

enum slc_status slc_text_output_open(struct slc_text_output *output,
                                     const struct slc_files *files,
                                     const char *path,
                                     bool overwrite,
                                     unsigned workers,
                                     size_t buffer_bytes,
                                     struct slc_error *err)
{
    *output = (struct slc_text_output){
        .files = files, .fd = -1, .lock = -1, .workers = workers, .buffer_bytes = buffer_bytes};
    enum slc_status status =
        slc_buffer_create(&output->memory, workers * buffer_bytes, SLC_PAGES_SMALL, err);
    if (status == SLC_OK && strcmp(path, "-") == 0) {
        output->fd = STDOUT_FILENO;
    } else if (status == SLC_OK) {
        status = open_file(output, path, overwrite, err);
    }
    if (status != SLC_OK) {
        slc_text_output_abandon(output);
    }
    return status;
}

enum slc_status slc_text_output_write(struct slc_text_output *output,
                                      const char *text,
                                      size_t bytes,
                                      struct slc_error *err)
{
    const struct slc_files *files = output->files;
    size_t done = 0;

    while (done < bytes) {
        int64_t moved = files->write(files->self, output->fd, text + done, bytes - done);

        if (moved == -EINTR) {
            continue;
        }
        if (moved <= 0) {
            return slc_fail_errno(err, moved < 0 ? (int)-moved : EIO,
                                  output->path == NULL ? "standard output" : output->path,
                                  "writing text after %llu bytes",
                                  (unsigned long long)output->bytes + done);
        }
        done += (size_t)moved;
    }
    output->bytes += bytes;
    return SLC_OK;
}

/* Closes a device or pipe. It has received all text, but closing it may still report an error. */
static enum slc_status close_device(struct slc_text_output *output, struct slc_error *err)
{
    int fd = output->fd;

    output->fd = -1;
    int code = output->files->close(output->files->self, fd);
    return slc_check_call(code, err, output->path, "completing the output");
}

static enum slc_status install_file(struct slc_text_output *output, struct slc_error *err)
{
    const struct slc_files *files = output->files;
    char *parent = slc_path_parent(output->path);
    int fd = output->fd;

    SLC_TRY(slc_check_memory(parent != NULL, err, "for the path of a folder"));
    int code = files->sync(files->self, fd);
    if (code >= 0) {
        output->fd = -1;
        code = files->close(files->self, fd);
    }
    if (code >= 0) {
        code = files->rename(files->self, output->temporary, output->path);
    }
    if (code >= 0) {
        slc_free(output->temporary);
        output->temporary = NULL;
        code = files->sync_folder(files->self, parent);
    }
    slc_free(parent);
    return slc_check_call(code, err, output->path, "completing the output");
}

enum slc_status slc_text_output_finish(struct slc_text_output *output, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    if (output->temporary != NULL) {
        status = install_file(output, err);
    } else if (output->path != NULL) {
        status = close_device(output, err);
    }
    slc_text_output_abandon(output);
    return status;
}

void slc_text_output_abandon(struct slc_text_output *output)
{
    const struct slc_files *files = output->files;

    /* If the path is NULL, the output is standard output, which stays open. */
    if (output->path != NULL && output->fd >= 0) {
        files->close(files->self, output->fd);
    }
    if (output->temporary != NULL) {
        files->unlink(files->self, output->temporary);
    }
    if (files != NULL) {
        slc_folder_unlock(files, &output->lock);
    }
    slc_buffer_destroy(&output->memory);
    slc_free(output->path);
    slc_free(output->temporary);
    *output = (struct slc_text_output){.fd = -1, .lock = -1};
}
