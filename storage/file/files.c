/* The operating system's table of file operations.
 *
 * Most operations are one system call; all return a negated errno after an error. Partial transfers
 * are not continued, and only open, fsync, ftruncate and fallocate are repeated if a signal
 * interrupts them. The operations have no state, so all threads use one table. */
#include "storage/file/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int open_file(int folder, const char *path, int flags, mode_t mode)
{
    int fd;

    do {
        fd = openat(folder, path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return -errno;
    }
    /* Clear O_NONBLOCK, which only prevents a blocking open. While it is set, io_uring rejects
     * reads for which the file system cannot determine in advance that they do not block. */
    if ((flags & SLC_OPEN_PLAIN) != 0) {
        (void)fcntl(fd, F_SETFL, flags & O_DIRECT);
    }
    return fd;
}

static int system_open(void *self, const char *path, int flags, mode_t mode)
{
    (void)self;
    return open_file(AT_FDCWD, path, flags, mode);
}

static int system_open_at(void *self, int folder, const char *path, int flags)
{
    (void)self;
    return open_file(folder, path, flags, 0);
}

static int system_open_again(void *self, int fd, int flags)
{
    char link[40];

    (void)self;
    if (flags == 0) {
        const int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);

        return again < 0 ? -errno : again;
    }
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return open_file(AT_FDCWD, link, flags, 0);
}

static int system_close(void *self, int fd)
{
    (void)self;
    /* Linux releases the descriptor even if close returns EINTR: never retry. */
    return close(fd) != 0 && errno != EINTR ? -errno : 0;
}

static int64_t system_read_at(void *self, int fd, void *data, uint64_t bytes, uint64_t offset)
{
    (void)self;
    if (offset > INT64_MAX) {
        return -EINVAL;
    }
    ssize_t done = pread(fd, data, bytes > SSIZE_MAX ? SSIZE_MAX : (size_t)bytes, (off_t)offset);
    return done < 0 ? -errno : done;
}

static int64_t system_read(void *self, int fd, void *data, uint64_t bytes)
{
    (void)self;
    ssize_t done = read(fd, data, bytes > SSIZE_MAX ? SSIZE_MAX : (size_t)bytes);
    return done < 0 ? -errno : done;
}

static int64_t
system_write_at(void *self, int fd, const void *data, uint64_t bytes, uint64_t offset)
{
    (void)self;
    if (offset > INT64_MAX) {
        return -EFBIG;
    }
    ssize_t done = pwrite(fd, data, bytes > SSIZE_MAX ? SSIZE_MAX : (size_t)bytes, (off_t)offset);
    return done < 0 ? -errno : done;
}

static int64_t system_write(void *self, int fd, const void *data, uint64_t bytes)
{
    (void)self;
    ssize_t done = write(fd, data, bytes > SSIZE_MAX ? SSIZE_MAX : (size_t)bytes);
    return done < 0 ? -errno : done;
}

static int system_sync(void *self, int fd)
{
    int rc;

    (void)self;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    return rc != 0 ? -errno : 0;
}

static int system_sync_folder(void *self, const char *path)
{
    int fd = system_open(self, path, O_RDONLY | O_DIRECTORY, 0);

    if (fd < 0) {
        return fd;
    }
    int rc = system_sync(self, fd);
    system_close(self, fd);
    /* File systems that cannot sync a folder return EINVAL; then there is nothing to do. */
    return rc == -EINVAL ? 0 : rc;
}

static int system_truncate(void *self, int fd, uint64_t bytes)
{
    int rc;

    (void)self;
    if (bytes > INT64_MAX) {
        return -EFBIG;
    }
    do {
        rc = ftruncate(fd, (off_t)bytes);
    } while (rc != 0 && errno == EINTR);
    return rc != 0 ? -errno : 0;
}

