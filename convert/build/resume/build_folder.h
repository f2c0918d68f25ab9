/* The folder in which a store is built, OUT.slc.part, and its publication as OUT.slc by rename:
 * until the rename, OUT.slc does not change, and after a failure nothing remains. */
#ifndef SLC_CONVERT_BUILD_FOLDER_H
#define SLC_CONVERT_BUILD_FOLDER_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>

/* In OUT.slc.part: the relabelled store, until it is kept or rejected. */
#define SLC_RELABELLED_NAME "relabelled.slc"
/* Spilled chunks, and the commit state of a resumable build. */
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

/*
 * Removes and logs what an interrupted run left at `path`: a store or part of one. Does nothing if
 * `path` does not exist. Errors: SLC_ERR_IO if another run has locked it or it contains foreign
 * files, ..
 */
enum slc_status slc_build_leftover_remove(const struct slc_files *files,
                                          const char *path,
                                          struct slc_error *err) SLC_NODISCARD;

/*
 * If `output` does not exist and OUT.slc.old is a store, moves the store back and logs this: a run
 * that could not exchange names was interrupted between its two renames. Errors: SLC_ERR_IO, also
 * if another run is between the two renames.
 */
enum slc_status slc_build_folder_restore(const struct slc_files *files,
                                         const char *output,
                                         struct slc_error *err) SLC_NODISCARD;

/*
 * Creates OUT.slc.part and locks it until the process ends. A folder left by an interrupted run is
 * locked first, if it contains only files that a run writes; with `resume` it is kept and `found`
 * is set, otherwise it is removed and this is logged. A store to be replaced is locked, too. Owns:
 * slc_build_folder_end. Errors: SLC_ERR_IO if OUT.slc exists (and `overwrite` is false or it is not
 * a store), is a symbolic link, is inside a store, or is being written or extended by another run,
 * ..
 */
enum slc_status slc_build_folder_create(struct slc_build_folder *folder,
                                        const struct slc_files *files,
                                        const char *output,
                                        bool overwrite,
                                        bool resume,
                                        struct slc_error *err) SLC_NODISCARD;

/* Replaces an existing OUT.slc.part with an empty folder. Errors: SLC_ERR_IO, .. */
enum slc_status slc_build_folder_empty(struct slc_build_folder *folder,
                                       struct slc_error *err) SLC_NODISCARD;

/* Checks, for dry runs, that slc_build_folder_create would accept OUT.slc, except for the activity
 * of other runs. Same errors. */
enum slc_status slc_build_folder_check(const struct slc_files *files,
                                       const char *output,
                                       bool overwrite,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Syncs OUT.slc.part, moves it to OUT.slc (replacing a store if requested) and syncs the parent
 * folder. The names of the old and the new store are exchanged, so OUT.slc is a complete store at
 * any time. The old store is then at OUT.slc.part until it is removed. If the file system cannot
 * exchange names, the old store is first moved to OUT.slc.old, and OUT.slc is briefly missing.
 */
enum slc_status slc_build_folder_publish(struct slc_build_folder *folder,
                                         struct slc_error *err) SLC_NODISCARD;

/* Removes OUT.slc.part unless it was published or is kept. Accepts an all-zero struct. */
void slc_build_folder_end(struct slc_build_folder *folder);

#endif
