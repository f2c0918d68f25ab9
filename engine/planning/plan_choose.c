/* Chooses between plans.
 *
 * Passes over sorted layouts need neither locks nor copies of the output. But each sorted layout
 * serves only one mode, and all of them share the cache. If most of `blco` fits in memory, passes
 * over `blco` alone therefore read fewer bytes. Passes that update two modes read fewer layouts, or
 * the same layouts less often, but need slots for whole ranges of rows and a second output. The
 * plan that reads the fewest bytes per iteration is chosen. */
#include "engine/planning/planning_impl.h"

/* Returns true if the plan with `blco` alone is better than the plan with sorted layouts. */
static bool prefers_blco(const struct slc_plan *sorted, const struct slc_plan *blco)
{
    /* From `blco`, rows are gathered in several passes. Each pass decodes all blocks, so the cost
     * must include decoding. */
    if (sorted->request.rows.nonzeros) {
        return slc_plan_rows_cost(sorted) > slc_plan_rows_cost(blco);
    }
    return blco->copies_bytes > 0 || sorted->iteration_read_bytes > blco->iteration_read_bytes;
}

/* Chooses the best plan with plain passes. Sets *layout_count to the number of layouts that this
 * plan reads, 1 for `blco` alone. */
static enum slc_status choose_plain(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    struct slc_plan *plan,
                                    unsigned *layout_count,
                                    struct slc_error *err)
{
    const struct slc_layouts blco = slc_layouts_one(layouts->reader[0]);
    struct slc_plan sorted, alone;

    *layout_count = layouts->count;
    if (request->gpu != NULL && request->layouts != SLC_LAYOUTS_SORTED) {
        *layout_count = 1;
        return slc_plan_make(&blco, request, plan, err);
    }
    if (layouts->count == 1 || request->deterministic || request->layouts == SLC_LAYOUTS_SORTED) {
        return slc_plan_make(layouts, request, plan, err);
    }
    sorted.minimum_bytes = UINT64_MAX;
    alone.minimum_bytes = UINT64_MAX;
    bool sorted_fits = slc_plan_make(layouts, request, &sorted, NULL) == SLC_OK;
    bool alone_fits = slc_plan_make(&blco, request, &alone, NULL) == SLC_OK;
    if (!sorted_fits && !alone_fits) {
        /* Neither plan fits. Make the plan with the smaller minimum again, for its error
         * message. */
        return slc_plan_make(sorted.minimum_bytes < alone.minimum_bytes ? layouts : &blco, request,
                             plan, err);
    }
    bool use_sorted = sorted_fits && (!alone_fits || !prefers_blco(&sorted, &alone));
    *plan = use_sorted ? sorted : alone;
    plan->minimum_bytes = slc_min_u64(sorted.minimum_bytes, alone.minimum_bytes);
    if (sorted_fits && alone_fits) {
        plan->other_read_bytes = (use_sorted ? &alone : &sorted)->iteration_read_bytes;
    }
    *layout_count = use_sorted ? layouts->count : 1;
    return SLC_OK;
}

/* Replaces the plan with a plan whose passes update two modes if the new plan reads fewer bytes;
 * otherwise records the reason. */
static enum slc_status consider_fused(const struct slc_layouts *layouts,
                                      const struct slc_plan_request *request,
                                      struct slc_plan *plan,
                                      unsigned *layout_count,
                                      struct slc_error *err)
{
    struct slc_plan fused;
    unsigned fused_layouts;
    enum slc_fusion_reason reason;

    if (request->deterministic || plan->copies_bytes > 0) {
        plan->fusion.reason = request->deterministic ? SLC_FUSION_FIXED_BITS : SLC_FUSION_COPIES;
        return SLC_OK;
    }
    enum slc_status status = slc_plan_choose_fused(layouts, request, plan->threads, &fused,
                                                   &fused_layouts, &reason, NULL);
    if (status != SLC_OK) {
        plan->fusion.reason = reason;
        return status == SLC_ERR_MEMORY ? slc_fail(err, status, "no memory to plan passes")
                                        : SLC_OK;
    }
    if (fused.iteration_read_bytes >= plan->iteration_read_bytes) {
        plan->fusion.reason = SLC_FUSION_NO_GAIN;
        plan->fusion.other_read_bytes = fused.iteration_read_bytes;
        return SLC_OK;
    }
    fused.fusion.other_read_bytes = plan->iteration_read_bytes;
    fused.minimum_bytes = plan->minimum_bytes;
    *plan = fused;
    *layout_count = fused_layouts;
    return SLC_OK;
}

/* Plans passes that update two modes, even if plain passes would read fewer bytes. */
static enum slc_status require_fused(const struct slc_layouts *layouts,
                                     const struct slc_plan_request *request,
                                     struct slc_plan *plan,
                                     unsigned *layout_count,
                                     struct slc_error *err)
{
    struct slc_plan_request simple = *request;
    struct slc_plan plain;
    enum slc_fusion_reason reason;
    unsigned plain_layouts;

    simple.copies = SLC_COPIES_NEVER;
    enum slc_status status =
        slc_plan_check_request(slc_reader_info(layouts->reader[0]), request, err);
    SLC_THEN(status, slc_plan_choose_fused(layouts, request, 0, plan, layout_count, &reason, err));
    if (status == SLC_OK &&
        choose_plain(layouts, &simple, &plain, &plain_layouts, NULL) == SLC_OK) {
        plan->fusion.other_read_bytes = plain.iteration_read_bytes;
    }
    return status;
}

enum slc_status slc_plan_choose(struct slc_layouts *layouts,
                                const struct slc_plan_request *request,
                                struct slc_plan *plan,
                                struct slc_error *err)
{
    const bool many = request->operation == SLC_OP_CPD && request->passes != SLC_PASSES_PLAIN &&
                      !request->rows.nonzeros && slc_reader_info(layouts->reader[0])->order > 1;
    unsigned layout_count;
    enum slc_status status;

    if (many && request->passes == SLC_PASSES_FUSED) {
        status = require_fused(layouts, request, plan, &layout_count, err);
    } else {
        status = choose_plain(layouts, request, plan, &layout_count, err);
        if (status == SLC_OK && many && (request->cpu_groups > 0 || request->gpu != NULL)) {
            plan->fusion.reason = request->cpu_groups > 0 ? SLC_FUSION_CPU_GROUPS : SLC_FUSION_GPU;
        } else if (status == SLC_OK && many) {
            status = consider_fused(layouts, request, plan, &layout_count, err);
        }
    }
    if (status == SLC_OK && layout_count < layouts->count) {
        const struct slc_layouts blco = slc_layouts_one(layouts->reader[0]);

        slc_layouts_close(layouts);
        *layouts = blco;
    }
    return status;
}
