/*
 * Planning passes that update two modes.
 *
 * Which modes may begin one is seen from the indices: those whose rows lie in ranges of blocks that
 * the ring can hold. What is left to choose is which of them do, and the order of modes. Two ways
 * are planned over sorted layouts: all that can, so that pairs run on from one iteration into the
 * next (N/2 passes with all layouts), and pairs that stay, of which fewer layouts are read, so that
 * more of each is cached; and one over `blco` alone, in which the longest mode begins. The one that
 * reads least is taken.
 *
 * Cost: some looks at every index entry for each plan.
 */
#include "engine/planning/planning_impl.h"

#include "engine/stream/row_ranges.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

void slc_plan_count_passes(unsigned order, struct slc_plan *plan)
{
    struct slc_plan_fusion *fusion = &plan->fusion;
    bool pending = false;

    /*
     * An iteration begins with an MTTKRP that the last one has left, or without: two states, so
     * that after two iterations they repeat, every one or every second.
     */
    for (unsigned step = 0; step < 4 * order; step++) {
        const unsigned mode = plan->mode_order[step % order];

        if (pending) {
            pending = false;
            continue;
        }
        if (step >= 2 * order) {
            plan->layouts[plan->mode_layout[mode]].passes += 0.5;
            plan->passes += 0.5;
        }
        if ((fusion->modes >> mode & 1U) != 0) {
            pending = true;
            fusion->seconds |= UINT32_C(1) << plan->mode_order[(step + 1) % order];
        }
    }
}

/* Modes by falling length, the first of equals first. */
static void order_by_length(const struct slc_layout_info *info, unsigned *modes)
{
    for (unsigned n = 0; n < info->order; n++) {
        unsigned at = n;

        while (at > 0 && info->dims[modes[at - 1]] < info->dims[n]) {
            modes[at] = modes[at - 1];
            at--;
        }
        modes[at] = n;
    }
}

/* One way to update two modes in a pass. */
struct way {
    struct slc_layouts layouts;
    struct slc_plan_fusion fusion;
    bool chooses_order;
    unsigned mode_order[SLC_MAX_ORDER];
};

/*
 * Looks whether mode `mode` may begin a pass that updates two, over layout `layout`. Errors:
 * SLC_ERR_MEMORY.
 */
static enum slc_status look_at_mode(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    unsigned layout,
                                    unsigned mode,
                                    struct slc_plan_fusion *fusion,
                                    struct slc_error *err)
{
    const uint64_t slots = request->slots != 0 ? request->slots : SLC_PLAN_SLOTS_MAX;
    struct slc_row_ranges ranges;

    SLC_TRY(slc_row_ranges_make(layouts->reader[layout], mode, true, &ranges, err));
    if (ranges.count > 0 && ranges.max_blocks <= slots) {
        fusion->modes |= UINT32_C(1) << mode;
        fusion->ranges[mode] = ranges.count;
        fusion->range_blocks[mode] = ranges.max_blocks;
        fusion->table_bytes[mode] = slc_row_ranges_memory_bytes(&ranges);
    }
    slc_row_ranges_destroy(&ranges);
    return SLC_OK;
}

/*
 * The order of modes: that of the request, or their natural one. Where the way may choose, modes
 * that begin a pass, each followed by one that does not, as far as there are both.
 */
static void choose_order(const struct slc_plan_request *request, unsigned order, struct way *way)
{
    unsigned begins = 0, follows = 0;

    for (unsigned k = 0; k < order; k++) {
        way->mode_order[k] = request->mode_order_set ? request->mode_order[k] : k;
    }
    for (unsigned k = 0; k < order && way->chooses_order; k++) {
        while (begins < order && (way->fusion.modes >> begins & 1U) == 0) {
            begins++;
        }
        while (follows < order && (way->fusion.modes >> follows & 1U) != 0) {
            follows++;
        }
        way->mode_order[k] =
            follows == order || (k % 2 == 0 && begins < order) ? begins++ : follows++;
    }
}

/*
 * Leaves as many modes to begin passes as make pairs: in an order that is to stay, from its front;
 * else the longest.
 */
static void keep_pairs(const struct slc_plan_request *request,
                       const struct slc_layout_info *info,
                       struct way *way)
{
    unsigned modes_by[SLC_MAX_ORDER];
    uint32_t modes = 0;
    unsigned pairs = 0;

    order_by_length(info, modes_by);
    if (!way->chooses_order) {
        choose_order(request, info->order, way);
        memcpy(modes_by, way->mode_order, sizeof modes_by);
    }
    for (unsigned k = 0; k < info->order && pairs < info->order / 2; k++) {
        if ((way->fusion.modes >> modes_by[k] & 1U) != 0) {
            modes |= UINT32_C(1) << modes_by[k];
            pairs++;
            k += !way->chooses_order;
        }
    }
    way->fusion.modes = modes;
}

/* The mode whose ranges need the most slots no longer begins a pass. */
static void drop_largest(struct slc_plan_fusion *fusion)
{
    unsigned largest = SLC_MAX_ORDER;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        if ((fusion->modes >> n & 1U) != 0 &&
            (largest == SLC_MAX_ORDER || fusion->range_blocks[n] > fusion->range_blocks[largest])) {
            largest = n;
        }
    }
    fusion->modes &= ~(UINT32_C(1) << largest);
}

/* Plans a way, with fewer modes that begin passes where memory asks for it. */
static enum slc_status plan_way(const struct slc_plan_request *request,
                                struct way *way,
                                struct slc_plan *plan,
                                struct slc_error *err)
{
    const unsigned order = slc_reader_info(way->layouts.reader[0])->order;
    enum slc_status status;

