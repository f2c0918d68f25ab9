/*
 * The table of file operations. All reading and writing of files by libsluice goes through one, so
 * that a test can put a faulty or a recording one in its place. Operations return a value >= 0 or a
 * negated errno, like the kernel; they may transfer fewer bytes than asked.
 *
 * The helpers below the table turn that into whole transfers and error records.
 */
#ifndef SLC_STORAGE_FILES_H
#define SLC_STORAGE_FILES_H

#include "base/error/error.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct slc_file_stat {
    uint64_t bytes;
    uint64_t stored_bytes; /* on the drive: fewer where there are holes; 0: not known */
    uint64_t inode;
    uint64_t device;
    int64_t modified_ns;
    uint32_t direct_memory_align; /* statx DIOALIGN; 0 = unknown, or none when direct_known */
    uint32_t direct_offset_align; /* the same */
    bool direct_known;            /* the system said whether direct I/O is real here */
    char kind;                    /* 'f' file, 'd' directory, 'o' other */
};

struct slc_files {
    void *self;
    int (*open)(void *self, const char *path, int flags, mode_t mode);
    int (*close)(void *self, int fd);
    int64_t (*read_at)(void *self, int fd, void *data, uint64_t bytes, uint64_t offset);
    int64_t (*read)(void *self, int fd, void *data, uint64_t bytes); /* pipes */
    int64_t (*write_at)(void *self, int fd, const void *data, uint64_t bytes, uint64_t offset);
    int64_t (*write)(void *self, int fd, const void *data, uint64_t bytes); /* pipes */
    int (*sync)(void *self, int fd);                                        /* fsync */
    int (*sync_folder)(void *self, const char *path); /* fsync of a directory */
    int (*truncate)(void *self, int fd, uint64_t bytes);
    /*
     * Sets space aside for the first `bytes` bytes of a file, which grows with zeros to that length
     * where it is shorter and else stays as it is: later writes there find a disk that is not full.
     * -EOPNOTSUPP where the file system cannot.
     */
    int (*reserve)(void *self, int fd, uint64_t bytes);
    int (*stat_fd)(void *self, int fd, struct slc_file_stat *stat);
    int (*stat_path)(void *self, const char *path, struct slc_file_stat *stat);
    /* Bytes that this user may still write to the file system of a file or folder. */
    int (*free_bytes)(void *self, const char *path, uint64_t *bytes);
    int (*rename)(void *self, const char *from, const char *to); /* never replaces a directory */
    /*
     * Gives each of two files or folders that are there the other's name, both at one stroke.
     * -EOPNOTSUPP where the file system cannot.
     */
    int (*exchange)(void *self, const char *a, const char *b);
    int (*unlink)(void *self, const char *path);
    int (*make_folder)(void *self, const char *path);
    /*
     * Locks an open file or folder against other lockers until it is closed or the process ends:
     * -EWOULDBLOCK where another has it, another error where the file system has no locks.
     */
    int (*lock)(void *self, int fd);
    int (*remove_folder)(void *self, const char *path); /* an empty one */
    int (*map)(void *self, int fd, uint64_t bytes, uint64_t offset, void **address); /* read-only */
    int (*unmap)(void *self, void *address, uint64_t bytes);
    int (*advise)(void *self, void *address, uint64_t bytes, int advice); /* madvise */
    int (*advise_file)(void *self, int fd, uint64_t offset, uint64_t bytes, int advice);
    /*
     * Called with the result of every read of a range (bytes or negated errno) that went to the
     * kernel past this table (io_uring, pages of a map), from any thread; returns the result to
     * use. NULL, as in the real table: the result itself.
     */
    int64_t (*completed)(void *self, int fd, uint64_t offset, uint64_t bytes, int64_t result);
    /*
     * Calls `entry` for every name in a folder but "." and ".." (kind as in slc_file_stat; a
     * symbolic link is 'o') until it returns non-zero. Returns 0, that value, or a negated errno.
     */
    int (*list_folder)(void *self,
                       const char *path,
                       int (*entry)(void *context, const char *name, char kind),
                       void *context);
};

