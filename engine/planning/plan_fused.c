/* Plans passes that update two modes.
 *
 * Such a pass is made for one mode (the mode begins the pass), and also updates the next mode. A
 * mode can begin a pass if its rows are in ranges of blocks that fit in the ring; the indices of
 * the layouts contain these ranges. The planner chooses the modes that begin a pass, and the order
 * of modes. It plans two variants over sorted layouts. In the first variant, every mode that can
 * begin a pass does so if it is not updated by the previous pass. A pass may then update the last
 * mode of one iteration and the first mode of the next. If every mode can begin a pass, an
 * iteration has N/2 passes on average. In the second variant, the same pairs of modes are updated
 * in every iteration, so fewer layouts are read and a larger fraction of them is cached. A third
 * variant uses `blco` alone, with the largest mode first. The variant that reads the fewest bytes
 * is chosen.
 *
 * Cost: a few scans of all index entries per plan. */
#include "engine/planning/planning_impl.h"

#include "engine/stream/row_ranges.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

void slc_plan_count_passes(unsigned order, struct slc_plan *plan)
{
    struct slc_plan_fusion *fusion = &plan->fusion;
    bool pending = false;

    /* The last pass of the previous iteration may or may not have computed the MTTKRP of the first
     * mode. The sequence of passes therefore repeats after one or two iterations. The loop makes
     * four iterations: two until the sequence repeats, and two that are counted. */
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

/* Sorts modes by descending size; modes of equal size stay in ascending order. */
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

/* One variant (see the comment at the top of this file). */
struct variant {
    struct slc_layouts layouts;
    struct slc_plan_fusion fusion;
    bool chooses_order;
    unsigned mode_order[SLC_MAX_ORDER];
};

/* Adds `mode` to fusion->modes if it can begin a pass over number `layout` of the layouts. Errors:
 * SLC_ERR_MEMORY. */
static enum slc_status check_mode(const struct slc_layouts *layouts,
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

/* Sets the order of modes: the order of the request if it has one, otherwise 0, 1, .. If the
 * variant may choose the order, modes that begin a pass alternate with modes that do not, as long
 * as modes of both kinds are left. */
static void
choose_order(const struct slc_plan_request *request, unsigned order, struct variant *variant)
{
    unsigned begins = 0, follows = 0;

    for (unsigned k = 0; k < order; k++) {
        variant->mode_order[k] = request->mode_order_set ? request->mode_order[k] : k;
    }
    for (unsigned k = 0; k < order && variant->chooses_order; k++) {
        while (begins < order && (variant->fusion.modes >> begins & 1U) == 0) {
            begins++;
        }
        while (follows < order && (variant->fusion.modes >> follows & 1U) != 0) {
            follows++;
        }
        variant->mode_order[k] =
            follows == order || (k % 2 == 0 && begins < order) ? begins++ : follows++;
    }
}

/* Keeps at most order / 2 of the modes that begin a pass, so that each has its own second mode. If
 * the order of modes is fixed, the first possible modes are kept, otherwise the largest. */
static void keep_pairs(const struct slc_plan_request *request,
                       const struct slc_layout_info *info,
                       struct variant *variant)
{
    unsigned modes_by[SLC_MAX_ORDER];
    uint32_t modes = 0;
    unsigned pairs = 0;

    order_by_length(info, modes_by);
    if (!variant->chooses_order) {
        choose_order(request, info->order, variant);
        memcpy(modes_by, variant->mode_order, sizeof modes_by);
    }
    for (unsigned k = 0; k < info->order && pairs < info->order / 2; k++) {
        if ((variant->fusion.modes >> modes_by[k] & 1U) != 0) {
            modes |= UINT32_C(1) << modes_by[k];
            pairs++;
            k += !variant->chooses_order;
        }
    }
    variant->fusion.modes = modes;
}

/* Removes the mode whose ranges need the most slots from the modes that begin a pass. */
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

/* Plans a variant. While the plan does not fit in the budget, removes modes that begin passes. */
static enum slc_status plan_variant(const struct slc_plan_request *request,
                                    struct variant *variant,
                                    struct slc_plan *plan,
                                    struct slc_error *err)
{
    const unsigned order = slc_reader_info(variant->layouts.reader[0])->order;
    enum slc_status status;

    for (;;) {
        struct slc_plan_fusion *fusion = &variant->fusion;

        choose_order(request, order, variant);
        status = slc_plan_make_fused(&variant->layouts, request, fusion, variant->mode_order, plan,
                                     NULL);
        /* In a deterministic run no mode is removed, because bits must not depend on the budget.
         * The last mode that begins a pass is never removed. */
        if (status != SLC_ERR_BUDGET || request->deterministic ||
            (fusion->modes & (fusion->modes - 1)) == 0) {
            break;
        }
        drop_largest(fusion);
    }
    return status == SLC_OK ? SLC_OK
                            : slc_plan_make_fused(&variant->layouts, request, &variant->fusion,
                                                  variant->mode_order, plan, err);
}

/* Removes modes with fewer than `ranges_least` ranges. Returns true if this removed the last
 * mode. */
static bool drop_few(unsigned ranges_least, struct variant *variant)
{
    const uint32_t before = variant->fusion.modes;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        if (variant->fusion.ranges[n] < ranges_least) {
            variant->fusion.modes &= ~(UINT32_C(1) << n);
        }
    }
    return before != 0 && variant->fusion.modes == 0;
}

/* Finds the modes that can begin a pass, over the sorted layouts and over `blco` alone. */
static enum slc_status check_layouts(const struct slc_layouts *layouts,
                                     const struct slc_plan_request *request,
                                     struct variant *sorted,
                                     struct variant *blco,
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
            SLC_TRY(check_mode(layouts, request, layout, n, &sorted->fusion, err));
        }
    }
    /* Ranges of `blco` depend on the block size; the bits of a deterministic run must not. */
    if (!request->deterministic && request->layouts != SLC_LAYOUTS_SORTED) {
        order_by_length(info, by_length);
        SLC_TRY(check_mode(layouts, request, 0, by_length[0], &blco->fusion, err));
    }
    return SLC_OK;
}

