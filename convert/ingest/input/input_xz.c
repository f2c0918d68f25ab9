/*
 * xz through liblzma, which verifies every block, refuses what follows a stream and is none, and
 * can be told how much memory it may take: each block may ask for a dictionary of up to 4 GiB,
 * whatever the first one took.
 */
#include "convert/ingest/input/input_source.h"

#include "base/memory/memory.h"

#include <lzma.h>

enum {
    /* As for the other decoders: sequential rates of any drive. */
    READ_BYTES = 256 << 10
};

struct xz_decoder {
    struct slc_input_decoder decoder; /* first: one is cast to the other */
    struct slc_input_source *source;
    lzma_allocator allocator;
    lzma_stream stream;
    lzma_action action; /* LZMA_FINISH once the source has ended */
    lzma_ret code;      /* the last; what came out before a fault is given out first */
    unsigned char data[READ_BYTES];
};

static void *allocate(void *context, size_t items, size_t bytes)
{
    (void)context;
    return slc_calloc(items, bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    slc_free(memory);
}

static uint64_t held_xz(const struct slc_input_decoder *decoder)
{
    return ((const struct xz_decoder *)decoder)->stream.avail_in;
}

static void close_xz(struct slc_input_decoder *decoder)
{
    struct xz_decoder *in = (struct xz_decoder *)decoder;

    lzma_end(&in->stream);
    slc_free(in);
}

/* Gets stored bytes when all are used. */
static enum slc_status refill(struct xz_decoder *in, struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    size_t got;

    if (in->stream.avail_in == 0 && in->action == LZMA_RUN) {
        status = slc_input_source_read(in->source, in->data, sizeof in->data, &got, err);
        if (status == SLC_OK) {
            in->stream.next_in = in->data;
            in->stream.avail_in = got;
            in->action = got == 0 ? LZMA_FINISH : LZMA_RUN;
        }
    }
    return status;
}

static enum slc_status fault(struct xz_decoder *in, struct slc_error *err)
{
    switch (in->code) {
    case LZMA_MEM_ERROR:
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    case LZMA_MEMLIMIT_ERROR:
        return slc_input_too_wide(in->source, SLC_COMPRESSION_XZ, err);
    case LZMA_FORMAT_ERROR:
        return slc_input_damaged(in->source, "what stands there begins no xz stream", err);
    case LZMA_OPTIONS_ERROR:
        return slc_input_damaged(in->source, "it asks for what this liblzma does not know", err);
    case LZMA_BUF_ERROR:
        return slc_input_damaged(in->source, "it ends inside an xz stream", err);
    default:
        return slc_input_damaged(in->source, "its data does not have its checksums", err);
    }
}

static enum slc_status read_xz(
    struct slc_input_decoder *decoder, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    struct xz_decoder *in = (struct xz_decoder *)decoder;

    *got = 0;
    in->stream.next_out = data;
    in->stream.avail_out = bytes;
    while (in->stream.avail_out == bytes && in->code == LZMA_OK) {
        const enum slc_status status = refill(in, err);

        if (status != SLC_OK) {
            return status;
        }
        in->code = lzma_code(&in->stream, in->action);
    }
    *got = bytes - in->stream.avail_out;
    return *got > 0 || in->code == LZMA_STREAM_END ? SLC_OK : fault(in, err);
}

enum slc_status slc_input_xz_open(struct slc_input_source *source,
                                  struct slc_input_decoder **decoder,
                                  struct slc_error *err)
{
    static const lzma_stream none = LZMA_STREAM_INIT;
    struct xz_decoder *in = slc_malloc(sizeof *in);

    *decoder = NULL;
    if (!in) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    }
    in->decoder.read = read_xz;
    in->decoder.held = held_xz;
    in->decoder.close = close_xz;
    in->source = source;
    in->allocator = (lzma_allocator){.alloc = allocate, .free = release};
    in->stream = none;
    in->stream.allocator = &in->allocator;
    in->action = LZMA_RUN;
    in->code = LZMA_OK;
    if (lzma_stream_decoder(
            &in->stream,
            slc_compression_memory(SLC_COMPRESSION_XZ, source->head, source->head_bytes),
            LZMA_CONCATENATED) != LZMA_OK) {
        slc_free(in);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
