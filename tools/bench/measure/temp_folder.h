/* A fresh folder for what a benchmark writes and removes again. */
#ifndef SLC_TOOLS_BENCH_TEMP_FOLDER_H
#define SLC_TOOLS_BENCH_TEMP_FOLDER_H

#include "base/error/error.h"

/*
 * Makes an empty folder within `parent`; NULL: $TMPDIR, or /tmp. A signal that ends the program
 * removes it, for which the signal thread is started: one folder a program, made before any other
 * thread. Owns: *path, bench_temp_folder_remove. Errors: SLC_ERR_IO, SLC_ERR_MEMORY,
 * SLC_ERR_SYSTEM; *path is unchanged.
 */
enum slc_status
bench_temp_folder(const char *parent, char **path, struct slc_error *err) SLC_NODISCARD;

/* Removes it and all in it, or says that it is left; frees `path`. Takes NULL. */
void bench_temp_folder_remove(char *path);

#endif
