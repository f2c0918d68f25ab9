/* Decodes gzip with zlib, which verifies the checksum and the length of every member. libarchive's
 * filter verifies neither, and most single-bit errors in compressed text yield another valid text.
 * A file may consist of several members. Zeros after a member, with which tapes and block devices
 * fill their blocks, are skipped as by gzip; other bytes are rejected. */
#include "convert/ingest/input/input_source.h"

#include "base/memory/memory.h"

#include <limits.h>
#include <zlib.h>

enum {
    /* windowBits argument of zlib: 15 is the maximum window, and 16 more means that only the gzip
     * format is accepted. */
    GZIP_WINDOW = 15 + 16
};

struct gzip_decoder {
    struct slc_input_decoder decoder; /* must be the first member, because pointers are cast */
    z_stream stream;                  /* total_in is 0 only between members */
    bool at_end;
    bool ended; /* at least one member has ended */
    /* last result of inflate; output before a fault is delivered before the fault is reported */
    int code;
};

static voidpf allocate(voidpf context, uInt items, uInt bytes)
{
    (void)context;
    return slc_calloc(items, bytes);
}

static void release(voidpf context, voidpf memory)
{
    (void)context;
    slc_free(memory);
}

static void close_gzip(struct slc_input_decoder *decoder)
{
    struct gzip_decoder *in = (struct gzip_decoder *)decoder;

    /* inflateEnd fails only if no stream is open, and then there is nothing to free. */
    (void)inflateEnd(&in->stream);
    slc_free(in);
}

/* Returns true if a result is not a fault. Z_BUF_ERROR only means that more input is needed. */
static bool is_sound(int code)
{
    return code == Z_OK || code == Z_BUF_ERROR;
}

static enum slc_status fault(struct gzip_decoder *in, struct slc_error *err)
{
    return in->code == Z_MEM_ERROR ? slc_input_no_memory(err)
                                   : slc_input_damaged(in->decoder.source, in->stream.msg, err);
}

static enum slc_status read_gzip(
    struct slc_input_decoder *decoder, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    struct gzip_decoder *in = (struct gzip_decoder *)decoder;
    z_stream *stream = &in->stream;
    uInt capacity = bytes < UINT_MAX ? (uInt)bytes : UINT_MAX;

    *got = 0;
    stream->next_out = data;
    stream->avail_out = capacity;
    while (stream->avail_out == capacity && !in->at_end && is_sound(in->code)) {
        if (stream->avail_in == 0) {
            const enum slc_status status = slc_input_decoder_refill(
                decoder, stream->total_in > 0 ? "it ends inside a gzip member" : NULL, err);

            in->at_end = status == SLC_OK && decoder->held == 0;
            if (status != SLC_OK || in->at_end) {
                return status;
            }
            stream->next_in = decoder->data;
            stream->avail_in = (uInt)decoder->held;
        }
        while (in->ended && stream->total_in == 0 && stream->avail_in > 0 &&
               *stream->next_in == 0) {
            stream->next_in++;
            stream->avail_in--;
        }
        if (stream->avail_in > 0) {
            in->code = inflate(stream, Z_NO_FLUSH);
        }
        decoder->held = stream->avail_in;
        if (in->code == Z_STREAM_END) {
            in->code = inflateReset(stream);
            in->ended = true;
        }
    }
    *got = capacity - stream->avail_out;
    return *got > 0 || is_sound(in->code) ? SLC_OK : fault(in, err);
}

enum slc_status slc_input_gzip_open(struct slc_input_source *source,
                                    struct slc_input_decoder **decoder,
                                    struct slc_error *err)
{
    const struct slc_input_decoder first = {.read = read_gzip, .close = close_gzip};
    struct gzip_decoder *in = slc_input_decoder_create(sizeof *in, source, &first, err);

    *decoder = NULL;
    if (in == NULL) {
        return SLC_ERR_MEMORY;
    }
    in->stream = (z_stream){.zalloc = allocate, .zfree = release};
    if (inflateInit2(&in->stream, GZIP_WINDOW) != Z_OK) {
        slc_free(in);
        return slc_input_no_memory(err);
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
