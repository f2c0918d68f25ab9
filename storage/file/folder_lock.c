/* Locks a folder or file, and checks that its name still refers to the locked folder or file. */
#include "storage/file/folder_lock.h"

#include <errno.h>
#include <fcntl.h>

/* Locks the open folder or file, which was at `path`. Sets *in_use if another run holds the lock or
 * has removed the folder or file. Returns 0 or a negated errno; missing support for locks is no
 * error. */
static int lock_open(const struct slc_files *files, int fd, const char *path, bool *in_use)
{
    struct slc_file_stat locked, named;
    int code = files->lock(files->self, fd);

    *in_use = code == -EWOULDBLOCK;
    if (code < 0) {
        return code == -EIO ? code : 0;
    }
    code = files->stat_fd(files->self, fd, &locked);
    if (code >= 0) {
        code = files->stat_path(files->self, path, &named);
        *in_use = code == -ENOENT ||
                  (code >= 0 && (locked.inode != named.inode || locked.device != named.device));
    }
    return *in_use || code > 0 ? 0 : code;
}

static enum slc_status lock_path(const struct slc_files *files,
                                 const char *path,
                                 int flags,
                                 const char *advice,
                                 int *fd,
                                 bool *in_use,
                                 struct slc_error *err)
{
    int opened = files->open(files->self, path, flags | O_CLOEXEC, 0666);
    const bool creates = (flags & O_CREAT) != 0;
    int code = opened;

    *in_use = false;
    if (opened >= 0) {
        code = lock_open(files, opened, path, in_use);
    }

    *fd = opened;
    if (opened < 0) {
        *in_use = opened == -ENOENT && !creates;
    }
    if (*in_use) {
        return slc_fail_file(err, SLC_ERR_IO, path, "%s", advice);
    }
    return slc_check_call(code, err, path, creates ? "creating the file" : "locking the folder");
}

enum slc_status slc_folder_lock(const struct slc_files *files,
                                const char *path,
                                const char *advice,
                                int *fd,
                                bool *in_use,
                                struct slc_error *err)
{
    return lock_path(files, path, O_RDONLY | O_DIRECTORY, advice, fd, in_use, err);
}

enum slc_status slc_file_create_locked(
    const struct slc_files *files, const char *path, int *lock, int *fd, struct slc_error *err)
{
    bool in_use;
    enum slc_status status = lock_path(
        files, path, O_WRONLY | O_CREAT | SLC_OPEN_OWN,
        "another run is writing this output: wait until it is done, or name another output", lock,
        &in_use, err);

    *fd = -1;
    if (status == SLC_OK) {
        const int code = files->open(files->self, path, O_WRONLY | O_TRUNC | SLC_OPEN_OWN, 0);

        if (code >= 0) {
            *fd = code;
            return SLC_OK;
        }
        status = slc_fail_errno(err, -code, path, "creating the file");
    }
    if (*lock >= 0 && !in_use) {
        (void)files->unlink(files->self, path);
    }
    slc_folder_unlock(files, lock);
    *lock = -1;
    return status;
}

void slc_folder_unlock(const struct slc_files *files, int *fd)
{
    if (*fd >= 0) {
        files->close(files->self, *fd);
        *fd = -1;
    }
}
