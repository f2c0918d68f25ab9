/* Lists of coordinates for the baselines; see mttkrp_list.h. */
#include "mttkrp_list.h"

#include "base/checked.h"
#include "base/clock.h"
#include "engine/owned.h"

#include <inttypes.h>

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

static enum slc_status check_room(const struct slc_plan *plan,
                                  const struct slc_tensor_shape *shape,
                                  uint64_t list_bytes,
                                  struct slc_error *err)
{
    uint64_t need_bytes;

    if (!slc_add_u64(plan->total_bytes, list_bytes, &need_bytes)) {
        need_bytes = UINT64_MAX;
    }
    if (need_bytes <= plan->budget_bytes) {
        return SLC_OK;
    }
    return slc_fail_budget(err, plan->budget_bytes, need_bytes,
                           "the list of %" PRIu64 " nonzeros (%" PRIu64
                           " MiB) that the kernels of --kernel compute from, beside the store",
                           shape->nnz, slc_div_up_u64(list_bytes, UINT64_C(1) << 20));
}

static enum slc_status permute(const struct session *session,
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

enum slc_status bench_list_load(struct session *session,
                                struct bench_mttkrp_group *group,
                                struct slc_coo *coo,
                                struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;
    const struct slc_pass pass = {.tile = add_tile, .context = coo};
    const bool permuted = any_permuted(group);
    struct slc_tensor_shape shape;
    enum slc_status status;

    slc_owned_shape(slc_reader_info(session->store.reader), &shape);
    status = check_room(plan, &shape,
                        slc_coo_bytes(&shape, group->precision, permuted, plan->threads), err);
    if (status == SLC_OK) {
        status = slc_coo_create(coo, &shape, group->precision, err);
    }
    if (status == SLC_OK) {
        status = slc_stream_pass(session->stream, &pass, err);
    }
    if (status == SLC_OK && permuted) {
        status = permute(session, group, coo, err);
    }
    return status;
}
