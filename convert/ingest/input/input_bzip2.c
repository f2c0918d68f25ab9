/* Decodes bzip2 with libbz2, which verifies the checksum of every block and stream. A file may
 * consist of several streams; other bytes after a stream are rejected. */
#include "convert/ingest/input/input_source.h"

#include "base/memory/memory.h"

#include <bzlib.h>
#include <limits.h>

struct bzip2_decoder {
    struct slc_input_decoder decoder; /* must be the first member, because pointers are cast */
    bz_stream stream;
    bool open;  /* true if the stream is initialized and owns memory */
    bool begun; /* true if bytes of the stream were read, but not its end */
    bool at_end;
    /* last result of libbz2; output before a fault is delivered before the fault is reported */
    int code;
};

static void *allocate(void *context, int items, int bytes)
{
    (void)context;
    return slc_calloc((size_t)items, (size_t)bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    slc_free(memory);
}

static void close_stream(struct bzip2_decoder *in)
{
    if (in->open) {
        (void)BZ2_bzDecompressEnd(&in->stream);
    }
}

/* Opens a stream. Bytes that were already read from the source are kept. */
static void open_stream(struct bzip2_decoder *in)
{
    enum { QUIET = 0, FAST = 0 };

    close_stream(in);
    in->begun = false;
    in->code = BZ2_bzDecompressInit(&in->stream, QUIET, FAST);
    in->open = in->code == BZ_OK;
}

static void close_bzip2(struct slc_input_decoder *decoder)
{
    struct bzip2_decoder *in = (struct bzip2_decoder *)decoder;

    close_stream(in);
    slc_free(in);
}

static enum slc_status fault(struct bzip2_decoder *in, struct slc_error *err)
{
    switch (in->code) {
    case BZ_MEM_ERROR:
        return slc_input_no_memory(err);
    case BZ_DATA_ERROR_MAGIC:
        return slc_input_damaged(in->decoder.source, "a bzip2 stream is expected here", err);
    default:
        return slc_input_damaged(in->decoder.source, "a checksum does not match", err);
    }
}

static enum slc_status read_bzip2(
    struct slc_input_decoder *decoder, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    struct bzip2_decoder *in = (struct bzip2_decoder *)decoder;
    bz_stream *stream = &in->stream;
    const unsigned capacity = bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX;

    *got = 0;
    stream->next_out = data;
    stream->avail_out = capacity;
    while (stream->avail_out == capacity && !in->at_end && in->code == BZ_OK) {
        const unsigned stored = stream->avail_in;
        /* Deliver decoded text before more bytes are read. */
        enum slc_status status = SLC_OK;

        if (stored > 0 || in->begun) {
            in->code = BZ2_bzDecompress(stream);
            in->begun = in->begun || stored > 0;
        }
        if (in->code == BZ_STREAM_END) {
            open_stream(in);
        } else if (in->code == BZ_OK && stream->avail_out == capacity && stream->avail_in == 0) {
            status = slc_input_decoder_refill(
                decoder, in->begun ? "it ends inside a bzip2 stream" : NULL, err);
            in->at_end = status == SLC_OK && decoder->held == 0;
            stream->next_in = (char *)decoder->data;
            stream->avail_in = (unsigned)decoder->held;
        }
        decoder->held = stream->avail_in;
        SLC_TRY(status);
    }
    *got = capacity - stream->avail_out;
    return *got > 0 || in->code == BZ_OK ? SLC_OK : fault(in, err);
}

enum slc_status slc_input_bzip2_open(struct slc_input_source *source,
                                     struct slc_input_decoder **decoder,
                                     struct slc_error *err)
{
    const struct slc_input_decoder first = {.read = read_bzip2, .close = close_bzip2};
    struct bzip2_decoder *in = slc_input_decoder_create(sizeof *in, source, &first, err);

    *decoder = NULL;
    if (in == NULL) {
        return SLC_ERR_MEMORY;
    }
    in->stream = (bz_stream){.bzalloc = allocate, .bzfree = release};
    open_stream(in);
    if (!in->open) {
        close_bzip2(&in->decoder);
        return slc_input_no_memory(err);
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
