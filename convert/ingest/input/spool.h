/* Temporary file for data that must be read out of order, such as a compressed input or a pipe. The
 * file is unlinked when it is created, so the system deletes it however the process ends. */
#ifndef SLC_CONVERT_SPOOL_H
#define SLC_CONVERT_SPOOL_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdint.h>

struct slc_spool_options {
    const struct slc_files *files;
    const char *folder; /* NULL means the folder of `output` */
    const char *output; /* NULL means the current folder */
    uint64_t max_bytes; /* 0 means no limit */
};

struct slc_spool;

/* Creates an empty file. Ownership: release with slc_spool_destroy, which accepts NULL. Errors:
 * SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status slc_spool_create(const struct slc_spool_options *options,
                                 struct slc_spool **spool,
                                 struct slc_error *err) SLC_NODISCARD;
void slc_spool_destroy(struct slc_spool *spool);

/* Appends bytes to the file. Errors: SLC_ERR_BUDGET if the file would exceed max_bytes,
 * SLC_ERR_NOSPACE, SLC_ERR_IO. */
enum slc_status slc_spool_append(struct slc_spool *spool,
                                 const void *data,
                                 uint64_t bytes,
                                 struct slc_error *err) SLC_NODISCARD;

/* These functions append in two steps: slc_spool_reserve reserves `bytes` bytes at offset *at, and
 * slc_spool_write writes them. Threads: one at a time may reserve; any number may write at the same
 * time. */
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
/* Returns the file descriptor. Borrowed. */
int slc_spool_fd(const struct slc_spool *spool);

#endif
