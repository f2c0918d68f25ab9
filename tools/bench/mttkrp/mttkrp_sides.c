/* Further layouts in memory; see mttkrp_sides.h. */
#include "tools/bench/mttkrp/mttkrp_sides.h"

#include "base/memory/checked.h"
#include "engine/planning/planning.h"
#include "tools/bench/measure/scan.h"

#include <stdio.h>
#include <string.h>

/*
 * For plans that are asked what they would hold: the budget is the session's, and is compared with
 * what all of them come to.
 */
#define ANY_BYTES (UINT64_MAX / 2)

enum slc_layout_kind bench_mttkrp_fiber_layout(const struct slc_store *store, unsigned mode)
{
    return slc_manifest_find(&store->manifest, SLC_LAYOUT_FIBER, mode) != NULL ? SLC_LAYOUT_FIBER
                                                                               : SLC_LAYOUT_BLCO;
}

bool bench_mttkrp_has_fibers(const struct slc_store *store, unsigned mode)
{
    const struct slc_key_layout *keys = &slc_reader_info(store->reader)->keys;

    /* Where a mode has one index any order keeps its fibers, but then tiles have other runs. */
    return bench_mttkrp_fiber_layout(store, mode) == SLC_LAYOUT_FIBER ||
           (keys->run.bits > 0 && keys->run.mode == mode && slc_key_layout_fibers(keys, mode));
}

/* What the side holds that the session has not counted: its own layouts, and more scratch. */
static uint64_t side_bytes(const struct slc_plan *plan, const struct slc_plan *session_plan)
{
    const uint64_t scratch =
        plan->request.operation == SLC_OP_CPD && plan->scratch_bytes > session_plan->scratch_bytes
            ? plan->scratch_bytes - session_plan->scratch_bytes
            : 0;

    return plan->index_bytes + plan->decoder_bytes + plan->slot_count * plan->slot_bytes +
           plan->cache_bytes + scratch;
}

/* Plans a side whose layouts are open, opens its stream and reads all blocks that it will need. */
static enum slc_status start_side(struct bench_mttkrp_side *side,
                                  const struct slc_session *session,
                                  struct bench_mttkrp_group *group,
                                  const struct slc_plan_request *request,
                                  const char *what,
                                  struct slc_error *err)
{
    enum slc_status status = slc_plan_make(&side->layouts, request, &side->plan, err);

    if (status == SLC_OK) {
        status = bench_mttkrp_hold(group, &session->plan, side_bytes(&side->plan, &session->plan),
                                   what, err);
    }
    if (status == SLC_OK) {
        status =
            slc_stream_open(slc_files_system(), &side->layouts, &side->plan, &side->stream, err);
    }
    for (unsigned l = 0; l < side->layouts.count && status == SLC_OK; l++) {
        if (side->plan.layouts[l].passes > 0) {
            status = bench_scan_layout(side->stream, l, err);
        }
    }
    return status;
}

static enum slc_status open_sorted(struct bench_mttkrp_sides *sides,
                                   const struct slc_session *session,
                                   struct bench_mttkrp_group *group,
                                   struct slc_error *err)
{
    const bool one_mode = group->mode_end - group->mode_begin == 1;
    const struct slc_plan_request request = {.operation = one_mode ? SLC_OP_MTTKRP : SLC_OP_CPD,
                                             .mode = group->mode_begin,
                                             .rank = group->rank,
                                             .precision = group->precision,
                                             .threads = group->threads,
                                             .slots = 2,
                                             .memory_bytes = ANY_BYTES,
                                             .cache = true,
                                             .copies = SLC_COPIES_NEVER,
                                             .passes = SLC_PASSES_PLAIN};
    enum slc_status status;

    status = slc_layouts_open(sides->store, SLC_LAYOUTS_SORTED,
                              one_mode ? UINT32_C(1) << group->mode_begin : UINT32_MAX, ANY_BYTES,
                              &sides->sorted.layouts, err);
    return status == SLC_OK
               ? start_side(&sides->sorted, session, group, &request, "the sorted layouts", err)
               : status;
}

static enum slc_status open_fibers(struct bench_mttkrp_sides *sides,
                                   const struct slc_session *session,
                                   struct bench_mttkrp_group *group,
                                   unsigned mode,
                                   struct slc_error *err)
{
    /* Nothing but decoding is planned: of rank 1, so that next to nothing is. */
    const struct slc_plan_request request = {.operation = SLC_OP_MTTKRP,
                                             .rank = 1,
                                             .precision = group->precision,
                                             .threads = group->threads,
                                             .slots = 2,
                                             .memory_bytes = ANY_BYTES,
                                             .cache = true};
    struct bench_mttkrp_side *side = &sides->fibers[mode];
    struct slc_reader *reader;
    enum slc_status status = slc_store_open_fibers(sides->store, mode, ANY_BYTES, &reader, err);
    char what[60];

    if (status != SLC_OK) {
        return status;
    }
    side->layouts = slc_layouts_one(reader);
    (void)snprintf(what, sizeof what, "the layout with whole fibers of mode %u", mode + 1);
    return start_side(side, session, group, &request, what, err);
}

enum slc_status bench_mttkrp_sides_open(struct bench_mttkrp_sides *sides,
                                        const struct slc_session *session,
                                        struct bench_mttkrp_group *group,
                                        struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    sides->store = &session->store;
    for (unsigned v = 0; v < group->variant_count && status == SLC_OK; v++) {
        const struct bench_mttkrp_variant *variant = &group->variants[v];

        if (variant->sorted && sides->sorted.stream == NULL) {
            status = open_sorted(sides, session, group, err);
        }
        if (variant->fibers && sides->fibers[variant->fiber_mode].stream == NULL) {
            status = open_fibers(sides, session, group, variant->fiber_mode, err);
        }
    }
    return status;
}

void bench_mttkrp_sides_close(struct bench_mttkrp_sides *sides)
{
    slc_stream_close(sides->sorted.stream);
    slc_layouts_close(&sides->sorted.layouts);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_stream_close(sides->fibers[n].stream);
        if (sides->fibers[n].layouts.count > 0) {
            slc_store_close_layout(sides->store, sides->fibers[n].layouts.reader[0]);
        }
    }
    memset(sides, 0, sizeof *sides);
}
