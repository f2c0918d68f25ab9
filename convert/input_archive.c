/*
 * Compressed inputs through libarchive's filters and its `raw` format: one stream of bytes,
 * whatever the compression. Only the filter that the first bytes name is switched on, so nothing
 * else can be guessed and no external program is ever started.
 *
 * libarchive stops silently at bytes behind the last stream (a second gzip member whose first byte
 * was damaged looks like that), so the end is accepted only where all stored bytes were consumed.
 */
#include "convert/input_source.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <string.h>

enum {
    /* What one read asks of the source: large enough for sequential rates of any drive. */
    READ_BYTES = 256 << 10
};

struct slc_input_archive {
    struct slc_input_source *source;
    struct archive *archive;
    bool empty; /* a stream of no bytes */
    bool at_end;
    struct slc_error read_error; /* of the source, met inside libarchive */
    unsigned char data[READ_BYTES];
};

static const struct {
    const char *name;
    const char *magic;
    size_t magic_bytes;
    int (*enable)(struct archive *);
    uint64_t memory_bytes; /* besides the window, where the format has one in its header */
} compressions[] = {
    [SLC_COMPRESSION_NONE] = {"none", "", 0, NULL, 0},
    [SLC_COMPRESSION_GZIP] = {"gzip", "\x1f\x8b\x08", 3, archive_read_support_filter_gzip, 1 << 20},
    [SLC_COMPRESSION_BZIP2] = {"bzip2", "BZh", 3, archive_read_support_filter_bzip2, 5 << 20},
    [SLC_COMPRESSION_XZ] = {"xz",
                            "\xfd"
                            "7zXZ\0",
                            6, archive_read_support_filter_xz, 1 << 20},
    [SLC_COMPRESSION_ZSTD] = {"zstd", "\x28\xb5\x2f\xfd", 4, archive_read_support_filter_zstd,
                              2 << 20},
    [SLC_COMPRESSION_LZ4] = {"lz4", "\x04\x22\x4d\x18", 4, archive_read_support_filter_lz4,
                             10 << 20},
};

/* A window nobody states: the default of `xz -9` and above that of every other. */
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
        /* Three letters of text could start a comment: bzip2 has a level digit after them. */
        if (i == SLC_COMPRESSION_BZIP2 && (bytes < 4 || head[3] < '1' || head[3] > '9')) {
            continue;
        }
        return (enum slc_compression)i;
    }
    return SLC_COMPRESSION_NONE;
}

/* RFC 8878, section 3.1.1.1: the window descriptor, or the content size of a single segment. */
static uint64_t zstd_window(const unsigned char *head, size_t bytes)
{
    static const unsigned dictionary_id_bytes[] = {0, 1, 2, 4};
    unsigned descriptor = bytes > 4 ? head[4] : 0;
    uint64_t base;

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
    base = UINT64_C(1) << (10 + (head[5] >> 3));
    return base + base / 8 * (head[5] & 7);
}

/* The .xz file format 1.1.0, section 3.1: the dictionary of the first block's LZMA2 filter. */
static uint64_t xz_window(const unsigned char *head, size_t bytes)
{
    const unsigned block = 12; /* the stream header before it */
    unsigned code;

    /* One filter, no sizes: what xz writes to a pipe or a file. Threads add sizes: then unknown. */
    if (bytes < block + 5 || head[block + 1] != 0 || head[block + 2] != 0x21) {
        return unknown_window_bytes;
    }
    code = head[block + 4] & 0x3f;
    return code >= 40 ? UINT64_C(4) << 30 : (uint64_t)(2 | (code & 1)) << (code / 2 + 11);
}

uint64_t
slc_compression_memory(enum slc_compression compression, const unsigned char *head, size_t bytes)
{
    uint64_t memory = compressions[compression].memory_bytes;

    if (compression != SLC_COMPRESSION_NONE) {
        memory += sizeof(struct slc_input_archive);
    }
    if (compression == SLC_COMPRESSION_ZSTD) {
        memory += zstd_window(head, bytes);
    } else if (compression == SLC_COMPRESSION_XZ) {
        memory += xz_window(head, bytes);
    }
    return memory;
}

