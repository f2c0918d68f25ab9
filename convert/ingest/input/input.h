/*
 * Input of a conversion: a plain file, a compressed file (gzip, bzip2, xz, zstd or lz4, detected by
 * content), or standard input. Text is delivered in order as pieces that end at line ends. Bytes of
 * a binary file are delivered in order or, if the file is plain, from any offset.
 */
#ifndef SLC_CONVERT_INPUT_H
#define SLC_CONVERT_INPUT_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest line accepted. This is ample, because no dialect has more than 16 indices and a value per
 * line. */
enum { SLC_LINE_BYTES_MAX = 1 << 20 };

struct slc_input;

struct slc_input_info {
    bool seekable;           /* a plain regular file: any range can be sampled */
    uint64_t stored_bytes;   /* size of the file; 0 when unknown */
    const char *compression; /* "none", "gzip", "bzip2", "xz", "zstd", "lz4" */
    const char *name;        /* for messages: the path, or "standard input" */
    uint64_t memory_bytes;   /* memory for reading, including the decoder */
};

/*
 * Opens `path` ("-": standard input). Owns: slc_input_close, which accepts NULL. Errors:
 * SLC_ERR_IO; SLC_ERR_INPUT for a folder or a damaged compressed stream. An empty file can be
 * opened; its first piece is empty.
 */
enum slc_status slc_input_open(const struct slc_files *files,
                               const char *path,
                               struct slc_input **input,
                               struct slc_error *err) SLC_NODISCARD;
void slc_input_close(struct slc_input *input);
void slc_input_info(const struct slc_input *input, struct slc_input_info *info);

/*
 * Fills `text` with the next piece: whole lines, at most `capacity` bytes (at least 2 *
 * SLC_LINE_BYTES_MAX). *bytes is 0 at the end. The last piece may lack its newline. A fault is
 * reported after all whole lines before it are delivered. Threads: one at a time. Errors:
 * SLC_ERR_INPUT for a line above SLC_LINE_BYTES_MAX (with its line number) or a damaged stream;
 * SLC_ERR_IO.
 */
enum slc_status slc_input_next(struct slc_input *input,
                               char *text,
                               size_t capacity,
                               size_t *bytes,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Returns the first decompressed bytes without consuming them. *bytes is SLC_INPUT_PEEK_BYTES, or
 * less if the input ends or has a fault there. A read reports such a fault after delivering all
 * bytes before it. Must be called before any read; the bytes are borrowed until the first read.
 */
enum { SLC_INPUT_PEEK_BYTES = 4096 };
const unsigned char *slc_input_peek(struct slc_input *input, size_t *bytes);

/* Reads up to `bytes` decompressed bytes; *got is 0 at the end. Errors: as slc_input_next. */
enum slc_status slc_input_read(struct slc_input *input,
                               void *data,
                               size_t bytes,
                               size_t *got,
                               struct slc_error *err) SLC_NODISCARD;

/* The open file of a seekable input. Borrowed. */
int slc_input_fd(const struct slc_input *input);

/* Seekable inputs: reads whole lines from around byte `offset` (the first partial line is dropped)
 * without moving the sequential position. *bytes may be 0. */
enum slc_status slc_input_sample(struct slc_input *input,
                                 uint64_t offset,
                                 char *text,
                                 size_t capacity,
                                 size_t *bytes,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Advances to byte `offset` of the text, which is after `lines` lines and where an earlier run
 * ended a piece. That run must have filled all pieces with the same capacity. A compressed input is
 * read through `text` up to the offset. *there is false if no piece ends there. Errors: as
 * slc_input_next.
 */
enum slc_status slc_input_go_to(struct slc_input *input,
                                uint64_t offset,
                                uint64_t lines,
                                char *text,
                                size_t capacity,
                                bool *there,
                                struct slc_error *err) SLC_NODISCARD;

/* Identifies the file and its version by a hash of its size, inode number, time of last change and
 * sampled bytes. 0 if the input is not a regular file. Errors: SLC_ERR_IO. */
enum slc_status slc_input_identity(struct slc_input *input,
                                   uint64_t *identity,
                                   struct slc_error *err) SLC_NODISCARD;
/* Bytes of the file that slc_input_identity reads. */
uint64_t slc_input_identity_bytes(const struct slc_input *input);

/*
 * Checks, by size and time of last change, that the file has not changed since it was opened,
 * because bytes read during a change do not belong to one version. Succeeds if the input is not a
 * regular file. Errors: SLC_ERR_INPUT, SLC_ERR_IO.
 */
enum slc_status slc_input_check(const struct slc_input *input, struct slc_error *err) SLC_NODISCARD;

/* Stored bytes consumed so far, for progress. */
uint64_t slc_input_consumed(const struct slc_input *input);

/*
 * Estimated total bytes of text: the size recorded in the file if it is consistent with the text
 * read so far, otherwise an extrapolation of the compression ratio so far, which is accurate after
 * a few MiB. 0: unknown.
 */
uint64_t slc_input_text_bytes(const struct slc_input *input);

/* True if the whole input has been delivered. */
bool slc_input_at_end(const struct slc_input *input);

/* Number of line ends in all pieces delivered so far. The next piece starts on the following line.
 */
uint64_t slc_input_lines(const struct slc_input *input);

#endif
