/* Names of the indices of a run's modes, from the store of the run, for reports on its factors. */
#ifndef SLC_STORAGE_RUN_NAMES_H
#define SLC_STORAGE_RUN_NAMES_H

#include "base/error/error.h"
#include "storage/file/files.h"
#include "storage/manifest/names.h"
#include "storage/model/run_folder.h"

#include <jansson.h>
#include <stdint.h>

/* Whether the store whose names are shown is the store from which the run was made. */
enum slc_run_store {
    SLC_RUN_STORE_UNTOLD, /* not known: the caller named a store, or the run has no run.json */
    SLC_RUN_STORE_SAME,
    /* The store has other nonzeros: it was appended to, or converted again. */
    SLC_RUN_STORE_CHANGED,
    /* the recorded store is missing, or its modes are smaller than in the run */
    SLC_RUN_STORE_ABSENT
};

struct slc_run_names {
    struct slc_held_folder *held; /* folder of the store; NULL if no store was found */
    enum slc_run_store store;
    struct slc_names *names[SLC_MAX_ORDER];      /* NULL if the mode has no names */
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES]; /* "" if the mode has no title */
};

/* Finds the store recorded in run.json. A relative path is looked up in the folder where the run
 * was made, then in the current folder. Ownership: release *ret_path with slc_free. Errors:
 * SLC_ERR_INPUT if there is no run.json or it states no store; otherwise the error of
 * slc_manifest_read for the first of these folders or, if nothing exists there, for the second. */
enum slc_status slc_run_store_find(const struct slc_files *files,
                                   const struct slc_run_folder *run,
                                   char **ret_path,
                                   struct slc_error *err) SLC_NODISCARD;

/* Opens the names of `store` or, if `store` is NULL, of the store recorded in run.json. A recorded
 * store that is missing, or whose modes are smaller than in the run, is not an error. If a store
 * with names is missing or has changed, logs this (slc_log). `files` may be NULL. Ownership:
 * release with slc_run_names_close. Errors: those of slc_manifest_read and slc_names_open;
 * SLC_ERR_INPUT if the modes of `store` do not match the run. */
enum slc_status slc_run_names_open(const struct slc_files *files,
                                   const struct slc_run_folder *run,
                                   const char *store,
                                   struct slc_run_names *names,
                                   struct slc_error *err) SLC_NODISCARD;
/* Opens the names of the store recorded in run.json if it still has the nonzeros of the run;
 * otherwise opens none. Logs nothing. Ownership and errors: as slc_run_names_open. */
enum slc_status slc_run_names_open_unchanged(const struct slc_files *files,
                                             const struct slc_run_folder *run,
                                             struct slc_run_names *names,
                                             struct slc_error *err) SLC_NODISCARD;
void slc_run_names_close(struct slc_run_names *names);

/* Returns the memory of the open names in bytes. */
uint64_t slc_run_names_bytes(const struct slc_run_names *names);

/* Copies the name of an index to `text` (SLC_NAME_TEXT_BYTES) as UTF-8. Writes control characters,
 * which could affect a terminal, and bytes that are not UTF-8 as \xNN. `text` is "" if the
 * index has no name. Errors: those of slc_names_get. */
enum { SLC_NAME_TEXT_BYTES = 4 * SLC_NAME_BYTES_MAX + 1 };
enum slc_status slc_run_names_text(struct slc_run_names *names,
                                   unsigned mode,
                                   uint64_t index,
                                   char *text,
                                   struct slc_error *err) SLC_NODISCARD;
/* Returns the name of an index as a JSON string with its control characters; bytes that are not
 * UTF-8 are \xNN, as in slc_run_names_text. Null if the mode has no names. Ownership: release
 * *ret_name with json_decref. Errors: those of slc_names_get; SLC_ERR_MEMORY. */
enum slc_status slc_run_names_json(struct slc_run_names *names,
                                   unsigned mode,
                                   uint64_t index,
                                   json_t **ret_name,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
