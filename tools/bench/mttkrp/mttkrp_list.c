/* Lists of coordinates for the baselines; see mttkrp_list.h. */
#include "tools/bench/mttkrp/mttkrp_list.h"

#include "base/error/clock.h"
#include "engine/executor/owned.h"

#include <inttypes.h>
#include <stdio.h>

static bool any_permuted(const struct bench_mttkrp_group *group)
{
    for (unsigned v = 0; v < group->variant_count; v++) {
        if (group->variants[v].listed && group->variants[v].kernel == SLC_COO_PERMUTED) {
            return true;
        }
    }
    return false;
}

static enum slc_status
add_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    (void)worker;
    return slc_coo_add_tile(context, tile, err);
}

static enum slc_status permute(const struct slc_session *session,
                               struct bench_mttkrp_group *group,
                               struct slc_coo *coo,
                               struct slc_error *err)
{
    struct bench_samples samples = {.count = 0};
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < group->repeats; i++) {
        const uint64_t start_ns = slc_clock_ns();

        for (unsigned n = group->mode_begin; n < group->mode_end && status == SLC_OK; n++) {
            status = slc_coo_permute(coo, n, session->plan.threads, err);
        }
        if (status != SLC_OK) {
            return status;
        }
        bench_samples_add(&samples, slc_seconds_since(start_ns));
    }
    group->permute_seconds = bench_samples_summary(&samples).median;
    return SLC_OK;
}

enum slc_status bench_list_load(struct slc_session *session,
                                struct bench_mttkrp_group *group,
                                struct slc_coo *coo,
                                struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = add_tile, .context = coo}}};
    const bool permuted = any_permuted(group);
    struct slc_tensor_shape shape;
    char what[100];

    slc_owned_shape(slc_reader_info(session->store.reader), &shape);
    (void)snprintf(what, sizeof what,
                   "the list of %" PRIu64 " nonzeros that the kernels of --kernel compute from",
                   shape.nnz);
    SLC_TRY(bench_mttkrp_hold(
        group, plan, slc_coo_bytes(&shape, group->precision, permuted, plan->threads), what, err));
    SLC_TRY(slc_coo_create(coo, &shape, group->precision, err));
    SLC_TRY(slc_stream_pass(session->stream, &pass, err));
    if (permuted) {
        SLC_TRY(permute(session, group, coo, err));
    }
    return SLC_OK;
}