/*
 * Further flags of open. Of what has to be a plain file: a pipe of that name, where nobody is at
 * the other end, is not waited for. Who opens looks at its kind; reads and writes wait as ever.
 */
#define SLC_OPEN_PLAIN O_NONBLOCK
/* Of a name that is sluice's own to write to: nor is a symbolic link there followed to what is not.
 */
#define SLC_OPEN_OWN (O_NOFOLLOW | SLC_OPEN_PLAIN)

/* The operating system. Never NULL; shared, stateless. */
const struct slc_files *slc_files_system(void);

/* `files`, or the operating system where it is NULL. */
const struct slc_files *slc_files_or_system(const struct slc_files *files);

/* Reads exactly `bytes` at `offset`; a shorter file is SLC_ERR_DAMAGED with the offset. */
enum slc_status slc_file_read_at(const struct slc_files *files,
                                 int fd,
                                 const char *path,
                                 void *data,
                                 uint64_t bytes,
                                 uint64_t offset,
                                 struct slc_error *err) SLC_NODISCARD;

/* Writes exactly `bytes` at `offset`. Errors: SLC_ERR_NOSPACE, SLC_ERR_IO. */
enum slc_status slc_file_write_at(const struct slc_files *files,
                                  int fd,
                                  const char *path,
                                  const void *data,
                                  uint64_t bytes,
                                  uint64_t offset,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Opens a second descriptor of the open file `fd` for transfers past the page cache, which saves a
 * copy and the cache's upkeep. *direct_fd is -1 where the system does not say that direct I/O in
 * whole pages is real here: nothing is lost but time. Errors: SLC_ERR_IO.
 */
enum slc_status slc_file_open_direct(const struct slc_files *files,
                                     int fd,
                                     const char *path,
                                     int flags,
                                     int *direct_fd,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * As slc_file_write_at and slc_file_read_at, directly where `direct_fd` is not -1: memory, bytes
 * and offset in whole pages. What a direct transfer leaves undone goes through `fd`.
 */
enum slc_status slc_file_write_pages(const struct slc_files *files,
                                     int direct_fd,
                                     int fd,
                                     const char *path,
                                     const void *data,
                                     uint64_t bytes,
                                     uint64_t offset,
                                     struct slc_error *err) SLC_NODISCARD;
/* Reads `bytes` of any number at `offset`, of whole pages with room for whole pages. */
enum slc_status slc_file_read_pages(const struct slc_files *files,
                                    int direct_fd,
                                    int fd,
                                    const char *path,
                                    void *data,
                                    uint64_t bytes,
                                    uint64_t offset,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Writes a small file atomically: PATH.tmp, sync, rename to PATH, sync of its folder. After an
 * error PATH.tmp is gone and PATH holds either what it held before or, when only the sync of the
 * folder failed, all of the new bytes. Where another run is writing PATH.tmp:
 * SLC_ERR_IO.
 */
enum slc_status slc_file_replace(const struct slc_files *files,
                                 const char *path,
                                 const void *data,
                                 uint64_t bytes,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Reads a whole file of at most `limit_bytes` into memory (a terminating 0 is appended, not
 * counted). Owns: the caller frees *data with slc_free.
 */
enum slc_status slc_file_load(const struct slc_files *files,
                              const char *path,
                              uint64_t limit_bytes,
                              void **data,
                              uint64_t *bytes,
                              struct slc_error *err) SLC_NODISCARD;

/* Removes a folder and the plain files in it (one level of sub-folders deep). Missing is success.
 */
enum slc_status slc_folder_remove(const struct slc_files *files,
                                  const char *path,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Syncs the folder that `path` lies in: a file or folder that was made, moved or removed there
 * keeps its name, or stays gone, only after that, whatever was synced of itself.
 */
enum slc_status
slc_name_sync(const struct slc_files *files, const char *path, struct slc_error *err) SLC_NODISCARD;

/* The folder a path lies in, slashes at its end left out: "A/B/" -> "A", "B" -> ".", "/B" -> "/".
 * In fresh memory (slc_free), or NULL without memory. */
char *slc_path_parent(const char *path);

/* "FOLDER/NAME" in fresh memory (slc_free), or NULL without memory. */
char *slc_path_join(const char *folder, const char *name);

#endif
