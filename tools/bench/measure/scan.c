/* Scans and decoding passes; see scan.h. */
#include "tools/bench/measure/scan.h"

enum slc_status bench_scan_start(struct slc_session *session,
                                 enum slc_io_kind io,
                                 unsigned threads,
                                 unsigned slots,
                                 struct slc_error *err)
{
    const struct slc_plan_request request = {.operation = SLC_OP_MTTKRP,
                                             .rank = 1,
                                             .precision = SLC_F64,
                                             .threads = threads,
                                             .io = io,
                                             .slots = slots,
                                             .cache = false};
    enum slc_status status = session_plan_request(session, &request, err);

    return status == SLC_OK ? slc_session_start(session, err) : status;
}

static enum slc_status
ignore_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    (void)context;
    (void)worker;
    (void)tile;
    (void)err;
    return SLC_OK;
}

enum slc_status bench_scan_pass(struct slc_stream *stream, struct slc_error *err)
{
    return bench_scan_layout(stream, 0, err);
}

enum slc_status bench_scan_layout(struct slc_stream *stream, unsigned layout, struct slc_error *err)
{
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = ignore_tile}}, .layout = layout};

    return slc_stream_pass(stream, &pass, err);
}

static enum slc_status
decode_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_chunk_view chunk;
    enum slc_status status;

    (void)context;
    (void)worker;
    do {
        status = tile->next(tile, BENCH_CHUNK_NNZ, &chunk, err);
    } while (status == SLC_OK && chunk.nnz > 0);
    return status;
}

enum slc_status bench_decode_pass(struct slc_stream *stream, struct slc_error *err)
{
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = decode_tile}}};

    return slc_stream_pass(stream, &pass, err);
}
