/*
 * Writes text that is formatted in parallel: every worker fills its own buffer, and buffers are
 * written in ticket order. Writes to a file atomically (PATH.tmp, then rename), or directly to a
 * device, a pipe or standard output, which a file cannot replace.
 */
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
    char *temporary; /* PATH.tmp; NULL: written directly */
    int fd;
    int lock;       /* on the temporary file, until it is renamed */
    uint64_t bytes; /* written */
    unsigned workers;
    size_t buffer_bytes;
    struct slc_buffer memory;
};

/*
 * Opens the output with buffers of `buffer_bytes` per worker. Owns: slc_text_output_finish or
 * slc_text_output_abandon. Errors: SLC_ERR_IO (the file exists and `overwrite` is false, ..),
 * SLC_ERR_MEMORY.
 */
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

/* Appends text. Threads: only the thread whose turn it is. */
enum slc_status slc_text_output_write(struct slc_text_output *output,
                                      const char *text,
                                      size_t bytes,
                                      struct slc_error *err) SLC_NODISCARD;

/* Syncs the file and renames it to PATH. After an error nothing remains. */
enum slc_status slc_text_output_finish(struct slc_text_output *output,
                                       struct slc_error *err) SLC_NODISCARD;
/* Accepts an all-zero struct. */
void slc_text_output_abandon(struct slc_text_output *output);

#endif
