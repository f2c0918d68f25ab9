/* Makes complete transfers with the table of file operations: continues partial reads and writes,
 * retries interruptions, and turns every failure into an error record with file and offset. */
#include "storage/file/files.h"

#include "base/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Number of consecutive interruptions without progress after which a transfer fails. The limit is
 * far more than signals can cause; it ends the loop on a broken file system. */
enum { MAX_INTERRUPTIONS = 1000 };

static bool is_interruption(int64_t result)
{
    return result == -EINTR || result == -EAGAIN;
}

enum slc_status slc_file_read_at(const struct slc_files *files,
                                 int fd,
                                 const char *path,
                                 void *data,
                                 uint64_t bytes,
                                 uint64_t offset,
                                 struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint64_t done = 0;
    unsigned interruptions = 0;

    while (done < bytes) {
        int64_t got =
            files->read_at(files->self, fd, (char *)data + done, bytes - done, offset + done);

        if (is_interruption(got) && ++interruptions < MAX_INTERRUPTIONS) {
            continue;
        }
        if (got < 0) {
            status =
                slc_fail_errno(err, (int)-got, path, "reading %" PRIu64 " bytes", bytes - done);
            break;
        }
        if (got == 0) {
            status = slc_fail_file(
                err, SLC_ERR_DAMAGED, path,
                "the file ends at byte %" PRIu64 ", but %" PRIu64
                " more bytes should follow: it was truncated; restore the file or convert it again",
                offset + done, bytes - done);
            break;
        }
        interruptions = 0;
        done += (uint64_t)got;
    }
    if (status != SLC_OK) {
        slc_error_locate_block(err, path, SLC_NOWHERE, offset + done);
    }
    return status;
}

enum slc_status slc_file_write_at(const struct slc_files *files,
                                  int fd,
                                  const char *path,
                                  const void *data,
                                  uint64_t bytes,
                                  uint64_t offset,
                                  struct slc_error *err)
{
    uint64_t done = 0;
    unsigned interruptions = 0;

    while (done < bytes) {
        int64_t written = files->write_at(files->self, fd, (const char *)data + done, bytes - done,
                                          offset + done);

        if (is_interruption(written) && ++interruptions < MAX_INTERRUPTIONS) {
            continue;
        }
        if (written <= 0) {
            /* A write of 0 bytes without an error would loop forever; report it as an I/O error. */
            enum slc_status status = slc_fail_errno(err, written == 0 ? EIO : (int)-written, path,
                                                    "writing %" PRIu64 " bytes", bytes - done);
            slc_error_locate_block(err, path, SLC_NOWHERE, offset + done);
            return status;
        }
        interruptions = 0;
        done += (uint64_t)written;
    }
    return SLC_OK;
}

/* Reads the open file `fd` into newly allocated memory and appends a 0 byte. */
static enum slc_status load_open(const struct slc_files *files,
                                 int fd,
                                 const char *path,
                                 uint64_t limit_bytes,
                                 void **data,
                                 uint64_t *bytes,
                                 struct slc_error *err)
{
    struct slc_file_stat stat;
    int rc = files->stat_fd(files->self, fd, &stat);

    SLC_TRY(slc_check_call(rc, err, path, "getting the size of the file"));
    if (stat.kind != 'f') {
        return slc_fail_file(err, SLC_ERR_FORMAT, path, "not a plain file");
    }
    if (stat.bytes > limit_bytes || stat.bytes >= SIZE_MAX) {
        return slc_fail_file(err, SLC_ERR_UNSUPPORTED, path,
                             "the file has %" PRIu64 " bytes; at most %" PRIu64
                             " are accepted for a file of this kind",
                             stat.bytes, limit_bytes);
    }
    char *memory = slc_malloc((size_t)stat.bytes + 1);
    SLC_TRY(slc_check_memory(memory != NULL, err, "for the contents of a file"));
    enum slc_status status = slc_file_read_at(files, fd, path, memory, stat.bytes, 0, err);
    if (status != SLC_OK) {
        slc_free(memory);
        return status;
    }
    memory[stat.bytes] = '\0';
    *data = memory;
    *bytes = stat.bytes;
    return SLC_OK;
}

enum slc_status slc_file_load(const struct slc_files *files,
                              const char *path,
                              uint64_t limit_bytes,
                              void **data,
                              uint64_t *bytes,
                              struct slc_error *err)
{
    int fd = slc_file_open(files, path, SLC_OPEN_PLAIN);

    SLC_TRY(slc_check_call(fd, err, path, "opening the file"));
    enum slc_status status = load_open(files, fd, path, limit_bytes, data, bytes, err);
    (void)files->close(files->self, fd);
    return status;
}

