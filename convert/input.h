/*
 * Where text comes from: a plain file, a compressed one (gzip, bzip2, xz, zstd, lz4 by content,
 * through libarchive), or standard input. Delivered as pieces that end at line ends, in order.
 */
#ifndef SLC_CONVERT_INPUT_H
#define SLC_CONVERT_INPUT_H

#include "base/error.h"
#include "storage/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slc_input;

struct slc_input_info {
    bool seekable;           /* a plain regular file: random ranges can be sampled */
    uint64_t stored_bytes;   /* size of the file; 0 when unknown */
    const char *compression; /* "none", "gzip", "bzip2", "xz", "zstd", "lz4" */
};

/*
 * Opens `path` ("-": standard input). Owns: slc_input_close, which takes NULL.
 * Errors: SLC_ERR_IO; SLC_ERR_INPUT for an empty file or a damaged compressed stream.
 */
enum slc_status slc_input_open(const struct slc_files *files,
                               const char *path,
                               struct slc_input **input,
                               struct slc_error *err) SLC_NODISCARD;
void slc_input_close(struct slc_input *input);
void slc_input_info(const struct slc_input *input, struct slc_input_info *info);

/*
 * Fills `text` with the next piece: whole lines, at most `capacity` bytes (at least
 * 2 * SLC_LINE_BYTES_MAX). *bytes is 0 at the end. The last piece may lack its newline.
 * Called by one thread at a time. Errors: SLC_ERR_INPUT for a line above SLC_LINE_BYTES_MAX (with
 * its line number), a damaged stream; SLC_ERR_IO.
 */
enum slc_status slc_input_next(struct slc_input *input,
                               char *text,
                               size_t capacity,
                               size_t *bytes,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Seekable inputs: reads whole lines from around byte `offset` (the first partial line is dropped)
 * without moving the sequential position. *bytes may be 0.
 */
enum slc_status slc_input_sample(struct slc_input *input,
                                 uint64_t offset,
                                 char *text,
                                 size_t capacity,
                                 size_t *bytes,
                                 struct slc_error *err) SLC_NODISCARD;

/* Bytes of the stored input consumed so far, for progress. */
uint64_t slc_input_consumed(const struct slc_input *input);

#endif