/* Plans the variant `tried`, and keeps its plan if it reads fewer bytes than the best plan so
 * far. */
static void try_variant(const struct slc_plan_request *request,
                        const struct variant *tried,
                        enum slc_status *status,
                        struct slc_plan *plan,
                        unsigned *layout_count,
                        struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;
    struct variant copy = *tried;
    struct variant *variant = &copy;
    struct slc_plan made;

    if (variant->fusion.modes == 0) {
        return;
    }
    enum slc_status this_one = plan_variant(request, variant, &made, &fault);
    if ((this_one == SLC_OK &&
         (*status != SLC_OK || made.iteration_read_bytes < plan->iteration_read_bytes)) ||
        (this_one != SLC_OK && *status == SLC_ERR_USAGE)) {
        slc_error_clear(err);
        if (err != NULL) {
            *err = fault;
        }
        *status = this_one;
        *plan = made;
        *layout_count = variant->layouts.count;
    }
}

static enum slc_status fail_no_ranges(const struct slc_layouts *layouts,
                                      const struct slc_plan_request *request,
                                      struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    unsigned by_length[SLC_MAX_ORDER];

    order_by_length(info, by_length);
    return slc_fail_fields(
        err, SLC_ERR_USAGE, SLC_FIELD_SORTED_LAYOUT, SLC_FIELD_PASSES,
        "no pass can update two modes: %s; build the layout sorted by the largest mode, %u, or "
        "request plain passes",
        request->deterministic ? "deterministic passes need a sorted layout of one of the modes"
                               : "every layout has a range of rows that spans more blocks than the "
                                 "ring may have slots",
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
    struct variant sorted, blco, pairs;
    struct slc_error fault = SLC_ERROR_INIT;

    SLC_TRY(check_layouts(layouts, request, &sorted, &blco, err));
    fused.copies = SLC_COPIES_NEVER;
    bool few = drop_few(ranges_least, &sorted);
    few = drop_few(ranges_least, &blco) || few;
    enum slc_status status = SLC_ERR_USAGE;
    *reason = few ? SLC_FUSION_FEW_RANGES : SLC_FUSION_NO_RANGES;
    /* A different order of modes yields different factors. A different order is used only if its
     * plan reads fewer bytes than all plans with the given order, and never in deterministic
     * runs. */
    for (unsigned order = 0; order < 2; order++) {
        sorted.chooses_order = blco.chooses_order = order == 1;
        pairs = sorted;
        keep_pairs(request, slc_reader_info(layouts->reader[0]), &pairs);
        if (order == 0 || !(request->deterministic || request->mode_order_set)) {
            try_variant(&fused, &sorted, &status, plan, layout_count, &fault);
            if (!request->deterministic) {
                try_variant(&fused, &pairs, &status, plan, layout_count, &fault);
            }
            try_variant(&fused, &blco, &status, plan, layout_count, &fault);
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
