/* Manages OUT.slc.part, the folder in which a store is built, and publishes it by renaming it to
 * OUT.slc. Until the rename, OUT.slc does not change. After a failure, OUT.slc.part remains only if
 * `keep` is set. */
#ifndef SLC_CONVERT_BUILD_FOLDER_H
#define SLC_CONVERT_BUILD_FOLDER_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>

/* In OUT.slc.part: the relabelled store, until it is kept or rejected. */
#define SLC_RELABELLED_NAME "relabelled.slc"
/* The spill file, and the states of a resumable build: the last commit of the push, and the
 * progress of the sort. */
#define SLC_SPILL_NAME        "spill.tmp"
#define SLC_PUSHED_STATE_NAME "pushed.state"
#define SLC_SORTED_STATE_NAME "sorted.state"

struct slc_build_folder {
    const struct slc_files *files;
    bool overwrite;
    bool made;
    bool found;      /* OUT.slc.part exists and must still be resumed or emptied */
    bool keep;       /* OUT.slc.part stays, so that a later run can resume */
    int lock;        /* descriptor that holds the lock of OUT.slc.part; -1: none */
    int output_lock; /* descriptor that holds the lock of the store to be replaced; -1: none */
    char *output;    /* OUT.slc, without a trailing slash */
    char *part;      /* OUT.slc.part */
    char *old; /* OUT.slc.old: temporary name of the replaced store if names cannot be exchanged */
};

/* Removes the complete or unfinished store that an interrupted run left at `path`, and logs this.
 * Does nothing if `path` does not exist. Errors: SLC_ERR_IO if another run has locked the folder or
 * the folder contains foreign files; errors of file operations. */
enum slc_status slc_build_leftover_remove(const struct slc_files *files,
                                          const char *path,
                                          struct slc_error *err) SLC_NODISCARD;

/* If `output` does not exist and OUT.slc.old is a store, moves the store back and logs this: a run
 * that could not exchange names was interrupted between its two renames. Errors: SLC_ERR_IO, also
 * if another run is between the two renames. */
enum slc_status slc_build_folder_restore(const struct slc_files *files,
                                         const char *output,
                                         struct slc_error *err) SLC_NODISCARD;

/* Creates OUT.slc.part and locks it until the process ends. If an interrupted run left a folder
 * with only files that a run writes, that folder is locked. With `resume`, it is then kept and
 * `found` is set; otherwise it is removed, and this is logged. A store that is to be replaced is
 * locked, too. Ownership: release with slc_build_folder_end. Errors: SLC_ERR_IO if OUT.slc exists
 * and `overwrite` is false; if it exists and is not a store; if it is a symbolic link; if it is
 * inside a store; or if another run is writing or extending it; errors of file operations. */
enum slc_status slc_build_folder_create(struct slc_build_folder *folder,
                                        const struct slc_files *files,
                                        const char *output,
                                        bool overwrite,
                                        bool resume,
                                        struct slc_error *err) SLC_NODISCARD;

/* Replaces an existing OUT.slc.part with an empty folder. Errors: those of file operations. */
enum slc_status slc_build_folder_empty(struct slc_build_folder *folder,
                                       struct slc_error *err) SLC_NODISCARD;

/* Checks, for dry runs, that slc_build_folder_create would accept OUT.slc, except for the activity
 * of other runs. Errors: those of slc_build_folder_create. */
enum slc_status slc_build_folder_check(const struct slc_files *files,
                                       const char *output,
                                       bool overwrite,
                                       struct slc_error *err) SLC_NODISCARD;

/* Syncs OUT.slc.part, moves it to OUT.slc (replacing a store if requested) and syncs the parent
 * folder. The names of the old and the new store are exchanged, so OUT.slc is a complete store at
 * any time. The old store is then at OUT.slc.part until it is removed. If the file system cannot
 * exchange names, the old store is first moved to OUT.slc.old, and OUT.slc is briefly missing. */
enum slc_status slc_build_folder_publish(struct slc_build_folder *folder,
                                         struct slc_error *err) SLC_NODISCARD;

/* Removes OUT.slc.part unless it was published or is kept. Accepts an all-zero struct. */
void slc_build_folder_end(struct slc_build_folder *folder);

#endif
