/*
 * Stored bytes of an input, before decompression, and the decoders. Internal to input.c (pieces),
 * input_source.c (bytes, detection of compression), input_length.c and the decoders input_gzip.c,
 * input_bzip2.c, input_xz.c, input_zstd.c and input_lz4.c.
 */
#ifndef SLC_CONVERT_INPUT_SOURCE_H
#define SLC_CONVERT_INPUT_SOURCE_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes read to recognize the compression and to determine the memory of its decoder. */
    SLC_INPUT_HEAD_BYTES = 64,
    /* Bytes per read, enough for the full sequential rate of any drive. */
    SLC_INPUT_READ_BYTES = 256 << 10
};

struct slc_input_source {
    const struct slc_files *files;
    const char *name; /* for messages */
    int fd;
    bool by_offset; /* a regular file, read at offsets; otherwise a pipe */
    uint64_t consumed;
    unsigned char head[SLC_INPUT_HEAD_BYTES]; /* the first bytes, read in advance */
    size_t head_bytes;
    size_t head_used; /* head bytes already delivered */
};

/* Fills in the head. */
enum slc_status slc_input_source_peek(struct slc_input_source *source,
                                      struct slc_error *err) SLC_NODISCARD;

/* Reads 1 to `bytes` bytes; *got = 0 at the end. */
enum slc_status slc_input_source_read(struct slc_input_source *source,
                                      void *data,
                                      size_t bytes,
                                      size_t *got,
                                      struct slc_error *err) SLC_NODISCARD;

enum slc_compression {
    SLC_COMPRESSION_NONE,
    SLC_COMPRESSION_GZIP,
    SLC_COMPRESSION_BZIP2,
    SLC_COMPRESSION_XZ,
    SLC_COMPRESSION_ZSTD,
    SLC_COMPRESSION_LZ4
};

const char *slc_compression_name(enum slc_compression compression);

/* The compression whose magic bytes `head` starts with. */
enum slc_compression slc_compression_detect(const unsigned char *head, size_t bytes);

/*
 * xz and zstd: the largest window that a stream starting with `head` may have before the decoder
 * rejects it (bytes; a power of two for zstd). 0 for other compressions, whose decoders have
 * bounded memory.
 */
uint64_t
slc_compression_window(enum slc_compression compression, const unsigned char *head, size_t bytes);

/* Memory of the decoder for a stream that starts with `head`. */
uint64_t
slc_compression_memory(enum slc_compression compression, const unsigned char *head, size_t bytes);

/* Text bytes that a file of `stored_bytes` bytes claims to hold: in total (xz), in its last part
 * modulo 2^32 (gzip) or in its first part (zstd); 0: unknown. Only a hint, because the file may be
 * wrong. */
uint64_t slc_compression_length(const struct slc_input_source *source,
                                enum slc_compression compression,
                                uint64_t stored_bytes);

/*
 * A decompressed view of a source. `read` is like slc_input_source_read and fails with
 * SLC_ERR_INPUT for a damaged or truncated stream, but only after all data before the damage has
 * been delivered, so that faults in earlier lines are reported first. `close` frees the decoder.
 */
struct slc_input_decoder {
    enum slc_status (*read)(struct slc_input_decoder *decoder,
                            void *data,
                            size_t bytes,
                            size_t *got,
                            struct slc_error *err);
    void (*close)(struct slc_input_decoder *decoder);
    struct slc_input_source *source;
    unsigned char *data; /* stored bytes: SLC_INPUT_READ_BYTES of memory */
    size_t held;         /* stored bytes read but not yet decoded */
};

/* Allocates a decoder of `bytes` bytes, zeroed except for its first member, a struct
 * slc_input_decoder. Owns: slc_free. Returns NULL and records SLC_ERR_MEMORY if out of memory. */
void *slc_input_decoder_create(size_t bytes,
                               struct slc_input_source *source,
                               const struct slc_input_decoder *first,
                               struct slc_error *err);

/* Reads stored bytes into `data` and sets `held` to their number, 0 at the end of the source. If
 * the source must not end here, `inside` names the part that an end would truncate, and the end is
 * an error. NULL: the source may end here. */
enum slc_status slc_input_decoder_refill(struct slc_input_decoder *decoder,
                                         const char *inside,
                                         struct slc_error *err) SLC_NODISCARD;

/* Records the decoders' common SLC_ERR_MEMORY message. */
enum slc_status slc_input_no_memory(struct slc_error *err);

/* gzip, by zlib. */
enum slc_status slc_input_gzip_open(struct slc_input_source *source,
                                    struct slc_input_decoder **decoder,
                                    struct slc_error *err) SLC_NODISCARD;

/* xz, by liblzma. Also fails as slc_input_too_wide. */
enum slc_status slc_input_xz_open(struct slc_input_source *source,
                                  struct slc_input_decoder **decoder,
                                  struct slc_error *err) SLC_NODISCARD;

/* zstd, by libzstd. Also fails as slc_input_too_wide. */
enum slc_status slc_input_zstd_open(struct slc_input_source *source,
                                    struct slc_input_decoder **decoder,
                                    struct slc_error *err) SLC_NODISCARD;

/* bzip2, by libbz2. */
enum slc_status slc_input_bzip2_open(struct slc_input_source *source,
                                     struct slc_input_decoder **decoder,
                                     struct slc_error *err) SLC_NODISCARD;

/* lz4, by libarchive. */
enum slc_status slc_input_lz4_open(struct slc_input_source *source,
                                   struct slc_input_decoder **decoder,
                                   struct slc_error *err) SLC_NODISCARD;

/* Records a damaged stream with the name of the source and the number of bytes read. */
enum slc_status
slc_input_damaged(const struct slc_input_source *source, const char *reason, struct slc_error *err);

/* Fails because a later part has a larger window than the first part, for which memory was planned.
 */
enum slc_status slc_input_too_wide(const struct slc_input_source *source,
                                   enum slc_compression compression,
                                   struct slc_error *err);

#endif
