/* Input of a conversion: a plain file, a compressed file (gzip, bzip2, xz, zstd or lz4, detected by
 * content), or standard input. Text is delivered in order as pieces that end at line ends. Bytes of
 * a binary file are delivered in order or, if the file is plain, from any offset. */
#ifndef SLC_CONVERT_INPUT_H
#define SLC_CONVERT_INPUT_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum length of a line. A valid line is much shorter, because it has at most 16 indices and a
 * value. */
enum { SLC_LINE_BYTES_MAX = 1 << 20 };

struct slc_input;

struct slc_input_info {
    bool seekable;           /* true for a plain regular file, of which any range can be sampled */
    uint64_t stored_bytes;   /* size of the file; 0 means unknown */
    const char *compression; /* "none", "gzip", "bzip2", "xz", "zstd", "lz4" */
    const char *name;        /* the path, or "standard input", for messages */
    uint64_t memory_bytes;   /* memory for reading, including the decoder */
};

/* Opens the file `path`, or standard input if `path` is "-". An empty file can be opened; its first
 * piece is empty. Ownership: release with slc_input_close, which accepts NULL. Errors: SLC_ERR_IO;
 * SLC_ERR_INPUT for a folder or a damaged compressed stream. */
enum slc_status slc_input_open(const struct slc_files *files,
                               const char *path,
                               struct slc_input **input,
                               struct slc_error *err) SLC_NODISCARD;
void slc_input_close(struct slc_input *input);
void slc_input_info(const struct slc_input *input, struct slc_input_info *info);

/* Fills `text` with the next piece: whole lines, at most `capacity` bytes (at least 2 *
 * SLC_LINE_BYTES_MAX). *bytes is 0 at the end of the input. The last line of the input may lack its
 * newline. A fault is reported after all whole lines before it were delivered. Threads: one at a
 * time. Errors: SLC_ERR_INPUT for a line of more than SLC_LINE_BYTES_MAX bytes (with its number) or
 * a damaged stream; SLC_ERR_IO. */
enum slc_status slc_input_next(struct slc_input *input,
                               char *text,
                               size_t capacity,
                               size_t *bytes,
                               struct slc_error *err) SLC_NODISCARD;

/* Returns the first decompressed bytes without consuming them. *bytes is SLC_INPUT_PEEK_BYTES, or
 * less if the input ends or has a fault within these bytes. A later read reports such a fault after
 * all bytes before it were delivered. Call this function before any read. The bytes are borrowed
 * until the first read. */
enum { SLC_INPUT_PEEK_BYTES = 4096 };
const unsigned char *slc_input_peek(struct slc_input *input, size_t *bytes);

/* Reads up to `bytes` decompressed bytes; *got is 0 at the end of the input. Errors: those of
 * slc_input_next. */
enum slc_status slc_input_read(struct slc_input *input,
                               void *data,
                               size_t bytes,
                               size_t *got,
                               struct slc_error *err) SLC_NODISCARD;

/* Returns the file descriptor of a seekable input. Borrowed. */
int slc_input_fd(const struct slc_input *input);

/* Reads whole lines of a seekable input that start after byte `offset`. The sequential position
 * does not change. *bytes may become 0. */
enum slc_status slc_input_sample(struct slc_input *input,
                                 uint64_t offset,
                                 char *text,
                                 size_t capacity,
                                 size_t *bytes,
                                 struct slc_error *err) SLC_NODISCARD;

/* Advances to byte `offset` of the text, where an earlier run ended a piece after `lines` lines.
 * Needs: that run read all pieces with the same `capacity`. A compressed input is read up to the
 * offset, with `text` as buffer. *there becomes false if no piece ends at the offset. Errors: those
 * of slc_input_next. */
enum slc_status slc_input_go_to(struct slc_input *input,
                                uint64_t offset,
                                uint64_t lines,
                                char *text,
                                size_t capacity,
                                bool *there,
                                struct slc_error *err) SLC_NODISCARD;

/* Computes the identity of the file and its version: a hash of its size, inode number, time of the
 * last change and sampled bytes. The identity is 0 if the input is not a regular file. Errors:
 * SLC_ERR_IO. */
enum slc_status slc_input_identity(struct slc_input *input,
                                   uint64_t *identity,
                                   struct slc_error *err) SLC_NODISCARD;
/* Returns the number of bytes of the file that slc_input_identity reads. */
uint64_t slc_input_identity_bytes(const struct slc_input *input);

/* Checks that the size of the file and the time of its last change are the same as when it was
 * opened. If they are not, the bytes that were read belong to different versions of the file.
 * Succeeds if the input is not a regular file. Errors: SLC_ERR_INPUT, SLC_ERR_IO. */
enum slc_status slc_input_check(const struct slc_input *input, struct slc_error *err) SLC_NODISCARD;

/* Returns the stored bytes that were read so far, for progress. */
uint64_t slc_input_consumed(const struct slc_input *input);

/* Returns an estimate of the total bytes of text, or 0 if unknown. The estimate is the size
 * recorded in the file if it is consistent with the text read so far. Otherwise the estimate is
 * extrapolated from the compression ratio so far, which is accurate after a few MiB. */
uint64_t slc_input_text_bytes(const struct slc_input *input);

/* Returns true if the whole input has been delivered. */
bool slc_input_at_end(const struct slc_input *input);

/* Returns the number of line ends in all pieces delivered so far. The next piece starts on the line
 * after them. */
uint64_t slc_input_lines(const struct slc_input *input);

#endif
