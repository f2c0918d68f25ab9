/*
 * Places that results are kept from: stores, which hold nothing but their own files, and files of
 * others.
 */
#ifndef SLC_STORAGE_PATH_GUARD_H
#define SLC_STORAGE_PATH_GUARD_H

#include "base/error/error.h"
#include "storage/file/files.h"

/*
 * Refuses a place for a file or folder, which need not be there yet, that is a store or lies in the
 * folder of one, however deep and by whatever links. A folder counts as a store where it has a
 * manifest and the block file that every store has; one that may not be looked into does not.
 * Errors: SLC_ERR_USAGE; SLC_ERR_MEMORY; SLC_ERR_IO.
 */
enum slc_status slc_check_outside_stores(const struct slc_files *files,
                                         const char *path,
                                         struct slc_error *err) SLC_NODISCARD;

/* As above for a store that may be replaced: only what it lies in counts. */
enum slc_status slc_check_parent_outside_stores(const struct slc_files *files,
                                                const char *path,
                                                struct slc_error *err) SLC_NODISCARD;

/*
 * Refuses a file that holds something else than what would be written in its place, which begins
 * with the text `begin`, of at most 63 bytes, and is called `what`. One that is not there, is
 * empty, a device or a pipe may be written to. Errors: SLC_ERR_USAGE; SLC_ERR_IO.
 */
enum slc_status slc_check_own_form(const struct slc_files *files,
                                   const char *path,
                                   const char *begin,
                                   const char *what,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
