/*
 * A file written from front to back through a bounded buffer and put in place atomically: PATH.tmp,
 * sync, rename, sync of the folder. PATH.tmp is locked meanwhile: of two runs with one output the
 * second is refused. slc_file_replace (files.h) does the same to bytes at hand.
 */
#ifndef SLC_STORAGE_OUTPUT_H
#define SLC_STORAGE_OUTPUT_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stddef.h>
#include <stdint.h>

/* Large enough that a system call costs little next to the bytes it moves. */
enum { SLC_OUTPUT_BUFFER_BYTES = 256 * 1024 };

enum { SLC_OUTPUT_LINE_BYTES = 512 };

struct slc_output {
    const struct slc_files *files;
    char *path;
    char *temporary;
    int fd;
    int lock; /* on the temporary file, until it is in its place */
    uint8_t *buffer;
    size_t used;
    uint64_t written;
};

/* Owns: slc_output_commit or slc_output_abandon, after success only. `files` may be NULL. */
enum slc_status slc_output_open(struct slc_output *output,
                                const struct slc_files *files,
                                const char *path,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * Room for `bytes` (at most SLC_OUTPUT_BUFFER_BYTES) bytes in the buffer, which is flushed for it
 * where needed: fill in what *room points to, then add what was used to output->used.
 */
enum slc_status slc_output_reserve(struct slc_output *output,
                                   size_t bytes,
                                   uint8_t **room,
                                   struct slc_error *err) SLC_NODISCARD;

/* Appends a line of text, or a part of one, of at most SLC_OUTPUT_LINE_BYTES bytes. */
enum slc_status
slc_output_print(struct slc_output *output, struct slc_error *err, const char *format, ...)
    SLC_PRINTF(3, 4) SLC_NODISCARD;

/*
 * Leaves `bytes` bytes out, which slc_output_fill writes in any order: *offset is where they begin.
 * What follows comes behind them.
 */
enum slc_status slc_output_leave(struct slc_output *output,
                                 uint64_t bytes,
                                 uint64_t *offset,
                                 struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_output_fill(struct slc_output *output,
                                uint64_t offset,
                                const void *data,
                                uint64_t bytes,
                                struct slc_error *err) SLC_NODISCARD;

/* Puts the file in its place, or leaves nothing behind; releases `output` either way. */
enum slc_status slc_output_commit(struct slc_output *output, struct slc_error *err) SLC_NODISCARD;
void slc_output_abandon(struct slc_output *output);

#endif
