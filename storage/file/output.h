/* A file that is written sequentially through a bounded buffer and published atomically: PATH.tmp
 * is written, synced and renamed, and its folder is synced. PATH.tmp stays locked until then, so a
 * second run with the same output is refused. slc_file_replace (files.h) does the same for data in
 * memory. */
#ifndef SLC_STORAGE_OUTPUT_H
#define SLC_STORAGE_OUTPUT_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stddef.h>
#include <stdint.h>

/* Large enough to make the cost of a system call negligible. */
enum { SLC_OUTPUT_BUFFER_BYTES = 256 * 1024 };

enum { SLC_OUTPUT_LINE_BYTES = 512 };

struct slc_output {
    const struct slc_files *files;
    char *path;
    char *temporary;
    int fd;
    int lock; /* lock on the temporary file, held until the file is published */
    uint8_t *buffer;
    size_t used;
    uint64_t written;
};

/* Creates PATH.tmp. `files` may be NULL. Ownership: the caller ends the output with
 * slc_output_commit or slc_output_abandon, except after an error. */
enum slc_status slc_output_open(struct slc_output *output,
                                const struct slc_files *files,
                                const char *path,
                                struct slc_error *err) SLC_NODISCARD;

/* Reserves `bytes` bytes (at most SLC_OUTPUT_BUFFER_BYTES) in the buffer, flushing it if needed.
 * The caller writes to *space and adds the bytes used to output->used. */
enum slc_status slc_output_reserve(struct slc_output *output,
                                   size_t bytes,
                                   uint8_t **space,
                                   struct slc_error *err) SLC_NODISCARD;

/* Appends formatted text of at most SLC_OUTPUT_LINE_BYTES bytes. */
enum slc_status
slc_output_print(struct slc_output *output, struct slc_error *err, const char *format, ...)
    SLC_PRINTF(3, 4) SLC_NODISCARD;

/* Leaves out `bytes` bytes, which slc_output_fill fills, and sets *offset to their offset. */
enum slc_status slc_output_skip(struct slc_output *output,
                                uint64_t bytes,
                                uint64_t *offset,
                                struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_output_fill(struct slc_output *output,
                                uint64_t offset,
                                const void *data,
                                uint64_t bytes,
                                struct slc_error *err) SLC_NODISCARD;

/* Publishes the file, or removes PATH.tmp after an error. Releases `output` in both cases. */
enum slc_status slc_output_commit(struct slc_output *output, struct slc_error *err) SLC_NODISCARD;
void slc_output_abandon(struct slc_output *output);

#endif
