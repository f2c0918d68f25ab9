/* Shared by the fuzz targets of the store: a scratch folder and whole files in memory. */
#ifndef SLC_FUZZ_STORE_H
#define SLC_FUZZ_STORE_H

#include <stddef.h>
#include <stdint.h>

/* The entry point every target defines (libFuzzer's contract). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A folder that exists as long as the process; created at the first call. */
const char *fuzz_folder(void);
/* Path of `name` in that folder; valid until the next call. */
const char *fuzz_path(const char *name);
/* Replaces the contents of the file; stops the process on failure (a fault of the machine). */
void fuzz_write(const char *path, const void *data, size_t bytes);

#endif
