/* Reads the stored bytes of an input and detects its compression. */
#include "convert/ingest/input/input_source.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum slc_status slc_input_source_read(
    struct slc_input_source *source, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    const struct slc_files *files = source->files;
    int64_t result;

    if (source->head_used < source->head_bytes) {
        size_t left = source->head_bytes - source->head_used;

        *got = bytes < left ? bytes : left;
        memcpy(data, source->head + source->head_used, *got);
        source->head_used += *got;
        return SLC_OK;
    }
    do {
        result = source->by_offset
                     ? files->read_at(files->self, source->fd, data, bytes, source->consumed)
                     : files->read(files->self, source->fd, data, bytes);
    } while (result == -EINTR);
    if (result < 0) {
        return slc_fail_errno(err, (int)-result, source->name, "cannot read at byte %" PRIu64,
                              source->consumed);
    }
    source->consumed += (uint64_t)result;
    *got = (size_t)result;
    return SLC_OK;
}

enum slc_status slc_input_source_peek(struct slc_input_source *source, struct slc_error *err)
{
    unsigned char head[SLC_INPUT_HEAD_BYTES];
    size_t filled = 0;

    while (filled < sizeof head) {
        size_t got;

        SLC_TRY(slc_input_source_read(source, head + filled, sizeof head - filled, &got, err));
        if (got == 0) {
            break;
        }
        filled += got;
    }
    memcpy(source->head, head, filled);
    source->head_bytes = filled;
    return SLC_OK;
}

static const struct {
    const char *name;
    const char *magic;
    size_t magic_bytes;
    /* memory of the decoder, in addition to the window if the header states a window */
    uint64_t memory_bytes;
} compressions[] = {
    [SLC_COMPRESSION_NONE] = {"none", "", 0, 0},
    [SLC_COMPRESSION_GZIP] = {"gzip", "\x1f\x8b\x08", 3, 512 << 10},
    [SLC_COMPRESSION_BZIP2] = {"bzip2", "BZh", 3, 5 << 20},
    [SLC_COMPRESSION_XZ] = {"xz",
                            "\xfd"
                            "7zXZ\0",
                            6, 1 << 20},
    [SLC_COMPRESSION_ZSTD] = {"zstd", "\x28\xb5\x2f\xfd", 4, 2 << 20},
    [SLC_COMPRESSION_LZ4] = {"lz4", "\x04\x22\x4d\x18", 4, 10 << 20},
};

/* Limits of the result of slc_compression_window. Each zstd frame has its own window, and every
 * decoder must accept 8 MiB ([RFC8878] section 3.1.1.1.2). */
static const uint64_t zstd_window_max = UINT64_C(128) << 20;
static const uint64_t zstd_window_min = UINT64_C(8) << 20;
static const uint64_t xz_window_max = UINT64_C(1) << 30;

/* Window size to assume if the header states none: that of `xz -9`, the largest preset. */
static const uint64_t unknown_window_bytes = UINT64_C(64) << 20;

const char *slc_compression_name(enum slc_compression compression)
{
    return compressions[compression].name;
}

enum slc_compression slc_compression_detect(const unsigned char *head, size_t bytes)
{
    for (unsigned i = 1; i < sizeof compressions / sizeof compressions[0]; i++) {
        size_t magic_bytes = compressions[i].magic_bytes;

        if (bytes < magic_bytes || memcmp(head, compressions[i].magic, magic_bytes) != 0) {
            continue;
        }
        /* A text could also start with the letters "BZh", but in bzip2 a level digit follows
         * them. */
        if (i == SLC_COMPRESSION_BZIP2 && (bytes < 4 || head[3] < '1' || head[3] > '9')) {
            continue;
        }
        return (enum slc_compression)i;
    }
    return SLC_COMPRESSION_NONE;
}

/* Returns the window of a zstd frame: its window descriptor, or the content size of a single
 * segment ([RFC8878] section 3.1.1.1). */
