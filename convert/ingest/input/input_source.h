/* Reads the stored bytes of an input, before decompression, and declares the decoders. Internal to
 * input.c (pieces), input_source.c (bytes, detection of compression), input_length.c and the
 * decoders input_gzip.c, input_bzip2.c, input_xz.c, input_zstd.c and input_lz4.c. */
#ifndef SLC_CONVERT_INPUT_SOURCE_H
#define SLC_CONVERT_INPUT_SOURCE_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Number of bytes from which the compression is recognized and the memory of its decoder is
     * determined. */
    SLC_INPUT_HEAD_BYTES = 64,
    /* Bytes per read, enough for the full sequential rate of a drive. */
    SLC_INPUT_READ_BYTES = 256 << 10
};

struct slc_input_source {
    const struct slc_files *files;
    const char *name; /* name of the source, for messages */
    int fd;
    bool by_offset; /* true for a regular file, which is read at offsets; false for a pipe */
    uint64_t consumed;
    /* first bytes of the source, which are read in advance */
    unsigned char head[SLC_INPUT_HEAD_BYTES];
    size_t head_bytes;
    size_t head_used; /* number of bytes of the head that were delivered */
};

/* Reads the first bytes of the source into `head`. */
enum slc_status slc_input_source_peek(struct slc_input_source *source,
                                      struct slc_error *err) SLC_NODISCARD;

/* Reads 1 to `bytes` bytes; *got is 0 at the end of the source. */
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

/* Returns the compression whose magic bytes are at the start of `head`. */
enum slc_compression slc_compression_detect(const unsigned char *head, size_t bytes);

/* Returns the largest window, in bytes, that the decoder accepts in a stream that starts with
 * `head`; a power of two for zstd. Returns 0 for compressions other than xz and zstd, because the
 * memory of their decoders is bounded. */
uint64_t
slc_compression_window(enum slc_compression compression, const unsigned char *head, size_t bytes);

/* Returns the memory of the decoder for a stream that starts with `head`. */
uint64_t
slc_compression_memory(enum slc_compression compression, const unsigned char *head, size_t bytes);

/* Returns the text bytes that a file of `stored_bytes` bytes records: in total (xz), of its last
 * member modulo 2^32 (gzip) or of its first frame (zstd); 0 if unknown. The number is only a hint,
 * because it may be wrong. */
uint64_t slc_compression_length(const struct slc_input_source *source,
                                enum slc_compression compression,
                                uint64_t stored_bytes);

/* Decompresses a source. `read` works like slc_input_source_read. For a damaged or truncated stream
 * it fails with SLC_ERR_INPUT, but only after all data before the damage were delivered, so that
 * faults in earlier lines are reported first. `close` frees the decoder. */
struct slc_input_decoder {
    enum slc_status (*read)(struct slc_input_decoder *decoder,
                            void *data,
                            size_t bytes,
                            size_t *got,
                            struct slc_error *err);
    void (*close)(struct slc_input_decoder *decoder);
    struct slc_input_source *source;
    unsigned char *data; /* buffer of SLC_INPUT_READ_BYTES for stored bytes */
    size_t held;         /* number of stored bytes that were read but not yet decoded */
};

/* Allocates a decoder of `bytes` bytes, whose first member is a struct slc_input_decoder; all other
 * members are zero. Ownership: release with slc_free. Returns NULL and records SLC_ERR_MEMORY if
 * there is no memory. */
void *slc_input_decoder_create(size_t bytes,
                               struct slc_input_source *source,
                               const struct slc_input_decoder *first,
                               struct slc_error *err);

/* Reads stored bytes into `data` and sets `held` to their number, 0 at the end of the source.
 * `inside` is NULL if the source may end here. Otherwise an end is an error, and `inside` is the
 * reason in its message. */
enum slc_status slc_input_decoder_refill(struct slc_input_decoder *decoder,
                                         const char *inside,
                                         struct slc_error *err) SLC_NODISCARD;

/* Records SLC_ERR_MEMORY with the message that all decoders use. */
enum slc_status slc_input_no_memory(struct slc_error *err);

/* Opens a gzip decoder (zlib). */
enum slc_status slc_input_gzip_open(struct slc_input_source *source,
                                    struct slc_input_decoder **decoder,
                                    struct slc_error *err) SLC_NODISCARD;

/* Opens an xz decoder (liblzma). Its reads may also fail with the fault of slc_input_too_wide. */
enum slc_status slc_input_xz_open(struct slc_input_source *source,
                                  struct slc_input_decoder **decoder,
                                  struct slc_error *err) SLC_NODISCARD;

/* Opens a zstd decoder (libzstd). Its reads may also fail with the fault of slc_input_too_wide. */
enum slc_status slc_input_zstd_open(struct slc_input_source *source,
                                    struct slc_input_decoder **decoder,
                                    struct slc_error *err) SLC_NODISCARD;

/* Opens a bzip2 decoder (libbz2). */
enum slc_status slc_input_bzip2_open(struct slc_input_source *source,
                                     struct slc_input_decoder **decoder,
                                     struct slc_error *err) SLC_NODISCARD;

/* Opens an lz4 decoder (libarchive). */
enum slc_status slc_input_lz4_open(struct slc_input_source *source,
                                   struct slc_input_decoder **decoder,
                                   struct slc_error *err) SLC_NODISCARD;

/* Records the fault of a damaged stream, with the name of the source and the number of bytes
 * read. */
enum slc_status
slc_input_damaged(const struct slc_input_source *source, const char *reason, struct slc_error *err);

/* Records the fault that a later part of the stream has a larger window than the first part, for
 * which memory was planned. */
enum slc_status slc_input_too_wide(const struct slc_input_source *source,
                                   enum slc_compression compression,
                                   struct slc_error *err);

#endif