static int system_reserve(void *self, int fd, uint64_t bytes)
{
    int rc;

    (void)self;
    if (bytes > INT64_MAX) {
        return -EFBIG;
    }
    do {
        rc = fallocate(fd, 0, 0, (off_t)bytes);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno == ENOSYS ? -EOPNOTSUPP : -errno;
}

static char kind_of_mode(unsigned mode)
{
    return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : 'o';
}

/* True for a file system that is in memory: since Linux 6.6, such a file system accepts O_DIRECT
 * and ignores it. */
static bool lives_in_memory(const struct statfs *fs)
{
    return (unsigned long)fs->f_type == TMPFS_MAGIC || (unsigned long)fs->f_type == RAMFS_MAGIC;
}

static void fill_from_stat(struct slc_file_stat *stat, const struct stat *st)
{
    stat->bytes = st->st_size < 0 ? 0 : (uint64_t)st->st_size;
    stat->stored_bytes = st->st_blocks < 0 ? 0 : (uint64_t)st->st_blocks * 512;
    stat->inode = st->st_ino;
    stat->device = st->st_dev;
    stat->modified_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    stat->kind = kind_of_mode(st->st_mode);
}

/* Sets the members for direct I/O from statx. If statx reports nothing, direct_known is true only
 * for file systems in memory, which have no direct I/O. */
static void fill_direct(struct slc_file_stat *stat, int fd, const char *path)
{
#ifdef STATX_DIOALIGN
    struct statx sx;
    int flags = path == NULL ? AT_EMPTY_PATH : 0;

    if (statx(path == NULL ? fd : AT_FDCWD, path == NULL ? "" : path, flags, STATX_DIOALIGN, &sx) ==
            0 &&
        (sx.stx_mask & STATX_DIOALIGN) != 0) {
        stat->direct_known = true;
        stat->direct_memory_align = sx.stx_dio_mem_align;
        stat->direct_offset_align = sx.stx_dio_offset_align;
    }
#endif
    if (!stat->direct_known) {
        struct statfs fs;

        if ((path == NULL ? fstatfs(fd, &fs) : statfs(path, &fs)) == 0 && lives_in_memory(&fs)) {
            stat->direct_known = true;
        }
    }
}

/* Sets the members that identify a folder for a long time. */
static void fill_folder(struct slc_file_stat *stat, const char *path)
{
    struct statx sx;
    struct statfs fs;

    if (statx(AT_FDCWD, path, 0, STATX_BTIME, &sx) == 0 && (sx.stx_mask & STATX_BTIME) != 0) {
        stat->born_ns = sx.stx_btime.tv_sec * 1000000000 + sx.stx_btime.tv_nsec;
    }
    if (statfs(path, &fs) == 0) {
        memcpy(&stat->file_system, &fs.f_fsid, sizeof stat->file_system);
    }
}

static int system_stat_fd(void *self, int fd, struct slc_file_stat *stat)
{
    struct stat st;

    (void)self;
    if (fstat(fd, &st) != 0) {
        return -errno;
    }
    memset(stat, 0, sizeof *stat);
    fill_from_stat(stat, &st);
    if (stat->kind == 'f') {
        fill_direct(stat, fd, NULL);
    }
    return 0;
}

static int system_stat_path(void *self, const char *path, struct slc_file_stat *result)
{
    struct stat st;

    (void)self;
    if (stat(path, &st) != 0) {
        return -errno;
    }
    memset(result, 0, sizeof *result);
    fill_from_stat(result, &st);
    if (result->kind == 'f') {
        fill_direct(result, -1, path);
    } else if (result->kind == 'd') {
        fill_folder(result, path);
    }
    return 0;
}

static int system_rename(void *self, const char *from, const char *to)
{
    struct stat st;

    (void)self;
    if (lstat(from, &st) != 0) {
        return -errno;
    }
    if (S_ISDIR(st.st_mode)) {
        /* A plain rename would replace an empty folder. */
        if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
            return 0;
        }
        if (errno != EINVAL && errno != ENOSYS) {
            return -errno;
        }
        /* The file system lacks RENAME_NOREPLACE: check for `to`, which may still appear before the
         * rename. */
        if (lstat(to, &st) == 0) {
            return -EEXIST;
        }
    }
    return rename(from, to) != 0 ? -errno : 0;
}

