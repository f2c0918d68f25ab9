/* Refuses output paths that are inside stores, which hold only their own files, or that would
 * overwrite files of runs or foreign files. */
#ifndef SLC_STORAGE_PATH_GUARD_H
#define SLC_STORAGE_PATH_GUARD_H

#include "base/error/error.h"
#include "storage/file/files.h"

/* Refuses the path of a file or folder that is a store or is inside a store at any depth, also
 * through links. The file or folder need not exist. A folder counts as a store if it has a manifest
 * and a file SLC_BLCO_NAME; an unreadable folder does not count. Also refuses the path of a result
 * file (run.json, sweep.json, lambda.npy, mode-K.npy) in the folder of a run or a sweep, even if
 * the file does not exist. Errors: SLC_ERR_USAGE; SLC_ERR_MEMORY; SLC_ERR_IO. */
enum slc_status slc_check_outside_stores(const struct slc_files *files,
                                         const char *path,
                                         struct slc_error *err) SLC_NODISCARD;

/* Like slc_check_outside_stores, but `path` itself may be a store, which will be replaced; only its
 * parent folders are checked. */
enum slc_status slc_check_parent_outside_stores(const struct slc_files *files,
                                                const char *path,
                                                struct slc_error *err) SLC_NODISCARD;

/* Refuses an existing file that does not start with the text `begin` (at most 63 bytes), which is
 * the start of the new content. `what` names the expected file in the message. Accepts a missing or
 * empty file, a device and a pipe. Errors: SLC_ERR_USAGE; SLC_ERR_IO. */
enum slc_status slc_check_own_form(const struct slc_files *files,
                                   const char *path,
                                   const char *begin,
                                   const char *what,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
