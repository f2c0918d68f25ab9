/*
 * gzip through zlib, which verifies the checksum and the length of every member (libarchive's
 * filter skips both, and most single-bit errors of a compressed text give another valid text). A
 * file may hold several members one after the other; anything else behind a member is refused.
 */
#include "convert/ingest/input/input_source.h"

#include "base/memory/memory.h"

#include <limits.h>
#include <zlib.h>

enum {
    /* As for the other decoders: sequential rates of any drive. */
    READ_BYTES = 256 << 10,
    /* zlib: the largest window, and 16 asks for the gzip format alone. */
    GZIP_WINDOW = 15 + 16
};

struct gzip_decoder {
    struct slc_input_decoder decoder; /* first: one is cast to the other */
    struct slc_input_source *source;
    z_stream stream; /* total_in is 0 exactly between members */
    bool at_end;
    int code; /* the last of inflate; what came out before a fault is given out first */
    unsigned char data[READ_BYTES];
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

static uint64_t held_gzip(const struct slc_input_decoder *decoder)
{
    return ((const struct gzip_decoder *)decoder)->stream.avail_in;
}

static void close_gzip(struct slc_input_decoder *decoder)
{
    struct gzip_decoder *in = (struct gzip_decoder *)decoder;

    /* Fails only where nothing was opened; then there is nothing to free. */
    (void)inflateEnd(&in->stream);
    slc_free(in);
}

/* Gets stored bytes when all are used; at the end of the source only a finished member is good. */
static enum slc_status refill(struct gzip_decoder *in, struct slc_error *err)
{
    size_t got;
    enum slc_status status;

    if (in->stream.avail_in > 0) {
        return SLC_OK;
    }
    status = slc_input_source_read(in->source, in->data, sizeof in->data, &got, err);
    if (status != SLC_OK) {
        return status;
    }
    in->stream.next_in = in->data;
    in->stream.avail_in = (uInt)got;
    if (got == 0) {
        if (in->stream.total_in > 0) {
            return slc_input_damaged(in->source, "it ends inside a gzip member", err);
        }
        in->at_end = true;
    }
    return SLC_OK;
}

/* Z_BUF_ERROR only says that more input is needed. */
static bool is_sound(int code)
{
    return code == Z_OK || code == Z_BUF_ERROR;
}

static enum slc_status fault(struct gzip_decoder *in, struct slc_error *err)
{
    return in->code == Z_MEM_ERROR
               ? slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input")
               : slc_input_damaged(in->source, in->stream.msg, err);
}

static enum slc_status read_gzip(
    struct slc_input_decoder *decoder, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    struct gzip_decoder *in = (struct gzip_decoder *)decoder;
    z_stream *stream = &in->stream;
    uInt room = bytes < UINT_MAX ? (uInt)bytes : UINT_MAX;

    *got = 0;
    stream->next_out = data;
    stream->avail_out = room;
    while (stream->avail_out == room && !in->at_end && is_sound(in->code)) {
        const enum slc_status status = refill(in, err);

        if (status != SLC_OK || in->at_end) {
            return status;
        }
        in->code = inflate(stream, Z_NO_FLUSH);
        if (in->code == Z_STREAM_END) {
            in->code = inflateReset(stream);
        }
    }
    *got = room - stream->avail_out;
    return *got > 0 || is_sound(in->code) ? SLC_OK : fault(in, err);
}

enum slc_status slc_input_gzip_open(struct slc_input_source *source,
                                    struct slc_input_decoder **decoder,
                                    struct slc_error *err)
{
    struct gzip_decoder *in = slc_malloc(sizeof *in);

    *decoder = NULL;
    if (!in) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    }
    in->decoder.read = read_gzip;
    in->decoder.held = held_gzip;
    in->decoder.close = close_gzip;
    in->source = source;
    in->at_end = false;
    in->code = Z_OK;
    in->stream = (z_stream){.zalloc = allocate, .zfree = release};
    if (inflateInit2(&in->stream, GZIP_WINDOW) != Z_OK) {
        slc_free(in);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
