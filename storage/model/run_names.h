/*
 * What the indices of a run's modes are called: the names of the store that it was made of, for
 * whoever tells of its factors.
 */
#ifndef SLC_STORAGE_RUN_NAMES_H
#define SLC_STORAGE_RUN_NAMES_H

#include "base/error/error.h"
#include "storage/file/files.h"
#include "storage/manifest/names.h"
#include "storage/model/run_folder.h"

#include <stdint.h>

/* The store that a run was made of, as it is found. */
enum slc_run_store {
    SLC_RUN_STORE_UNTOLD, /* another one was named, or run.json tells of none */
    SLC_RUN_STORE_SAME,
    SLC_RUN_STORE_CHANGED, /* other nonzeros: something was appended, or it was converted anew */
    SLC_RUN_STORE_ABSENT   /* not there, or another tensor in its place */
};

struct slc_run_names {
    enum slc_run_store store;
    struct slc_names *names[SLC_MAX_ORDER];      /* NULL: the mode has none */
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES]; /* "": the mode is called nothing */
};

/*
 * Opens the names of `store`; where that is NULL, of the store that run.json tells of, if it is
 * still there and has modes at least as long: then no names are no fault. A relative path begins
 * at the folder where the run was made, or else, where both were moved, at the current one.
 * A store that had names and is absent, or has changed, is noted (slc_log). `files` may be NULL.
 * Owns: slc_run_names_close. Errors: those of slc_manifest_read and slc_names_open; SLC_ERR_INPUT
 * where the store named has other modes.
 */
enum slc_status slc_run_names_open(const struct slc_files *files,
                                   const struct slc_run_folder *run,
                                   const char *store,
                                   struct slc_run_names *names,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_run_names_close(struct slc_run_names *names);

/* What they hold in memory. */
uint64_t slc_run_names_bytes(const struct slc_run_names *names);

/*
 * The name of an index of a mode as UTF-8 without control characters, which a terminal would obey:
 * these, and bytes that are no UTF-8, stand as \xNN. "" where it has none. `text` has room for
 * SLC_NAME_TEXT_BYTES. Errors: as slc_names_get.
 */
enum { SLC_NAME_TEXT_BYTES = 4 * SLC_NAME_BYTES_MAX + 1 };
enum slc_status slc_run_names_text(struct slc_run_names *names,
                                   unsigned mode,
                                   uint64_t index,
                                   char *text,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
