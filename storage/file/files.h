/* Table of file operations. libsluice reads and writes all files through such a table, so that a
 * test can substitute a table that injects faults or records calls. Operations return a value >= 0
 * or a negated errno, like the kernel; they may transfer fewer bytes than requested. The helpers
 * below the table use these operations to make complete transfers and error records. */
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
    uint64_t stored_bytes; /* bytes on disk, fewer if the file has holes; 0 if unknown */
    uint64_t inode;
    uint64_t device;
    int64_t modified_ns;
    uint32_t direct_memory_align; /* bytes; 0 if direct I/O is unsupported or unknown */
    /* alignment of offsets in the file, in bytes; 0 if unsupported or unknown */
    uint32_t direct_offset_align;
    bool direct_known; /* true if it is known whether direct I/O is supported */
    char kind;         /* 'f' file, 'd' folder, 'o' other */
    /* Known only for a folder given by its path; otherwise 0. Both members survive a restart of the
     * machine and a new mount, which may change `device`. A copy has another time of birth. */
    uint64_t file_system;
    int64_t born_ns;
};

struct slc_held_folder;

struct slc_files {
    void *self;
    /* Folder below which slc_file_open opens files by descriptor (storage/file/held_folder.h); NULL
     * if there is none, as in the table of the operating system. */
    struct slc_held_folder *held;
    int (*open)(void *self, const char *path, int flags, mode_t mode);
    /* Opens a file for reading; a relative path starts at the open folder `folder` (openat). */
    int (*open_at)(void *self, int folder, const char *path, int flags);
    /* Returns another descriptor of the open file `fd`, even if the file was renamed or removed.
     * With flags 0, both descriptors share one open file; otherwise the file is opened again with
     * these flags, which returns -ENOENT if /proc is not mounted. */
    int (*open_again)(void *self, int fd, int flags);
    int (*close)(void *self, int fd);
    int64_t (*read_at)(void *self, int fd, void *data, uint64_t bytes, uint64_t offset);
    int64_t (*read)(void *self, int fd, void *data, uint64_t bytes); /* for pipes */
    int64_t (*write_at)(void *self, int fd, const void *data, uint64_t bytes, uint64_t offset);
    int64_t (*write)(void *self, int fd, const void *data, uint64_t bytes); /* for pipes */
    int (*sync)(void *self, int fd);                                        /* fsync */
    int (*sync_folder)(void *self, const char *path);                       /* fsync of a folder */
    int (*truncate)(void *self, int fd, uint64_t bytes);
    /* Allocates disk space for the first `bytes` bytes of a file, so that later writes there cannot
     * run out of space. Extends a shorter file with zeros; leaves a longer file unchanged.
     * Returns -EOPNOTSUPP if the file system cannot reserve space. */
    int (*reserve)(void *self, int fd, uint64_t bytes);
    int (*stat_fd)(void *self, int fd, struct slc_file_stat *stat);
    int (*stat_path)(void *self, const char *path, struct slc_file_stat *stat);
    /* Sets *bytes to the bytes that this user may still write to the file system of `path`. */
    int (*free_bytes)(void *self, const char *path, uint64_t *bytes);
    int (*rename)(void *self, const char *from, const char *to); /* never replaces a folder */
    /* Atomically exchanges the names of two files or folders; -EOPNOTSUPP if not supported. */
    int (*exchange)(void *self, const char *a, const char *b);
    int (*unlink)(void *self, const char *path);
    int (*make_folder)(void *self, const char *path);
    /* Locks an open file or folder until it is closed or the process ends. Returns -EWOULDBLOCK if
     * it is already locked, and another error if the file system has no locks. */
    int (*lock)(void *self, int fd);
    int (*remove_folder)(void *self, const char *path); /* the folder must be empty */
    int (*map)(void *self, int fd, uint64_t bytes, uint64_t offset, void **address); /* read-only */
    int (*unmap)(void *self, void *address, uint64_t bytes);
    int (*advise)(void *self, void *address, uint64_t bytes, int advice); /* madvise */
    int (*advise_file)(void *self, int fd, uint64_t offset, uint64_t bytes, int advice);
    /* Called from any thread with the result (bytes or negated errno) of every read that bypassed
     * this table (io_uring, pages of a map); returns the result to use. If NULL, as in the table of
     * the operating system, results are used unchanged. */
    int64_t (*completed)(void *self, int fd, uint64_t offset, uint64_t bytes, int64_t result);
    /* Calls `entry` for every name in a folder except "." and ".." until `entry` returns a value
     * other than 0. `kind` is as in slc_file_stat; a symbolic link is 'o'. Returns the last value
     * of `entry`, or a negated errno. */
    int (*list_folder)(void *self,
                       const char *path,
                       int (*entry)(void *context, const char *name, char kind),
                       void *context);
};

/* Extra open flag for paths that must be plain files: opening a pipe does not wait for its other
 * end. The caller then checks that the file is plain; reads and writes still block. */
#define SLC_OPEN_PLAIN O_NONBLOCK
/* Like SLC_OPEN_PLAIN, for names that sluice itself writes: opening also fails for a symbolic
 * link. */
