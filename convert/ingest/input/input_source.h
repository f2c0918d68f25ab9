/*
 * The stored bytes of an input, before decompression, and the decoders. Internal to
 * convert/ingest/input/input.c (pieces), input_source.c (bytes, recognition of compressions) and
 * the decoders, input_gzip.c, input_bzip2.c, input_xz.c, input_zstd.c and input_lz4.c, and
 * input_length.c.
 */
#ifndef SLC_CONVERT_INPUT_SOURCE_H
#define SLC_CONVERT_INPUT_SOURCE_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes looked at to recognize a compression and what its decoder will need. */
    SLC_INPUT_HEAD_BYTES = 64,
    /* What a decoder asks of the source: large enough for sequential rates of any drive. */
    SLC_INPUT_READ_BYTES = 256 << 10
};

struct slc_input_source {
    const struct slc_files *files;
    const char *name; /* for messages */
    int fd;
    bool by_offset; /* a regular file, read at offsets; otherwise a pipe */
    uint64_t consumed;
    unsigned char head[SLC_INPUT_HEAD_BYTES]; /* the first bytes, read ahead */
    size_t head_bytes;
    size_t head_used; /* of them given out */
};

/* Fills in the head. */
enum slc_status slc_input_source_peek(struct slc_input_source *source,
                                      struct slc_error *err) SLC_NODISCARD;

/* Reads 1 to `bytes` bytes, *got = 0 at the end. */
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
 * Of xz and zstd the largest window that an input may have which starts with `head`, from which on
 * decoders refuse (bytes; of zstd a power of two); 0 for others, whose decoders' memory is bounded.
 */
uint64_t
slc_compression_window(enum slc_compression compression, const unsigned char *head, size_t bytes);

/* Memory that a decoder of the stream starting with `head` will take, for the plan. */
uint64_t
slc_compression_memory(enum slc_compression compression, const unsigned char *head, size_t bytes);

/*
 * Bytes of text that the file, `stored_bytes` long, says it holds: all of it (xz), those of its
 * last part modulo 2^32 (gzip) or of its first (zstd); 0: it says nothing. A hint, for any file may
 * lie.
 */
uint64_t slc_compression_length(const struct slc_input_source *source,
                                enum slc_compression compression,
                                uint64_t stored_bytes);

/*
 * A decompressed view of a source. `read` is as slc_input_source_read and fails with SLC_ERR_INPUT
 * for a damaged or truncated stream, once all that could be decompressed before it has been given
 * out: faults of lines there are then told first; `close` frees.
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
    size_t held;         /* stored bytes that were read and not looked at yet */
};

/*
 * A decoder of `bytes` bytes, all zero but for its first member, which is a struct
 * slc_input_decoder. Owns: slc_free. NULL, and SLC_ERR_MEMORY recorded, without memory.
 */
void *slc_input_decoder_create(size_t bytes,
                               struct slc_input_source *source,
                               const struct slc_input_decoder *first,
                               struct slc_error *err);

/*
 * Reads stored bytes to `data`: `held` of them, 0 at the end of the source, which is an error where
 * `inside` says inside of what it ends (NULL: it may end here).
 */
enum slc_status slc_input_decoder_refill(struct slc_input_decoder *decoder,
                                         const char *inside,
                                         struct slc_error *err) SLC_NODISCARD;

/* SLC_ERR_MEMORY, as every decoder says it. */
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

/* Records that the stream is damaged, naming the source and how far it was read. */
enum slc_status
slc_input_damaged(const struct slc_input_source *source, const char *reason, struct slc_error *err);

/* Records that a later part has a larger window than the first, for which there is no room. */
enum slc_status slc_input_too_wide(const struct slc_input_source *source,
                                   enum slc_compression compression,
                                   struct slc_error *err);

#endif
