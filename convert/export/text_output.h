/* Writes text that is formatted in parallel: every worker fills its own buffer, and the buffers are
 * written in turn. A file is written atomically, as PATH.tmp that is then renamed. A device, a pipe
 * or standard output cannot be replaced by a file, so text is written to it directly. */
#ifndef SLC_CONVERT_TEXT_OUTPUT_H
#define SLC_CONVERT_TEXT_OUTPUT_H

#include "base/error/error.h"
#include "base/memory/memory.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_text_output {
    const struct slc_files *files;
    char *path;      /* NULL: standard output */
    char *temporary; /* PATH.tmp; NULL: text is written directly */
    int fd;
    int lock;       /* lock of the temporary file until it is renamed */
    uint64_t bytes; /* bytes written */
    unsigned workers;
    size_t buffer_bytes;
    struct slc_buffer memory;
};

/* Opens the output with buffers of `buffer_bytes` per worker. Ownership: release with
 * slc_text_output_finish or slc_text_output_abandon. Errors: SLC_ERR_IO, for example if the file
 * exists and `overwrite` is false; SLC_ERR_MEMORY. */
enum slc_status slc_text_output_open(struct slc_text_output *output,
                                     const struct slc_files *files,
                                     const char *path,
                                     bool overwrite,
                                     unsigned workers,
                                     size_t buffer_bytes,
                                     struct slc_error *err) SLC_NODISCARD;

static inline char *slc_text_output_buffer(const struct slc_text_output *output, unsigned worker)
{
    return (char *)output->memory.data + worker * output->buffer_bytes;
}

/* Appends text. Threads: only the worker whose turn it is may call this function. */
enum slc_status slc_text_output_write(struct slc_text_output *output,
                                      const char *text,
                                      size_t bytes,
                                      struct slc_error *err) SLC_NODISCARD;

/* Syncs the file and renames it to PATH. After an error nothing remains. */
enum slc_status slc_text_output_finish(struct slc_text_output *output,
                                       struct slc_error *err) SLC_NODISCARD;
/* Removes the temporary file and releases the buffers. Accepts an all-zero struct. */
void slc_text_output_abandon(struct slc_text_output *output);

#endif