#define SLC_OPEN_OWN (O_NOFOLLOW | SLC_OPEN_PLAIN)

/* Returns the table of the operating system, which has no state. Never NULL. Threads: any. */
const struct slc_files *slc_files_system(void);

/* Returns `files`, or slc_files_system() if `files` is NULL. */
const struct slc_files *slc_files_or_system(const struct slc_files *files);

/* Checks that this process can open a few more files at the same time, as many as writing results
 * needs. Long operations call it when all other files are open and before they compute anything
 * that would be lost otherwise. Errors: SLC_ERR_IO. */
enum slc_status slc_check_open_files(struct slc_error *err) SLC_NODISCARD;

/* Opens a file for reading (O_RDONLY is implied) and returns its descriptor or a negated errno. If
 * the table has a held folder, files below this folder are opened through its descriptor, and files
 * that it keeps open are not opened by name again. */
int slc_file_open(const struct slc_files *files, const char *path, int flags);

/* Reads exactly `bytes` bytes at `offset`. Errors: SLC_ERR_IO; SLC_ERR_DAMAGED, with the offset, if
 * the file ends early. */
enum slc_status slc_file_read_at(const struct slc_files *files,
                                 int fd,
                                 const char *path,
                                 void *data,
                                 uint64_t bytes,
                                 uint64_t offset,
                                 struct slc_error *err) SLC_NODISCARD;

/* Writes exactly `bytes` bytes at `offset`. Errors: SLC_ERR_NOSPACE, SLC_ERR_IO. */
enum slc_status slc_file_write_at(const struct slc_files *files,
                                  int fd,
                                  const char *path,
                                  const void *data,
                                  uint64_t bytes,
                                  uint64_t offset,
                                  struct slc_error *err) SLC_NODISCARD;

/* Opens a second descriptor of the open file `fd` for direct I/O, which bypasses the page cache and
 * so is faster. *direct_fd is -1 if the system does not report that direct I/O in whole pages is
 * supported, or cannot open the file again; transfers then use the page cache. Errors:
 * SLC_ERR_IO. */
enum slc_status slc_file_open_direct(const struct slc_files *files,
                                     int fd,
                                     const char *path,
                                     int flags,
                                     int *direct_fd,
                                     struct slc_error *err) SLC_NODISCARD;

/* Like slc_file_write_at, but uses direct I/O if `direct_fd` is not -1. Memory address, `bytes` and
 * `offset` must be multiples of the page size. Bytes that direct I/O does not write are written
 * through `fd`. */
enum slc_status slc_file_write_pages(const struct slc_files *files,
                                     int direct_fd,
                                     int fd,
                                     const char *path,
                                     const void *data,
                                     uint64_t bytes,
                                     uint64_t offset,
                                     struct slc_error *err) SLC_NODISCARD;
/* Reads any number of bytes at a page-aligned `offset`; `data` has space for `bytes` bytes rounded
 * up to whole pages. */
enum slc_status slc_file_read_pages(const struct slc_files *files,
                                    int direct_fd,
                                    int fd,
                                    const char *path,
                                    void *data,
                                    uint64_t bytes,
                                    uint64_t offset,
                                    struct slc_error *err) SLC_NODISCARD;

/* Writes a small file atomically: writes PATH.tmp, syncs it, renames it to PATH, and syncs the
 * folder. After an error PATH.tmp is removed and PATH holds its old contents or, if only the sync
 * of the folder failed, all of the new bytes. Errors: also SLC_ERR_IO if another run is writing
 * PATH.tmp. */
enum slc_status slc_file_replace(const struct slc_files *files,
                                 const char *path,
                                 const void *data,
                                 uint64_t bytes,
                                 struct slc_error *err) SLC_NODISCARD;

/* Reads a whole file of at most `limit_bytes` bytes into memory and appends a 0 byte that is not
 * counted. Ownership: the caller frees *data with slc_free. */
enum slc_status slc_file_load(const struct slc_files *files,
                              const char *path,
                              uint64_t limit_bytes,
                              void **data,
                              uint64_t *bytes,
                              struct slc_error *err) SLC_NODISCARD;

/* Removes a folder, its files and one level of sub-folders. A missing folder is not an error. */
enum slc_status slc_folder_remove(const struct slc_files *files,
                                  const char *path,
                                  struct slc_error *err) SLC_NODISCARD;

/* Syncs the parent folder of `path`. Without this sync, the creation, renaming or removal of `path`
 * is not durable, even if the file itself was synced. */
enum slc_status
slc_name_sync(const struct slc_files *files, const char *path, struct slc_error *err) SLC_NODISCARD;

/* Returns the parent folder of a path without trailing slashes: "A/B/" -> "A", "B" -> ".", "/B" ->
 * "/". Returns NULL if out of memory. Ownership: release with slc_free. */
char *slc_path_parent(const char *path);

/* Returns "FOLDER/NAME", or NULL if out of memory. Ownership: release with slc_free. */
char *slc_path_join(const char *folder, const char *name);

#endif
