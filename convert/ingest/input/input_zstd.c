/*
 * zstd through libzstd, which can be told the largest window that a frame may ask for; each may ask
 * for another one, whatever the first did. Frames follow one another, skippable ones among them;
 * anything else behind a frame is refused.
 *
 * libzstd does not say what came out of a call that fails. So it is given one block at a
 * time: what those before gave has then been given out.
 */
#include "convert/ingest/input/input_source.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <zstd.h>
#include <zstd_errors.h>

enum {
    /* As for the other decoders: sequential rates of any drive. */
    READ_BYTES = 256 << 10,
    /* RFC 8878, section 3.1.1.2. What libzstd asks for ends behind the header of the next block. */
    BLOCK_HEADER_BYTES = 3
};

struct zstd_decoder {
    struct slc_input_decoder decoder; /* first: one is cast to the other */
    struct slc_input_source *source;
    ZSTD_DStream *stream;
    ZSTD_inBuffer stored;
    size_t wanted; /* of these, for the next step */
    bool between;  /* frames */
    bool holds;    /* perhaps text that found no room */
    bool at_end;
    unsigned char data[READ_BYTES];
};

static uint64_t held_zstd(const struct slc_input_decoder *decoder)
{
    const struct zstd_decoder *in = (const struct zstd_decoder *)decoder;

    return in->stored.size - in->stored.pos;
}

static void close_zstd(struct slc_input_decoder *decoder)
{
    struct zstd_decoder *in = (struct zstd_decoder *)decoder;

    (void)ZSTD_freeDStream(in->stream);
    slc_free(in);
}

/* Gets stored bytes when all are used; at the end of the source only a finished frame is good. */
static enum slc_status refill(struct zstd_decoder *in, struct slc_error *err)
{
    size_t got;
    enum slc_status status;

    if (in->stored.pos < in->stored.size) {
        return SLC_OK;
    }
    status = slc_input_source_read(in->source, in->data, sizeof in->data, &got, err);
    if (status != SLC_OK) {
        return status;
    }
    in->stored = (ZSTD_inBuffer){.src = in->data, .size = got};
    in->at_end = got == 0;
    if (in->at_end && !in->between) {
        return slc_input_damaged(in->source, "it ends inside a zstd frame", err);
    }
    return SLC_OK;
}

static enum slc_status fault(struct zstd_decoder *in, size_t code, struct slc_error *err)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    case ZSTD_error_frameParameter_windowTooLarge:
        return slc_input_too_wide(in->source, SLC_COMPRESSION_ZSTD, err);
    default:
        return slc_input_damaged(in->source, ZSTD_getErrorName(code), err);
    }
}

static enum slc_status read_zstd(
    struct slc_input_decoder *decoder, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    struct zstd_decoder *in = (struct zstd_decoder *)decoder;
    ZSTD_outBuffer text = {.dst = data, .size = bytes};

    while (text.pos == 0 && !in->at_end) {
        ZSTD_inBuffer step;
        size_t code;

        if (!in->holds) {
            const enum slc_status status = refill(in, err);

            if (status != SLC_OK || in->at_end) {
                *got = 0;
                return status;
            }
        }
        step = in->stored;
        step.size = step.pos + slc_min_u64(step.size - step.pos, in->wanted);
        code = ZSTD_decompressStream(in->stream, &text, &step);
        in->stored.pos = step.pos;
        if (ZSTD_isError(code)) {
            *got = 0;
            return fault(in, code, err);
        }
        in->wanted = code > BLOCK_HEADER_BYTES ? code - BLOCK_HEADER_BYTES : BLOCK_HEADER_BYTES;
        in->between = code == 0;
        in->holds = text.pos == text.size && !in->between;
    }
    *got = text.pos;
    return SLC_OK;
}

/* The least power of two that is no smaller, as an exponent. */
static int window_log(uint64_t bytes)
{
    int log = 0;

    while (log < 63 && UINT64_C(1) << log < bytes) {
        log++;
    }
    return log;
}

enum slc_status slc_input_zstd_open(struct slc_input_source *source,
                                    struct slc_input_decoder **decoder,
                                    struct slc_error *err)
{
    struct zstd_decoder *in = slc_malloc(sizeof *in);

    *decoder = NULL;
    if (!in) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    }
    in->decoder.read = read_zstd;
    in->decoder.held = held_zstd;
    in->decoder.close = close_zstd;
    in->source = source;
    in->stored = (ZSTD_inBuffer){.src = in->data};
    in->between = true;
    in->holds = false;
    in->at_end = false;
    in->stream = ZSTD_createDStream();
    in->wanted = BLOCK_HEADER_BYTES;
    if (in->stream == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(
                                  in->stream, ZSTD_d_windowLogMax,
                                  window_log(slc_compression_window(
                                      SLC_COMPRESSION_ZSTD, source->head, source->head_bytes))))) {
        close_zstd(&in->decoder);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to decompress the input");
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