static int system_exchange(void *self, const char *a, const char *b)
{
    (void)self;
    if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0) {
        return 0;
    }
    /* A file system without RENAME_EXCHANGE returns EINVAL. */
    return errno == EINVAL || errno == ENOSYS ? -EOPNOTSUPP : -errno;
}

static int system_unlink(void *self, const char *path)
{
    (void)self;
    return unlink(path) != 0 ? -errno : 0;
}

static int system_make_folder(void *self, const char *path)
{
    (void)self;
    return mkdir(path, 0777) != 0 ? -errno : 0;
}

static int system_remove_folder(void *self, const char *path)
{
    (void)self;
    return rmdir(path) != 0 ? -errno : 0;
}

static int system_lock(void *self, int fd)
{
    (void)self;
    return flock(fd, LOCK_EX | LOCK_NB) != 0 ? -errno : 0;
}

static int system_map(void *self, int fd, uint64_t bytes, uint64_t offset, void **address)
{
    void *memory;

    (void)self;
    if (bytes > SIZE_MAX || offset > INT64_MAX) {
        return -EOVERFLOW;
    }
    memory = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    *address = memory;
    return 0;
}

static int system_unmap(void *self, void *address, uint64_t bytes)
{
    (void)self;
    return munmap(address, (size_t)bytes) != 0 ? -errno : 0;
}

static int system_advise(void *self, void *address, uint64_t bytes, int advice)
{
    (void)self;
    return madvise(address, (size_t)bytes, advice) != 0 ? -errno : 0;
}

static int system_advise_file(void *self, int fd, uint64_t offset, uint64_t bytes, int advice)
{
    (void)self;
    if (offset > INT64_MAX || bytes > INT64_MAX) {
        return -EINVAL;
    }
    return -posix_fadvise(fd, (off_t)offset, (off_t)bytes, advice);
}

static int system_free_bytes(void *self, const char *path, uint64_t *bytes)
{
    struct statvfs space;

    (void)self;
    if (statvfs(path, &space) != 0) {
        return -errno;
    }
    *bytes = (uint64_t)space.f_bavail * space.f_frsize;
    return 0;
}

static char kind_of_entry(int folder_fd, const struct dirent *entry)
{
    struct stat st;

    switch (entry->d_type) {
    case DT_REG:
        return 'f';
    case DT_DIR:
        return 'd';
    case DT_UNKNOWN:
        if (fstatat(folder_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            return kind_of_mode(st.st_mode);
        }
        return 'o';
    default:
        return 'o';
    }
}

static int system_list_folder(void *self,
                              const char *path,
                              int (*entry)(void *context, const char *name, char kind),
                              void *context)
{
    DIR *folder = opendir(path);
    int rc = 0;

    (void)self;
    if (folder == NULL) {
        return -errno;
    }
    while (rc == 0) {
        errno = 0;
        const struct dirent *item = readdir(folder);
        if (item == NULL) {
            rc = -errno;
            break;
        }
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0) {
            rc = entry(context, item->d_name, kind_of_entry(dirfd(folder), item));
        }
    }
    closedir(folder);
    return rc;
}

const struct slc_files *slc_files_system(void)
{
    static const struct slc_files table = {
        .self = NULL,
        .open = system_open,
        .open_at = system_open_at,
        .open_again = system_open_again,
        .close = system_close,
        .read_at = system_read_at,
        .read = system_read,
        .write_at = system_write_at,
        .write = system_write,
        .sync = system_sync,
        .sync_folder = system_sync_folder,
        .truncate = system_truncate,
        .reserve = system_reserve,
        .stat_fd = system_stat_fd,
        .stat_path = system_stat_path,
        .free_bytes = system_free_bytes,
        .rename = system_rename,
        .exchange = system_exchange,
        .unlink = system_unlink,
        .make_folder = system_make_folder,
        .lock = system_lock,
        .remove_folder = system_remove_folder,
        .map = system_map,
        .unmap = system_unmap,
        .advise = system_advise,
        .advise_file = system_advise_file,
        .list_folder = system_list_folder,
    };

    return &table;
}

const struct slc_files *slc_files_or_system(const struct slc_files *files)
{
    return files != NULL ? files : slc_files_system();
}
