/* Decodes lz4 with libarchive's filter and its `raw` format, which is one stream of bytes. Only
 * this filter is enabled, so that libarchive guesses no other format and starts no external
 * program.
 *
 * libarchive reports no error in two cases in which data would be lost. First, it returns a stream
 * with a damaged or truncated header as if the stream were plain. Second, it ignores bytes after
 * the last stream, for example a second stream with a damaged first byte. Therefore this decoder
 * checks that the filter is in use, and accepts the end only after all stored bytes were consumed.
 *
 * Text is read one block at a time, because archive_read_data would lose earlier blocks of the same
 * call when a block fails. */
#include "convert/ingest/input/input_source.h"

#include "base/memory/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

enum {
    /* Number of filters of a stream: lz4 and the source itself. */
    FILTER_COUNT = 2
};

struct lz4_decoder {
    struct slc_input_decoder decoder; /* must be the first member, because pointers are cast */
    struct archive *archive;
    bool empty; /* true for a stream without bytes */
    bool at_end;
    const unsigned char *block;  /* the decompressed block; owned by libarchive */
    size_t block_bytes;          /* bytes of the block not yet delivered */
    struct slc_error read_error; /* error of the source that occurred inside a libarchive call */
};

/* Callback of libarchive that delivers more stored bytes. */
static la_ssize_t read_source(struct archive *archive, void *context, const void **data)
{
    struct lz4_decoder *in = context;

    *data = in->decoder.data;
    if (slc_input_decoder_refill(&in->decoder, NULL, &in->read_error) != SLC_OK) {
        archive_set_error(archive, in->read_error.system_errno, "%s", in->read_error.message);
        return -1;
    }
    size_t got = in->decoder.held;
    /* libarchive does not report how many of these bytes it still holds; assume half of them. */
    in->decoder.held =
        in->decoder.source->consumed > SLC_INPUT_READ_BYTES ? SLC_INPUT_READ_BYTES / 2 : 0;
    return (la_ssize_t)got;
}

/* Records the error of the source if there was one, otherwise a damaged stream with the message of
 * libarchive. */
static enum slc_status stream_fault(struct lz4_decoder *in, struct slc_error *err)
{
    if (in->read_error.status != SLC_OK) {
        if (err && err->status == SLC_OK) {
            *err = in->read_error;
        }
        return in->read_error.status;
    }
    return slc_input_damaged(in->decoder.source, archive_error_string(in->archive), err);
}

static void close_lz4(struct slc_input_decoder *decoder)
{
    struct lz4_decoder *in = (struct lz4_decoder *)decoder;

    if (in->archive) {
        (void)archive_read_free(in->archive);
    }
    slc_free(in);
}

/* Checks that the source has no more bytes. Called at the end of the decompressed bytes. */
static enum slc_status check_end(struct lz4_decoder *in, struct slc_error *err)
{
    enum slc_status status;
    size_t got = 0;

    if ((uint64_t)archive_filter_bytes(in->archive, -1) == in->decoder.source->consumed) {
        status = slc_input_source_read(in->decoder.source, in->decoder.data, SLC_INPUT_READ_BYTES,
                                       &got, err);
        if (status != SLC_OK || got == 0) {
            return status;
        }
    }
    return slc_input_damaged(in->decoder.source, "the data after a stream is not an lz4 stream",
                             err);
}

/* Reads the next block. Called when the last block has been delivered. */
static enum slc_status next_block(struct lz4_decoder *in, struct slc_error *err)
{
    while (in->block_bytes == 0 && !in->at_end) {
        const void *block = NULL;
        la_int64_t offset;
        const int result =
            in->empty ? ARCHIVE_EOF
                      : archive_read_data_block(in->archive, &block, &in->block_bytes, &offset);

        if (result == ARCHIVE_EOF) {
            in->block_bytes = 0;
            in->at_end = true;
            return check_end(in, err);
        }
        if (result != ARCHIVE_OK) {
            in->block_bytes = 0;
            return stream_fault(in, err);
        }
        in->block = block;
    }
    return SLC_OK;
}

static enum slc_status read_lz4(
    struct slc_input_decoder *decoder, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    struct lz4_decoder *in = (struct lz4_decoder *)decoder;
    const enum slc_status status = next_block(in, err);

    *got = 0;
    SLC_TRY(status);
    if (in->block_bytes > 0) {
        *got = bytes < in->block_bytes ? bytes : in->block_bytes;
        memcpy(data, in->block, *got);
        in->block += *got;
        in->block_bytes -= *got;
    }
    return SLC_OK;
}

/* Opens the stream; libarchive then reads its first bytes. */
static enum slc_status start_stream(struct lz4_decoder *in, struct slc_error *err)
{
    struct archive_entry *entry;

    /* Any result other than "ok" means that libarchive would start a program to decompress. */
    if (archive_read_support_filter_lz4(in->archive) != ARCHIVE_OK) {
        return slc_fail_file(err, SLC_ERR_UNSUPPORTED, in->decoder.source->name,
                             "this libarchive was built without lz4");
    }
    if (archive_read_support_format_raw(in->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(in->archive) != ARCHIVE_OK ||
        archive_read_open(in->archive, in, NULL, read_source, NULL) != ARCHIVE_OK) {
        return stream_fault(in, err);
    }
    int result = archive_read_next_header(in->archive, &entry);
    if (result != ARCHIVE_OK && result != ARCHIVE_EOF) {
        return stream_fault(in, err);
    }
    if (archive_filter_code(in->archive, 0) != ARCHIVE_FILTER_LZ4) {
        return slc_input_damaged(in->decoder.source, "its header cannot be read", err);
    }
    /* libarchive would also decode a compressed stream inside the stream, and check_end would only
     * see the end of the outer stream. */
    if (archive_filter_count(in->archive) != FILTER_COUNT) {
        return slc_fail_file(err, SLC_ERR_INPUT, in->decoder.source->name,
                             "the input is compressed twice with lz4: decompress it to text first");
    }
    in->empty = result == ARCHIVE_EOF;
    return SLC_OK;
}

enum slc_status slc_input_lz4_open(struct slc_input_source *source,
                                   struct slc_input_decoder **decoder,
                                   struct slc_error *err)
{
    static const struct slc_error no_error = SLC_ERROR_INIT;
    const struct slc_input_decoder first = {.read = read_lz4, .close = close_lz4};
    struct lz4_decoder *in = slc_input_decoder_create(sizeof *in, source, &first, err);

    *decoder = NULL;
    if (in == NULL) {
        return SLC_ERR_MEMORY;
    }
    in->read_error = no_error;
    in->archive = archive_read_new();
    enum slc_status status = in->archive ? start_stream(in, err) : slc_input_no_memory(err);
    if (status != SLC_OK) {
        close_lz4(&in->decoder);
        return status;
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