    for (;;) {
        struct slc_plan_fusion *fusion = &way->fusion;

        choose_order(request, order, way);
        status = slc_plan_make_fused(&way->layouts, request, fusion, way->mode_order, plan, NULL);
        /* Neither bits that may not depend on the budget nor the last mode are given up. */
        if (status != SLC_ERR_BUDGET || request->deterministic ||
            (fusion->modes & (fusion->modes - 1)) == 0) {
            break;
        }
        drop_largest(fusion);
    }
    return status == SLC_OK ? SLC_OK
                            : slc_plan_make_fused(&way->layouts, request, &way->fusion,
                                                  way->mode_order, plan, err);
}

/* Leaves modes alone that have fewer ranges. True where no other mode is left. */
static bool drop_few(unsigned ranges_least, struct way *way)
{
    const uint32_t before = way->fusion.modes;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        if (way->fusion.ranges[n] < ranges_least) {
            way->fusion.modes &= ~(UINT32_C(1) << n);
        }
    }
    return before != 0 && way->fusion.modes == 0;
}

/* What can be done over the sorted layouts; and over `blco` alone. */
static enum slc_status look_at_layouts(const struct slc_layouts *layouts,
                                       const struct slc_plan_request *request,
                                       struct way *sorted,
                                       struct way *blco,
                                       struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    unsigned by_length[SLC_MAX_ORDER];

    assert(info->order > 0);
    memset(sorted, 0, sizeof *sorted);
    memset(blco, 0, sizeof *blco);
    sorted->layouts = *layouts;
    blco->layouts = slc_layouts_one(layouts->reader[0]);
    for (unsigned n = 0; n < info->order; n++) {
        const unsigned layout = slc_layouts_sorted_by(layouts, n);

        if (layout > 0) {
            SLC_TRY(look_at_mode(layouts, request, layout, n, &sorted->fusion, err));
        }
    }
    /* The cuts of blco depend on the size of its blocks, on which bits may not depend. */
    if (!request->deterministic && request->layouts != SLC_LAYOUTS_SORTED) {
        order_by_length(info, by_length);
        SLC_TRY(look_at_mode(layouts, request, 0, by_length[0], &blco->fusion, err));
    }
    return SLC_OK;
}

/* Plans one more way, and keeps the plan if it reads less than the one there is. */
static void try_way(const struct slc_plan_request *request,
                    const struct way *tried,
                    enum slc_status *status,
                    struct slc_plan *plan,
                    unsigned *layout_count,
                    struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;
    struct way copy = *tried;
    struct way *way = &copy;
    struct slc_plan made;

    if (way->fusion.modes == 0) {
        return;
    }
    enum slc_status this_one = plan_way(request, way, &made, &fault);
    if ((this_one == SLC_OK &&
         (*status != SLC_OK || made.iteration_read_bytes < plan->iteration_read_bytes)) ||
        (this_one != SLC_OK && *status == SLC_ERR_USAGE)) {
        slc_error_clear(err);
        if (err != NULL) {
            *err = fault;
        }
        *status = this_one;
        *plan = made;
        *layout_count = way->layouts.count;
    }
}

static enum slc_status fail_no_ranges(const struct slc_layouts *layouts,
                                      const struct slc_plan_request *request,
                                      struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    unsigned by_length[SLC_MAX_ORDER];

    order_by_length(info, by_length);
    return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_SORTED_LAYOUT, SLC_FIELD_PASSES,
                           "no pass can update two modes: %s; make the layout sorted by the "
                           "longest mode, %u, or ask for plain passes",
                           request->deterministic
                               ? "deterministic ones need a layout sorted by one of them"
                               : "no layout closes the rows of one before it has gone on by as "
                                 "many blocks as the ring may have slots",
                           by_length[0] + 1);
}

enum slc_status slc_plan_choose_fused(const struct slc_layouts *layouts,
                                      const struct slc_plan_request *request,
                                      unsigned ranges_least,
                                      struct slc_plan *plan,
                                      unsigned *layout_count,
                                      enum slc_fusion_reason *reason,
                                      struct slc_error *err)
{
    struct slc_plan_request fused = *request;
    struct way sorted, blco, pairs;
    struct slc_error fault = SLC_ERROR_INIT;

    SLC_TRY(look_at_layouts(layouts, request, &sorted, &blco, err));
    fused.copies = SLC_COPIES_NEVER;
    bool few = drop_few(ranges_least, &sorted);
    few = drop_few(ranges_least, &blco) || few;
    enum slc_status status = SLC_ERR_USAGE;
    *reason = few ? SLC_FUSION_FEW_RANGES : SLC_FUSION_NO_RANGES;
    /*
     * Another order of modes gives other factors, so that it has to read less than this one. Where
     * the budget may not decide on bits there is no choice of anything.
     */
    for (unsigned order = 0; order < 2; order++) {
        sorted.chooses_order = blco.chooses_order = order == 1;
        pairs = sorted;
        keep_pairs(request, slc_reader_info(layouts->reader[0]), &pairs);
        if (order == 0 || !(request->deterministic || request->mode_order_set)) {
            try_way(&fused, &sorted, &status, plan, layout_count, &fault);
            if (!request->deterministic) {
                try_way(&fused, &pairs, &status, plan, layout_count, &fault);
            }
            try_way(&fused, &blco, &status, plan, layout_count, &fault);
        }
    }
    if (status == SLC_ERR_USAGE && fault.status == SLC_OK) {
        return fail_no_ranges(layouts, request, err);
    }
    if (status != SLC_OK) {
        *reason = SLC_FUSION_NO_MEMORY;
        slc_error_pass(err, &fault);
    }
    return status;
}
