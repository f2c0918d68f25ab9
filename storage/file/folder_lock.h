/* One writer at a time in a folder, or of a file: a lock that lasts as long as a descriptor of it
 * is open. */
#ifndef SLC_STORAGE_FOLDER_LOCK_H
#define SLC_STORAGE_FOLDER_LOCK_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>

/*
 * Opens and locks the folder at `path`. *taken: another run has it locked, or has moved or removed
 * it meanwhile, which is an error with the message `advice`. Where the file system has no locks,
 * nobody is kept out. Owns: slc_folder_unlock, also after an error. Errors: SLC_ERR_IO.
 */
enum slc_status slc_folder_lock(const struct slc_files *files,
                                const char *path,
                                const char *advice,
                                int *fd,
                                bool *taken,
                                struct slc_error *err) SLC_NODISCARD;
/*
 * Locks the file at `path`, which is made where it is missing, and opens it for writing, empty: *fd
 * and *lock, which is for the lock alone and to be closed (slc_folder_unlock) when the file has
 * been renamed or removed. After an error both are -1, and a file that no other run has is gone.
 * Errors: SLC_ERR_IO, where another run is writing it, too.
 */
enum slc_status slc_file_take(const struct slc_files *files,
                              const char *path,
                              int *lock,
                              int *fd,
                              struct slc_error *err) SLC_NODISCARD;
/* Takes a descriptor that is -1, and leaves one. */
void slc_folder_unlock(const struct slc_files *files, int *fd);

#endif
