/* A fresh folder for what a benchmark writes and removes again. */
#ifndef SLC_TOOLS_BENCH_TEMP_FOLDER_H
#define SLC_TOOLS_BENCH_TEMP_FOLDER_H

#include "base/error.h"

/*
 * Makes an empty folder within `parent`; NULL: $TMPDIR, or /tmp. Owns: *path, freed by slc_free;
 * the folder is the caller's to remove. Errors: SLC_ERR_IO, SLC_ERR_MEMORY; *path is unchanged.
 */
enum slc_status
bench_temp_folder(const char *parent, char **path, struct slc_error *err) SLC_NODISCARD;

#endif