/* libarchive asks for more stored bytes. */
static la_ssize_t read_source(struct archive *archive, void *context, const void **data)
{
    struct slc_input_archive *in = context;
    size_t got;

    *data = in->data;
    if (slc_input_source_read(in->source, in->data, sizeof in->data, &got, &in->read_error) !=
        SLC_OK) {
        archive_set_error(archive, in->read_error.system_errno, "%s", in->read_error.message);
        return -1;
    }
    return (la_ssize_t)got;
}

/* The source's own fault where there was one, else what libarchive says about the stream. */
static enum slc_status stream_fault(struct slc_input_archive *in, struct slc_error *err)
{
    const char *reason = archive_error_string(in->archive);
    enum slc_status status;

    if (in->read_error.status != SLC_OK) {
        if (err && err->status == SLC_OK) {
            *err = in->read_error;
        }
        return in->read_error.status;
    }
    status = slc_fail(err, SLC_ERR_INPUT,
                      "the compressed input is damaged or truncated within its first %" PRIu64
                      " bytes: %s",
                      in->source->consumed, reason ? reason : "no reason given");
    slc_error_locate_file(err, in->source->name);
    return status;
}

enum slc_status slc_input_archive_open(struct slc_input_source *source,
                                       enum slc_compression compression,
                                       struct slc_input_archive **archive,
                                       struct slc_error *err)
{
    static const struct slc_error no_error = SLC_ERROR_INIT;
    struct slc_input_archive *in = slc_malloc(sizeof *in);
    struct archive_entry *entry;
    enum slc_status status;
    int result;

    *archive = NULL;
    if (!in) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    }
    in->source = source;
    in->empty = false;
    in->at_end = false;
    in->read_error = no_error;
    in->archive = archive_read_new();
    if (!in->archive) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
        goto fail;
    }
    /* Anything but "ok" means that libarchive would start a program to decompress. */
    if (compressions[compression].enable(in->archive) != ARCHIVE_OK) {
        status = slc_fail(err, SLC_ERR_UNSUPPORTED, "this libarchive was built without %s",
                          compressions[compression].name);
        slc_error_locate_file(err, source->name);
        goto fail;
    }
    if (archive_read_support_format_raw(in->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(in->archive) != ARCHIVE_OK ||
        archive_read_open(in->archive, in, NULL, read_source, NULL) != ARCHIVE_OK) {
        status = stream_fault(in, err);
        goto fail;
    }
    result = archive_read_next_header(in->archive, &entry);
    if (result != ARCHIVE_OK && result != ARCHIVE_EOF) {
        status = stream_fault(in, err);
        goto fail;
    }
    in->empty = result == ARCHIVE_EOF;
    *archive = in;
    return SLC_OK;

fail:
    slc_input_archive_close(in);
    return status;
}

void slc_input_archive_close(struct slc_input_archive *archive)
{
    if (!archive) {
        return;
    }
    if (archive->archive) {
        (void)archive_read_free(archive->archive);
    }
    slc_free(archive);
}

/* At the end of the decompressed bytes: nothing may follow in the source. */
static enum slc_status check_end(struct slc_input_archive *in, struct slc_error *err)
{
    uint64_t used = (uint64_t)archive_filter_bytes(in->archive, -1);
    enum slc_status status;
    size_t got = 0;

    if (used == in->source->consumed) {
        status = slc_input_source_read(in->source, in->data, sizeof in->data, &got, err);
        if (status != SLC_OK || got == 0) {
            return status;
        }
    }
    status = slc_fail(err, SLC_ERR_INPUT,
                      "the compressed input is damaged: behind byte %" PRIu64
                      " follows something that is no compressed stream",
                      used);
    slc_error_locate_file(err, in->source->name);
    return status;
}

enum slc_status slc_input_archive_read(
    struct slc_input_archive *archive, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    la_ssize_t result = 0;

    *got = 0;
    if (archive->at_end) {
        return SLC_OK;
    }
    if (!archive->empty) {
        result = archive_read_data(archive->archive, data, bytes);
    }
    if (result < 0) {
        return stream_fault(archive, err);
    }
    if (result == 0) {
        archive->at_end = true;
        return check_end(archive, err);
    }
    *got = (size_t)result;
    return SLC_OK;
}
