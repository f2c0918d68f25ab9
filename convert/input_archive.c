/*
 * bzip2 and lz4 through libarchive's filters and its `raw` format: one stream of bytes, whatever
 * the compression. Only the filter that the first bytes name is switched on, so nothing else can be
 * guessed and no external program is ever started.
 *
 * libarchive is lenient in two places, where silence would lose data: a stream whose header is
 * damaged or cut is passed through as if it were plain, and bytes behind the last stream are
 * ignored (a second stream with a damaged first byte looks like that). So the filter must be in
 * use, and the end is accepted only where all stored bytes were consumed.
 */
#include "convert/input_source.h"

#include "base/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <string.h>

enum {
    /* What one read asks of the source: large enough for sequential rates of any drive. */
    READ_BYTES = 256 << 10,
    /* The compression, and the source itself. */
    FILTER_COUNT = 2
};

struct archive_decoder {
    struct slc_input_decoder decoder; /* first: one is cast to the other */
    struct slc_input_source *source;
    struct archive *archive;
    bool empty; /* a stream of no bytes */
    bool at_end;
    struct slc_error read_error; /* of the source, met inside libarchive */
    unsigned char data[READ_BYTES];
};

static const struct {
    int code;
    int (*enable)(struct archive *);
} filters[] = {
    [SLC_COMPRESSION_BZIP2] = {ARCHIVE_FILTER_BZIP2, archive_read_support_filter_bzip2},
    [SLC_COMPRESSION_LZ4] = {ARCHIVE_FILTER_LZ4, archive_read_support_filter_lz4},
};

/* libarchive asks for more stored bytes. */
static la_ssize_t read_source(struct archive *archive, void *context, const void **data)
{
    struct archive_decoder *in = context;
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
static enum slc_status stream_fault(struct archive_decoder *in, struct slc_error *err)
{
    if (in->read_error.status != SLC_OK) {
        if (err && err->status == SLC_OK) {
            *err = in->read_error;
        }
        return in->read_error.status;
    }
    return slc_input_damaged(in->source, archive_error_string(in->archive), err);
}

static void close_archive(struct slc_input_decoder *decoder)
{
    struct archive_decoder *in = (struct archive_decoder *)decoder;

    if (in->archive) {
        (void)archive_read_free(in->archive);
    }
    slc_free(in);
}

/* At the end of the decompressed bytes: nothing may follow in the source. */
static enum slc_status check_end(struct archive_decoder *in, struct slc_error *err)
{
    enum slc_status status;
    size_t got = 0;

    if ((uint64_t)archive_filter_bytes(in->archive, -1) == in->source->consumed) {
        status = slc_input_source_read(in->source, in->data, sizeof in->data, &got, err);
        if (status != SLC_OK || got == 0) {
            return status;
        }
    }
    return slc_input_damaged(in->source, "behind a stream follows something that is none", err);
}

static enum slc_status read_archive(
    struct slc_input_decoder *decoder, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    struct archive_decoder *in = (struct archive_decoder *)decoder;
    la_ssize_t result = 0;

    *got = 0;
    if (in->at_end) {
        return SLC_OK;
    }
    if (!in->empty) {
        result = archive_read_data(in->archive, data, bytes);
    }
    if (result < 0) {
        return stream_fault(in, err);
    }
    if (result == 0) {
        in->at_end = true;
        return check_end(in, err);
    }
    *got = (size_t)result;
    return SLC_OK;
}

/* Starts the stream: libarchive reads the first bytes here. */
static enum slc_status
start(struct archive_decoder *in, enum slc_compression compression, struct slc_error *err)
{
    struct archive_entry *entry;
    int result;

    /* Anything but "ok" means that libarchive would start a program to decompress. */
    if (filters[compression].enable(in->archive) != ARCHIVE_OK) {
        (void)slc_fail(err, SLC_ERR_UNSUPPORTED, "this libarchive was built without %s",
                       slc_compression_name(compression));
        slc_error_locate_file(err, in->source->name);
        return SLC_ERR_UNSUPPORTED;
    }
    if (archive_read_support_format_raw(in->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(in->archive) != ARCHIVE_OK ||
        archive_read_open(in->archive, in, NULL, read_source, NULL) != ARCHIVE_OK) {
        return stream_fault(in, err);
    }
    result = archive_read_next_header(in->archive, &entry);
    if (result != ARCHIVE_OK && result != ARCHIVE_EOF) {
        return stream_fault(in, err);
    }
    if (archive_filter_code(in->archive, 0) != filters[compression].code) {
        return slc_input_damaged(in->source, "its header cannot be read", err);
    }
    /* libarchive would undo what has been compressed twice, and check_end see the outer end alone.
     */
    if (archive_filter_count(in->archive) != FILTER_COUNT) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "compressed more than once with %s: decompress it until it is the text",
                       slc_compression_name(compression));
        slc_error_locate_file(err, in->source->name);
        return SLC_ERR_INPUT;
    }
    in->empty = result == ARCHIVE_EOF;
    return SLC_OK;
}

enum slc_status slc_input_archive_open(struct slc_input_source *source,
                                       enum slc_compression compression,
                                       struct slc_input_decoder **decoder,
                                       struct slc_error *err)
{
    static const struct slc_error no_error = SLC_ERROR_INIT;
    struct archive_decoder *in = slc_malloc(sizeof *in);
    enum slc_status status;

    assert(compression == SLC_COMPRESSION_BZIP2 || compression == SLC_COMPRESSION_LZ4);
    *decoder = NULL;
    if (!in) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    }
    in->decoder.read = read_archive;
    in->decoder.close = close_archive;
    in->source = source;
    in->empty = false;
    in->at_end = false;
    in->read_error = no_error;
    in->archive = archive_read_new();
    status = in->archive ? start(in, compression, err)
                         : slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    if (status != SLC_OK) {
        close_archive(&in->decoder);
        return status;
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
