/* Stores in memory; see resident.h. */
#include "resident.h"

#include <inttypes.h>

/* Nothing is computed in the pass that fills the cache. */
static enum slc_status
ignore_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    (void)context;
    (void)worker;
    (void)tile;
    (void)err;
    return SLC_OK;
}

enum slc_status bench_resident_start(struct session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err)
{
    const struct slc_pass fill = {.tile = ignore_tile};
    const struct slc_plan *plan = &session->plan;
    enum slc_status status = slc_plan_make(session->store.reader, request, &session->plan, err);

    if (status == SLC_OK && plan->pass_read_bytes > 0) {
        status = slc_fail(
            err, SLC_ERR_BUDGET,
            "%" PRIu64 " of %" PRIu64 " MiB of the store fit beside the factors in a "
            "budget of %" PRIu64 " MiB, and the benchmark needs all of them; give more by --memory",
            plan->cache_bytes >> 20, plan->store_bytes >> 20, plan->budget_bytes >> 20);
    }
    if (status == SLC_OK) {
        status = session_start(session, err);
    }
    if (status == SLC_OK) {
        status = slc_stream_pass(session->stream, &fill, err);
    }
    return status;
}
