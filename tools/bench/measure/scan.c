/* Scans and decoding passes; see scan.h. */
#include "tools/bench/measure/scan.h"

#include "engine/executor/owned.h"

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

    SLC_TRY(session_plan_request(session, &request, err));
    return slc_session_start(session, err);
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

static enum slc_status
list_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    (void)worker;
    return slc_coo_add_tile(context, tile, err);
}

enum slc_status bench_list_pass(const struct slc_session *session,
                                enum slc_value_type type,
                                struct slc_coo *coo,
                                struct slc_error *err)
{
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = list_tile, .context = coo}}};
    struct slc_tensor_shape shape;

    slc_owned_shape(slc_reader_info(session->store.reader), &shape);
    SLC_TRY(slc_coo_create(coo, &shape, type, err));
    return slc_stream_pass(session->stream, &pass, err);
}
