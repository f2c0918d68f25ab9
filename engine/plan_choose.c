/*
 * The choice between sorted layouts and `blco` alone.
 *
 * Sorted layouts need no locks and no copies of the output, but each is read for one mode alone:
 * they share the cache, so that where most of one copy stays in memory that one reads less. What
 * decides is what an iteration reads by the plan of either.
 */
#include "engine/plan_impl.h"

/* Whether the plan with sorted layouts is worse than that of `blco` alone. */
static bool prefers_blco(const struct slc_plan *sorted, const struct slc_plan *blco)
{
    return blco->copies_bytes > 0 || sorted->iteration_read_bytes > blco->iteration_read_bytes;
}

enum slc_status slc_plan_choose(struct slc_layouts *layouts,
                                const struct slc_plan_request *request,
                                struct slc_plan *plan,
                                struct slc_error *err)
{
    const struct slc_layouts blco = slc_layouts_one(layouts->reader[0]);
    struct slc_plan alone;
    enum slc_status status;

    if (layouts->count == 1 || request->deterministic || request->layouts == SLC_LAYOUTS_SORTED) {
        return slc_plan_make(layouts, request, plan, err);
    }
    status = slc_plan_make(&blco, request, &alone, err);
    if (status == SLC_OK && slc_plan_make(layouts, request, plan, NULL) == SLC_OK &&
        !prefers_blco(plan, &alone)) {
        plan->other_read_bytes = alone.iteration_read_bytes;
        return SLC_OK;
    }
    if (status == SLC_OK) {
        alone.other_read_bytes = plan->iteration_read_bytes;
    }
    *plan = alone;
    slc_layouts_close(layouts);
    *layouts = blco;
    return status;
}
