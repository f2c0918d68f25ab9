/* Implements a temporary file that is unlinked after it is opened. */
#include "convert/ingest/input/spool.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct slc_spool {
    const struct slc_files *files;
    char *path; /* path of the file before it was unlinked, for messages */
    int fd;
    uint64_t bytes;
    uint64_t max_bytes;
};

/* Returns "FOLDER/NAME.spool" for an output called NAME; NULL if there is no memory. */
static char *spool_path(const struct slc_spool_options *options)
{
    const char *output = options->output ? options->output : "sluice";
    size_t length = strlen(output);

    while (length > 1 && output[length - 1] == '/') {
        length--;
    }
    const char *slash = memrchr(output, '/', length);
    if (slash) {
        length -= (size_t)(slash + 1 - output);
        output = slash + 1;
    }
    char *name = slc_malloc(length + sizeof ".spool");
    char *folder =
        options->folder ? NULL : slc_path_parent(options->output ? options->output : ".");
    if (!name || (!options->folder && !folder)) {
        slc_free(name);
        slc_free(folder);
        return NULL;
    }
    (void)snprintf(name, length + sizeof ".spool", "%.*s.spool", (int)length, output);
    char *path = slc_path_join(options->folder ? options->folder : folder, name);
    slc_free(name);
    slc_free(folder);
    return path;
}

/* Creates the file. If a file with this name exists, a killed run left it; it is removed, and a
 * second attempt succeeds. */
static int open_new(const struct slc_files *files, const char *path)
{
    int fd = -EEXIST;

    for (unsigned tries = 0; fd == -EEXIST && tries < 2; tries++) {
        fd = files->open(files->self, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | SLC_OPEN_OWN,
                         0600);
        if (fd == -EEXIST && tries == 0) {
            (void)files->unlink(files->self, path);
        }
    }
    return fd;
}

enum slc_status slc_spool_create(const struct slc_spool_options *options,
                                 struct slc_spool **spool,
                                 struct slc_error *err)
{
    struct slc_spool *made = slc_calloc(1, sizeof *made);

    *spool = NULL;
    SLC_TRY(slc_check_memory(made != NULL, err, "for a temporary file"));
    made->files = slc_files_or_system(options->files);
    made->max_bytes = options->max_bytes;
    made->path = spool_path(options);
    made->fd = -1;
    enum slc_status status = slc_check_memory(made->path != NULL, err, "for a temporary file");
    if (status == SLC_OK) {
        made->fd = open_new(made->files, made->path);
        status = slc_check_call(made->fd, err, made->path, "cannot create a temporary file");
    }
    if (status == SLC_OK) {
        int code = made->files->unlink(made->files->self, made->path);

        status = slc_check_call(code == -ENOENT ? 0 : code, err, made->path,
                                "cannot remove the name of a temporary file");
    }
    if (status != SLC_OK) {
        slc_spool_destroy(made);
        return status;
    }
    *spool = made;
    return SLC_OK;
}

void slc_spool_destroy(struct slc_spool *spool)
{
    if (!spool) {
        return;
    }
    if (spool->fd >= 0) {
        /* Closing the file also deletes it, because it was unlinked. */
        (void)spool->files->close(spool->files->self, spool->fd);
    }
    slc_free(spool->path);
    slc_free(spool);
}

enum slc_status
slc_spool_reserve(struct slc_spool *spool, uint64_t bytes, uint64_t *at, struct slc_error *err)
{
    uint64_t after;

    if (!slc_add_u64(spool->bytes, bytes, &after) ||
        (spool->max_bytes > 0 && after > spool->max_bytes)) {
        return slc_fail_field(
            err, SLC_ERR_BUDGET, SLC_FIELD_MAX_TEMP,
            "the input must be copied to a temporary file, which needs more than the %" PRIu64
            " bytes allowed",
            spool->max_bytes);
    }
    *at = spool->bytes;
    spool->bytes = after;
    return SLC_OK;
}

enum slc_status slc_spool_write(const struct slc_spool *spool,
                                uint64_t at,
                                const void *data,
                                uint64_t bytes,
                                struct slc_error *err)
{
    return slc_file_write_at(spool->files, spool->fd, spool->path, data, bytes, at, err);
}

enum slc_status
slc_spool_append(struct slc_spool *spool, const void *data, uint64_t bytes, struct slc_error *err)
{
    uint64_t at = 0;

    SLC_TRY(slc_spool_reserve(spool, bytes, &at, err));
    return slc_spool_write(spool, at, data, bytes, err);
}

uint64_t slc_spool_bytes(const struct slc_spool *spool)
{
    return spool->bytes;
}

int slc_spool_fd(const struct slc_spool *spool)
{
    return spool->fd;
}
