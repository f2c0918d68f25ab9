/* Names of the indices of a run's modes, from the store of the run, for reports on its factors. */
#ifndef SLC_STORAGE_RUN_NAMES_H
#define SLC_STORAGE_RUN_NAMES_H

#include "base/error/error.h"
#include "storage/file/files.h"
#include "storage/manifest/names.h"
#include "storage/model/run_folder.h"

#include <stdint.h>

/* State of the store of a run. */
enum slc_run_store {
    SLC_RUN_STORE_UNTOLD, /* another store was named, or run.json has none */
    SLC_RUN_STORE_SAME,
    /* The store has other nonzeros: it was appended to, or converted again. */
    SLC_RUN_STORE_CHANGED,
    SLC_RUN_STORE_ABSENT /* missing, or replaced by another tensor */
};

struct slc_run_names {
    enum slc_run_store store;
    struct slc_names *names[SLC_MAX_ORDER];      /* NULL: the mode has none */
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES]; /* "": the mode has no title */
};

/*
 * Opens the names of `store` or, if it is NULL, of the store recorded in run.json if it still
 * exists and its modes are at least as large; missing names are then no error. A relative path
 * refers to the folder where the run was made or, if both were moved, to the current folder. If a
 * store with names is missing or has changed, logs this (slc_log). `files` may be NULL. Owns:
 * slc_run_names_close. Errors: those of slc_manifest_read and slc_names_open; SLC_ERR_INPUT if
 * `store` has other modes.
 */
enum slc_status slc_run_names_open(const struct slc_files *files,
                                   const struct slc_run_folder *run,
                                   const char *store,
                                   struct slc_run_names *names,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_run_names_close(struct slc_run_names *names);

/* Memory of the open names in bytes. */
uint64_t slc_run_names_bytes(const struct slc_run_names *names);

/*
 * Copies the name of an index to `text` (SLC_NAME_TEXT_BYTES) as UTF-8; control characters, which
 * could affect a terminal, and bytes that are not UTF-8 are written as \xNN. `text` is "" if the
 * index has no name. Errors: those of slc_names_get.
 */
enum { SLC_NAME_TEXT_BYTES = 4 * SLC_NAME_BYTES_MAX + 1 };
enum slc_status slc_run_names_text(struct slc_run_names *names,
                                   unsigned mode,
                                   uint64_t index,
                                   char *text,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