char *slc_path_parent(const char *path)
{
    size_t length = strlen(path);
    char *parent = slc_malloc(length + 2);

    if (parent == NULL) {
        return NULL;
    }
    memcpy(parent, path, length);
    while (length > 0 && path[length - 1] == '/') {
        length--;
    }
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    parent[length] = '\0';
    return length > 0 ? parent : memcpy(parent, ".", 2);
}

char *slc_path_join(const char *folder, const char *name)
{
    size_t folder_length = strlen(folder);
    size_t name_length = strlen(name);
    bool slash = folder_length > 0 && folder[folder_length - 1] != '/';
    char *path = slc_malloc(folder_length + slash + name_length + 1);

    if (path == NULL) {
        return NULL;
    }
    memcpy(path, folder, folder_length);
    if (slash) {
        path[folder_length] = '/';
    }
    memcpy(path + folder_length + slash, name, name_length + 1);
    return path;
}

enum slc_status slc_check_open_files(struct slc_error *err)
{
    /* Descriptors for a folder and its lock, a temporary file (two), a journal, the files of a
     * store that is read again, and some reserve. */
    enum { NEEDED = 8 };
    int fds[NEEDED], code = 0;
    unsigned opened = 0;

    for (; opened < NEEDED && code == 0; opened += code == 0) {
        fds[opened] = eventfd(0, EFD_CLOEXEC);
        code = fds[opened] < 0 ? errno : 0;
    }
    for (unsigned k = 0; k < opened; k++) {
        (void)close(fds[k]);
    }
    return code == EMFILE || code == ENFILE
               ? slc_fail_errno(err, code, NULL,
                                "reserving %d more open files for the results, of which %u can be "
                                "opened",
                                (int)NEEDED, opened)
               : SLC_OK;
}

enum slc_status
slc_name_sync(const struct slc_files *files, const char *path, struct slc_error *err)
{
    char *folder = slc_path_parent(path);
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(folder != NULL, err, "for the path of a folder"));
    int rc = files->sync_folder(files->self, folder);
    if (rc < 0) {
        status = slc_fail_errno(err, -rc, folder, "syncing the folder");
    }
    slc_free(folder);
    return status;
}

/* State while the contents of one folder are removed. */
struct removal {
    const struct slc_files *files;
    const char *folder;
    unsigned depth;   /* levels of sub-folders still allowed */
    uint64_t removed; /* names removed in this listing of the folder */
    enum slc_status status;
    struct slc_error *err;
};

static enum slc_status
remove_tree(const struct slc_files *files, const char *path, unsigned depth, struct slc_error *err);

static int remove_entry(void *context, const char *name, char kind)
{
    struct removal *removal = context;
    char *path = slc_path_join(removal->folder, name);
    int rc = 0;

    if (path == NULL) {
        removal->status = slc_fail(removal->err, SLC_ERR_MEMORY, "no memory for a path");
        return 1;
    }
    if (kind == 'd' && removal->depth > 0) {
        removal->status = remove_tree(removal->files, path, removal->depth - 1, removal->err);
    } else if (kind == 'd') {
        rc = removal->files->remove_folder(removal->files->self, path);
    } else {
        rc = removal->files->unlink(removal->files->self, path);
    }
    if (rc < 0 && rc != -ENOENT) {
        removal->status = slc_fail_errno(removal->err, -rc, path, "removing the file or folder");
    }
    removal->removed++;
    slc_free(path);
    return removal->status == SLC_OK ? 0 : 1;
}

static enum slc_status
remove_tree(const struct slc_files *files, const char *path, unsigned depth, struct slc_error *err)
{
    struct removal removal = {files, path, depth, 0, SLC_OK, err};
    int rc;

    /* Some file systems skip names if files are removed while listing, so repeat until the folder
     * is empty. */
    do {
        removal.removed = 0;
        rc = files->list_folder(files->self, path, remove_entry, &removal);
        if (removal.status != SLC_OK) {
            return removal.status;
        }
        if (rc == -ENOENT) {
            return SLC_OK;
        }
        SLC_TRY(slc_check_call(rc, err, path, "listing the folder"));
    } while (removal.removed > 0);
    rc = files->remove_folder(files->self, path);
    if (rc < 0 && rc != -ENOENT) {
        return slc_fail_errno(err, -rc, path, "removing the folder");
    }
    return SLC_OK;
}

enum slc_status
slc_folder_remove(const struct slc_files *files, const char *path, struct slc_error *err)
{
    return remove_tree(files, path, 1, err);
}
