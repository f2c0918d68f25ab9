/* Temporary file for an input that is compressed or comes from a pipe and must be read out of
 * order. The file is unlinked on creation, so nothing remains however the process ends. */
#ifndef SLC_CONVERT_SPOOL_H
#define SLC_CONVERT_SPOOL_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdint.h>

struct slc_spool_options {
    const struct slc_files *files;
    const char *folder; /* NULL: the folder of `output` */
    const char *output; /* NULL: the current folder */
    uint64_t max_bytes; /* 0: no limit */
};

struct slc_spool;

/* Owns: slc_spool_destroy; accepts NULL. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status slc_spool_create(const struct slc_spool_options *options,
                                 struct slc_spool **spool,
                                 struct slc_error *err) SLC_NODISCARD;
void slc_spool_destroy(struct slc_spool *spool);

/* Appends. Errors: SLC_ERR_BUDGET beyond max_bytes, SLC_ERR_NOSPACE, SLC_ERR_IO. */
enum slc_status slc_spool_append(struct slc_spool *spool,
                                 const void *data,
                                 uint64_t bytes,
                                 struct slc_error *err) SLC_NODISCARD;

/* Append in two steps: the first reserves `bytes` bytes at *at, the second writes them. Threads:
 * one at a time reserves; any number write concurrently. */
enum slc_status slc_spool_reserve(struct slc_spool *spool,
                                  uint64_t bytes,
                                  uint64_t *at,
                                  struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_spool_write(const struct slc_spool *spool,
                                uint64_t at,
                                const void *data,
                                uint64_t bytes,
                                struct slc_error *err) SLC_NODISCARD;

uint64_t slc_spool_bytes(const struct slc_spool *spool);
/* The open file. Borrowed. */
int slc_spool_fd(const struct slc_spool *spool);

#endif
