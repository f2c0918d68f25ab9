/*
 * Where a tensor comes from: a plain file, a compressed one (gzip, bzip2, xz, zstd, lz4 by
 * content), or standard input. Text is delivered as pieces that end at line ends, in order; of a
 * binary file its bytes, in order or, where it is plain, from anywhere.
 */
#ifndef SLC_CONVERT_INPUT_H
#define SLC_CONVERT_INPUT_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest line accepted: no dialect needs more than 16 indices and a value. */
enum { SLC_LINE_BYTES_MAX = 1 << 20 };

struct slc_input;

struct slc_input_info {
    bool seekable;           /* a plain regular file: random ranges can be sampled */
    uint64_t stored_bytes;   /* size of the file; 0 when unknown */
    const char *compression; /* "none", "gzip", "bzip2", "xz", "zstd", "lz4" */
    const char *name;        /* for messages: the path, or "standard input" */
    uint64_t memory_bytes; /* what reading takes, decoder included, once under way: for the plan */
};

/*
 * Opens `path` ("-": standard input). Owns: slc_input_close, which takes NULL.
 * Errors: SLC_ERR_IO; SLC_ERR_INPUT for a folder or a damaged compressed stream. An empty file
 * opens: its first piece is empty.
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
 * Called by one thread at a time. A fault is reported once the whole lines before it have been
 * delivered. Errors: SLC_ERR_INPUT for a line above SLC_LINE_BYTES_MAX (with
 * its line number), a damaged stream; SLC_ERR_IO.
 */
enum slc_status slc_input_next(struct slc_input *input,
                               char *text,
                               size_t capacity,
                               size_t *bytes,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * The first bytes of what the file holds, decompressed, without consuming them: *bytes, at most
 * SLC_INPUT_PEEK_BYTES and fewer only where the input ends or has a fault, which is reported when
 * all before it has been delivered. Before anything else is read. Borrowed until then.
 */
enum { SLC_INPUT_PEEK_BYTES = 4096 };
const unsigned char *slc_input_peek(struct slc_input *input, size_t *bytes);

/* The next bytes, decompressed, up to `bytes`; *got is 0 at the end. Errors: as slc_input_next. */
enum slc_status slc_input_read(struct slc_input *input,
                               void *data,
                               size_t bytes,
                               size_t *got,
                               struct slc_error *err) SLC_NODISCARD;

/* The open file of a seekable input. Borrowed. */
int slc_input_fd(const struct slc_input *input);

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

/*
 * Goes forward to byte `offset` of the text, where a piece ended that was filled from here on with
 * pieces of this capacity, `lines` line ends into it. Where the input is compressed, all before it
 * is read into `text`. *there is false where no piece ends there. Errors: as slc_input_next.
 */
enum slc_status slc_input_go_to(struct slc_input *input,
                                uint64_t offset,
                                uint64_t lines,
                                char *text,
                                size_t capacity,
                                bool *there,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * What tells the file from another, or from what it was before: its length, its number, the time of
 * its last change and bytes from all over it, hashed. 0 where it is no regular file. Errors:
 * SLC_ERR_IO.
 */
enum slc_status slc_input_identity(struct slc_input *input,
                                   uint64_t *identity,
                                   struct slc_error *err) SLC_NODISCARD;
/* What that reads of the file. */
uint64_t slc_input_identity_bytes(const struct slc_input *input);

/*
 * Whether the file is still what it was when it was opened, by its length and the time of its last
 * change: what was read of one that others write to is of no one moment. Nothing is known of what
 * is no regular file. Errors: SLC_ERR_INPUT, SLC_ERR_IO.
 */
enum slc_status slc_input_check(const struct slc_input *input, struct slc_error *err) SLC_NODISCARD;

/* Bytes of the stored input consumed so far, for progress. */
uint64_t slc_input_consumed(const struct slc_input *input);

/*
 * About how many bytes of text there are in all: as the file says where that goes with what was
 * read so far, else by how much that had shrunk, which some MiB tell well. 0: not known.
 */
uint64_t slc_input_text_bytes(const struct slc_input *input);

/* True when all of the input has been delivered. */
bool slc_input_at_end(const struct slc_input *input);

/* Line ends in all pieces delivered so far: the next piece starts at this line plus one. */
uint64_t slc_input_lines(const struct slc_input *input);

#endif
