/*
 * The folder a store is built in, OUT.slc.part, and its publication as OUT.slc by rename: until
 * then nothing at OUT.slc changes, and after a failure nothing is left.
 */
#ifndef SLC_CONVERT_BUILD_FOLDER_H
#define SLC_CONVERT_BUILD_FOLDER_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>

/* In OUT.slc.part: the store under new numbers, while it is not known whether it is kept. */
#define SLC_RELABELLED_NAME "relabelled.slc"
/* What does not fit in memory, and how far a build that can be resumed has come. */
#define SLC_SPILL_NAME        "spill.tmp"
#define SLC_PUSHED_STATE_NAME "pushed.state"
#define SLC_SORTED_STATE_NAME "sorted.state"

struct slc_build_folder {
    const struct slc_files *files;
    bool overwrite;
    bool made;
    bool found;      /* OUT.slc.part was there, and has still to be taken or emptied */
    bool keep;       /* OUT.slc.part stays, for a later run to go on with */
    int lock;        /* the descriptor of OUT.slc.part that holds its lock; -1: none */
    int output_lock; /* that of the store that is to be replaced */
    char *output;    /* OUT.slc, without a trailing slash */
    char *part;      /* OUT.slc.part */
    char *old;       /* OUT.slc.old: the replaced store where names cannot be exchanged */
};

/*
 * Removes what a run that ended early left at `path`, a store or a part of one, which is logged;
 * nothing happens where nothing is. Errors: SLC_ERR_IO when another run has it locked, it holds
 * what no run writes, ..
 */
enum slc_status slc_build_leftover_remove(const struct slc_files *files,
                                          const char *path,
                                          struct slc_error *err) SLC_NODISCARD;

/*
 * Where nothing is at `output`, and a store at OUT.slc.old, moves that back: a run that could not
 * exchange names ended between its two renames. Logged. Errors: SLC_ERR_IO, also where another run
 * is between these.
 */
enum slc_status slc_build_folder_restore(const struct slc_files *files,
                                         const char *output,
                                         struct slc_error *err) SLC_NODISCARD;

/*
 * Makes OUT.slc.part and locks it, for as long as this process lives. One left by a run that ended
 * early is locked first, if it holds nothing but what a run writes; with `resume` it is kept as it
 * is and `found` set, else it is removed first, which is logged.
 * A store that is to be replaced is locked, too. Owns: slc_build_folder_end.
 * Errors: SLC_ERR_IO when OUT.slc exists (and `overwrite` is false or it is not a store), is a
 * symbolic link, lies in a store, or is being written, or given layouts, by another run, ..
 */
enum slc_status slc_build_folder_begin(struct slc_build_folder *folder,
                                       const struct slc_files *files,
                                       const char *output,
                                       bool overwrite,
                                       bool resume,
                                       struct slc_error *err) SLC_NODISCARD;

/* Replaces an OUT.slc.part that was found by an empty one. Errors: SLC_ERR_IO, .. */
enum slc_status slc_build_folder_empty(struct slc_build_folder *folder,
                                       struct slc_error *err) SLC_NODISCARD;

/* Whether that would refuse OUT.slc, but for what other runs are doing; for dry runs. Same errors.
 */
enum slc_status slc_build_folder_check(const struct slc_files *files,
                                       const char *output,
                                       bool overwrite,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Syncs OUT.slc.part, moves it to OUT.slc (replacing a store where asked) and syncs the parent. The
 * names of a store and of that which replaces it are exchanged: OUT.slc is one or the other at any
 * time, and the old one lies in OUT.slc.part until it is removed. Where the file system cannot do
 * that, the old one is moved to OUT.slc.old before, and there is none for a moment.
 */
enum slc_status slc_build_folder_publish(struct slc_build_folder *folder,
                                         struct slc_error *err) SLC_NODISCARD;

/* Removes OUT.slc.part unless it was published or is kept. Takes an all-zero struct. */
void slc_build_folder_end(struct slc_build_folder *folder);

#endif