static uint64_t zstd_window(const unsigned char *head, size_t bytes)
{
    static const unsigned dictionary_id_bytes[] = {0, 1, 2, 4};
    unsigned descriptor = bytes > 4 ? head[4] : 0;

    if (bytes < 18) {
        return 0;
    }
    if (descriptor & 0x20) {
        const unsigned char *size = head + 5 + dictionary_id_bytes[descriptor & 3];

        switch (descriptor >> 6) {
        case 0:
            return size[0];
        case 1:
            return slc_load_u16(size) + UINT64_C(256);
        case 2:
            return slc_load_u32(size);
        default:
            return slc_load_u64(size);
        }
    }
    uint64_t base = UINT64_C(1) << (10 + (head[5] >> 3));
    return base + base / 8 * (head[5] & 7);
}

/* Returns the size of the dictionary of the LZMA2 filter in the first block ([XZ] section 3.1). */
static uint64_t xz_window(const unsigned char *head, size_t bytes)
{
    /* position after the stream header (12 bytes) and the size and flags of the block header */
    size_t at = 14;
    unsigned flags = bytes > at ? head[13] : 0;
    /* number of optional sizes, each a sequence of 7-bit groups */
    unsigned sizes = (flags >> 6 & 1) + (flags >> 7);

    for (; sizes > 0 && at < bytes; at++) {
        sizes -= head[at] < 0x80;
    }
    /* Handle only a single LZMA2 filter (0x21) with its one-byte property; other filters are rare.
     */
    if (at + 3 > bytes || (flags & 3) != 0 || head[at] != 0x21) {
        return unknown_window_bytes;
    }
    unsigned code = head[at + 2] & 0x3f;
    return code >= 40 ? xz_window_max : (uint64_t)(2 | (code & 1)) << (code / 2 + 11);
}

uint64_t
slc_compression_window(enum slc_compression compression, const unsigned char *head, size_t bytes)
{
    uint64_t window = zstd_window_min;

    if (compression == SLC_COMPRESSION_XZ) {
        return slc_min_u64(xz_window(head, bytes), xz_window_max);
    }
    if (compression != SLC_COMPRESSION_ZSTD) {
        return 0;
    }
    while (window < zstd_window_max && window < zstd_window(head, bytes)) {
        window *= 2;
    }
    return window;
}

uint64_t
slc_compression_memory(enum slc_compression compression, const unsigned char *head, size_t bytes)
{
    return compressions[compression].memory_bytes +
           slc_compression_window(compression, head, bytes);
}

enum slc_status
slc_input_damaged(const struct slc_input_source *source, const char *reason, struct slc_error *err)
{
    return slc_fail_file(err, SLC_ERR_INPUT, source->name,
                         "the compressed input is damaged or truncated within its first %" PRIu64
                         " bytes: %s",
                         source->consumed, reason ? reason : "no reason given");
}

enum slc_status slc_input_too_wide(const struct slc_input_source *source,
                                   enum slc_compression compression,
                                   struct slc_error *err)
{
    return slc_fail_file(
        err, SLC_ERR_INPUT, source->name,
        "data within the first %" PRIu64
        " bytes need more memory to decompress than planned from the first header: "
        "use an external decompressor (%s -dc FILE | sluice convert - OUT.slc)",
        source->consumed, slc_compression_name(compression));
}

void *slc_input_decoder_create(size_t bytes,
                               struct slc_input_source *source,
                               const struct slc_input_decoder *first,
                               struct slc_error *err)
{
    struct slc_input_decoder *decoder = slc_malloc(bytes + SLC_INPUT_READ_BYTES);

    if (decoder == NULL) {
        (void)slc_input_no_memory(err);
        return NULL;
    }
    memset(decoder, 0, bytes);
    *decoder = *first;
    decoder->source = source;
    decoder->data = (unsigned char *)decoder + bytes;
    return decoder;
}

enum slc_status slc_input_decoder_refill(struct slc_input_decoder *decoder,
                                         const char *inside,
                                         struct slc_error *err)
{
    const enum slc_status status = slc_input_source_read(decoder->source, decoder->data,
                                                         SLC_INPUT_READ_BYTES, &decoder->held, err);

    return status == SLC_OK && decoder->held == 0 && inside != NULL
               ? slc_input_damaged(decoder->source, inside, err)
               : status;
}

enum slc_status slc_input_no_memory(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
}
