/* Locks that allow one writer per folder or file; a lock lasts until its descriptor is closed. */
#ifndef SLC_STORAGE_FOLDER_LOCK_H
#define SLC_STORAGE_FOLDER_LOCK_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>

/* Opens and locks the folder at `path`. If another run holds the lock, or has just moved or removed
 * the folder, sets *in_use and fails with the message `advice`. On a file system without locks,
 * locking always succeeds. Ownership: release with slc_folder_unlock, also after an error. Errors:
 * SLC_ERR_IO. */
enum slc_status slc_folder_lock(const struct slc_files *files,
                                const char *path,
                                const char *advice,
                                int *fd,
                                bool *in_use,
                                struct slc_error *err) SLC_NODISCARD;
/* Creates the file at `path` if it is missing, locks it, and opens it empty for writing as *fd.
 * *lock only holds the lock; close it (slc_folder_unlock) after the file has been renamed or
 * removed. After an error, *fd and *lock are -1, and the file is removed unless another run has
 * locked it.
 * Errors: SLC_ERR_IO, also if another run is writing the file. */
enum slc_status slc_file_create_locked(const struct slc_files *files,
                                       const char *path,
                                       int *lock,
                                       int *fd,
                                       struct slc_error *err) SLC_NODISCARD;
/* Closes *fd and sets it to -1; accepts -1. */
void slc_folder_unlock(const struct slc_files *files, int *fd);

#endif
