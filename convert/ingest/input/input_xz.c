/* Decodes xz with liblzma. liblzma verifies every block, and accepts only another stream after a
 * stream. The memory of liblzma is limited, because each block may need a dictionary of up to 4
 * GiB, independently of the first block. */
#include "convert/ingest/input/input_source.h"

#include "base/memory/memory.h"

#include <lzma.h>

struct xz_decoder {
    struct slc_input_decoder decoder; /* must be the first member, because pointers are cast */
    lzma_allocator allocator;
    lzma_stream stream;
    lzma_action action; /* LZMA_FINISH after the end of the source */
    /* last result of liblzma; output before a fault is delivered before the fault is reported */
    lzma_ret code;
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

static void close_xz(struct slc_input_decoder *decoder)
{
    struct xz_decoder *in = (struct xz_decoder *)decoder;

    lzma_end(&in->stream);
    slc_free(in);
}

static enum slc_status fault(struct xz_decoder *in, struct slc_error *err)
{
    switch (in->code) {
    case LZMA_MEM_ERROR:
        return slc_input_no_memory(err);
    case LZMA_MEMLIMIT_ERROR:
        return slc_input_too_wide(in->decoder.source, SLC_COMPRESSION_XZ, err);
    case LZMA_FORMAT_ERROR:
        return slc_input_damaged(in->decoder.source, "an xz stream is expected here", err);
    case LZMA_OPTIONS_ERROR:
        return slc_input_damaged(in->decoder.source,
                                 "it needs a feature that this liblzma does not have", err);
    case LZMA_BUF_ERROR:
        return slc_input_damaged(in->decoder.source, "it ends inside an xz stream", err);
    default:
        return slc_input_damaged(in->decoder.source, "a checksum does not match", err);
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
        if (in->stream.avail_in == 0 && in->action == LZMA_RUN) {
            SLC_TRY(slc_input_decoder_refill(decoder, NULL, err));
            in->stream.next_in = decoder->data;
            in->stream.avail_in = decoder->held;
            in->action = decoder->held == 0 ? LZMA_FINISH : LZMA_RUN;
        }
        in->code = lzma_code(&in->stream, in->action);
        decoder->held = in->stream.avail_in;
    }
    *got = bytes - in->stream.avail_out;
    return *got > 0 || in->code == LZMA_STREAM_END ? SLC_OK : fault(in, err);
}

enum slc_status slc_input_xz_open(struct slc_input_source *source,
                                  struct slc_input_decoder **decoder,
                                  struct slc_error *err)
{
    static const lzma_stream none = LZMA_STREAM_INIT;
    const struct slc_input_decoder first = {.read = read_xz, .close = close_xz};
    struct xz_decoder *in = slc_input_decoder_create(sizeof *in, source, &first, err);

    *decoder = NULL;
    if (in == NULL) {
        return SLC_ERR_MEMORY;
    }
    in->allocator = (lzma_allocator){.alloc = allocate, .free = release};
    in->stream = none;
    in->stream.allocator = &in->allocator;
    if (lzma_stream_decoder(
            &in->stream,
            slc_compression_memory(SLC_COMPRESSION_XZ, source->head, source->head_bytes),
            LZMA_CONCATENATED) != LZMA_OK) {
        slc_free(in);
        return slc_input_no_memory(err);
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
