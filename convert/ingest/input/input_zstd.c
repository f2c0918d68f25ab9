/* Decodes zstd with libzstd. The size of windows is limited, because a later frame may need a
 * larger window than the first frame. A file consists of consecutive frames, including skippable
 * frames; other bytes after a frame are rejected.
 *
 * libzstd does not report the output of a call that fails. Therefore each call gets only one block.
 * When a call fails, the output of earlier blocks has then been delivered already. */
#include "convert/ingest/input/input_source.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <zstd.h>
#include <zstd_errors.h>

enum {
    /* Size of a block header ([RFC8878] section 3.1.1.2). The input that libzstd requests ends
     * after the header of the next block. */
    BLOCK_HEADER_BYTES = 3
};

struct zstd_decoder {
    struct slc_input_decoder decoder; /* must be the first member, because pointers are cast */
    ZSTD_DStream *stream;
    ZSTD_inBuffer stored;
    size_t needed; /* number of input bytes that libzstd needs for its next step */
    bool between;  /* true between two frames */
    bool holds;    /* true if libzstd may hold output for which there was no space */
    bool at_end;
};

static void close_zstd(struct slc_input_decoder *decoder)
{
    struct zstd_decoder *in = (struct zstd_decoder *)decoder;

    (void)ZSTD_freeDStream(in->stream);
    slc_free(in);
}

static enum slc_status fault(struct zstd_decoder *in, size_t code, struct slc_error *err)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return slc_input_no_memory(err);
    case ZSTD_error_frameParameter_windowTooLarge:
        return slc_input_too_wide(in->decoder.source, SLC_COMPRESSION_ZSTD, err);
    default:
        return slc_input_damaged(in->decoder.source, ZSTD_getErrorName(code), err);
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

        if (!in->holds && in->stored.pos == in->stored.size) {
            const enum slc_status status = slc_input_decoder_refill(
                decoder, in->between ? NULL : "it ends inside a zstd frame", err);

            in->at_end = status == SLC_OK && decoder->held == 0;
            if (status != SLC_OK || in->at_end) {
                *got = 0;
                return status;
            }
            in->stored = (ZSTD_inBuffer){.src = decoder->data, .size = decoder->held};
        }
        step = in->stored;
        step.size = step.pos + slc_min_u64(step.size - step.pos, in->needed);
        code = ZSTD_decompressStream(in->stream, &text, &step);
        in->stored.pos = step.pos;
        decoder->held = in->stored.size - step.pos;
        if (ZSTD_isError(code)) {
            *got = 0;
            return fault(in, code, err);
        }
        in->needed = code > BLOCK_HEADER_BYTES ? code - BLOCK_HEADER_BYTES : BLOCK_HEADER_BYTES;
        in->between = code == 0;
        in->holds = text.pos == text.size && !in->between;
    }
    *got = text.pos;
    return SLC_OK;
}

/* Returns the exponent of the smallest power of two that is at least `bytes`. */
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
    const struct slc_input_decoder first = {.read = read_zstd, .close = close_zstd};
    struct zstd_decoder *in = slc_input_decoder_create(sizeof *in, source, &first, err);

    *decoder = NULL;
    if (in == NULL) {
        return SLC_ERR_MEMORY;
    }
    in->between = true;
    in->stream = ZSTD_createDStream();
    in->needed = BLOCK_HEADER_BYTES;
    if (in->stream == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(
                                  in->stream, ZSTD_d_windowLogMax,
                                  window_log(slc_compression_window(
                                      SLC_COMPRESSION_ZSTD, source->head, source->head_bytes))))) {
        close_zstd(&in->decoder);
        return slc_input_no_memory(err);
    }
    *decoder = &in->decoder;
    return SLC_OK;
}
