/* Makes passes that only read or decode, and holds stores in memory. */
#include "tools/bench/measure/resident.h"

#include "base/memory/checked.h"
#include "engine/executor/replica.h"
#include "engine/planning/planning.h"

#include <inttypes.h>

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

    slc_replica_shape(slc_reader_info(session->store.reader), &shape);
    SLC_TRY(slc_coo_create(coo, &shape, type, err));
    return slc_stream_pass(session->stream, &pass, err);
}

/* A list, and the number of the first nonzero of each tile. */
struct layout_list {
    struct slc_coo *coo;
    uint64_t *begin; /* first the number of nonzeros of the tile before */
};

static enum slc_status
count_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct layout_list *list = context;

    (void)worker;
    (void)err;
    list->begin[tile->ordinal + 1] = tile->nnz;
    return SLC_OK;
}

static enum slc_status
place_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct layout_list *list = context;

    (void)worker;
    return slc_coo_add_tile_at(list->coo, tile, list->begin[tile->ordinal], err);
}

enum slc_status bench_list_layout(struct slc_stream *stream,
                                  unsigned layout,
                                  const struct slc_reader *reader,
                                  enum slc_value_type type,
                                  struct slc_coo *coo,
                                  struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct layout_list list = {coo, slc_calloc(info->tile_count + 1, sizeof *list.begin)};
    struct slc_pass pass = {.tiles = {.consumer = {.tile = count_tile, .context = &list}},
                            .layout = layout};
    struct slc_tensor_shape shape;

    SLC_TRY(slc_check_memory(list.begin != NULL, err, "for %" PRIu64 " tiles", info->tile_count));
    slc_replica_shape(info, &shape);
    enum slc_status status = slc_coo_create(coo, &shape, type, err);
    SLC_THEN(status, slc_stream_pass(stream, &pass, err));
    for (uint64_t t = 0; t < info->tile_count; t++) {
        list.begin[t + 1] += list.begin[t];
    }
    pass.tiles.consumer.tile = place_tile;
    SLC_THEN(status, slc_stream_pass(stream, &pass, err));
    slc_free(list.begin);
    return status;
}

/* ---- stores in memory */

/* One or two requests that are planned within one budget. */
struct requests {
    const struct slc_layouts *layouts;
    const struct slc_plan_request *request;
    const struct slc_plan_request *extra; /* second request, or NULL */
};

/* Plans the requests within a budget. Returns SLC_ERR_BUDGET also if some blocks cannot be kept. */
static enum slc_status try_budget(const struct requests *requests,
                                  uint64_t budget_bytes,
                                  struct slc_plan *plan,
                                  struct slc_plan *extra,
                                  struct slc_error *err)
{
    struct slc_plan_request request = *requests->request;

    request.memory_bytes = budget_bytes;
    SLC_TRY(slc_plan_make(requests->layouts, &request, plan, err));
    if (plan->iteration_read_bytes > 0) {
        return slc_fail(err, SLC_ERR_BUDGET, "the store does not fit the budget");
    }
    if (requests->extra != NULL) {
        request = *requests->extra;
        request.memory_bytes = budget_bytes;
        request.resident_bytes = plan->total_bytes;
        SLC_TRY(slc_plan_make(requests->layouts, &request, extra, err));
    }
    return SLC_OK;
}

/* Returns the smallest sufficient budget in bytes, a whole number of MiB because messages print
 * MiB. UINT64_MAX means that no budget suffices. */
static uint64_t least_budget(const struct requests *requests, uint64_t refused_bytes)
{
    const uint64_t mib = UINT64_C(1) << 20;
    struct slc_plan plan, extra;
    uint64_t low = refused_bytes / mib;
    uint64_t high = low + 1;

    while (try_budget(requests, high * mib, &plan, &extra, NULL) != SLC_OK) {
        if (high > UINT64_MAX / mib / 2) {
            return UINT64_MAX;
        }
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;

        if (try_budget(requests, middle * mib, &plan, &extra, NULL) == SLC_OK) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high * mib;
}

enum slc_status bench_resident_plan(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    const struct slc_plan_request *extra,
                                    struct slc_plan *plan,
                                    struct slc_plan *extra_plan,
                                    struct slc_error *err)
{
    const struct requests requests = {layouts, request, extra};
    struct slc_error fault = SLC_ERROR_INIT;
    const enum slc_status status =
        try_budget(&requests, request->memory_bytes, plan, extra_plan, &fault);

    if (status == SLC_OK) {
        return SLC_OK;
    }
    uint64_t need =
        status == SLC_ERR_BUDGET ? least_budget(&requests, request->memory_bytes) : UINT64_MAX;
    if (need != UINT64_MAX) {
        return slc_fail_budget(
            err, request->memory_bytes, need,
            "this benchmark with rank %" PRIu32 ", %u threads and all %" PRIu64
            " MiB of blocks%s in memory",
            request->rank, plan->threads,
            slc_div_up_u64(slc_reader_info(layouts->reader[0])->file_bytes, UINT64_C(1) << 20),
            request->copies == SLC_COPIES_ALWAYS ? " and replicas" : "");
    }
    slc_error_pass(err, &fault);
    return status;
}

enum slc_status bench_resident_load(struct slc_session *session, struct slc_error *err)
{
    SLC_TRY(slc_session_start(session, err));
    return bench_scan_pass(session->stream, err);
}

enum slc_status bench_resident_start(struct slc_session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err)
{
    if (session->layouts.count == 0) {
        session->layouts = slc_layouts_one(session->store.reader);
    }
    SLC_TRY(bench_resident_plan(&session->layouts, request, NULL, &session->plan, NULL, err));
    return bench_resident_load(session, err);
}
