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
    struct slc_plan sorted, alone;
    bool sorted_fits, alone_fits, take_sorted;

    if (layouts->count == 1 || request->deterministic || request->layouts == SLC_LAYOUTS_SORTED) {
        return slc_plan_make(layouts, request, plan, err);
    }
    sorted.minimum_bytes = UINT64_MAX;
    alone.minimum_bytes = UINT64_MAX;
    sorted_fits = slc_plan_make(layouts, request, &sorted, NULL) == SLC_OK;
    alone_fits = slc_plan_make(&blco, request, &alone, NULL) == SLC_OK;
    if (!sorted_fits && !alone_fits) {
        /* Once more, for the message of the one that works with less. */
        return slc_plan_make(sorted.minimum_bytes < alone.minimum_bytes ? layouts : &blco, request,
                             plan, err);
    }
    take_sorted = sorted_fits && (!alone_fits || !prefers_blco(&sorted, &alone));
    *plan = take_sorted ? sorted : alone;
    plan->minimum_bytes = slc_min_u64(sorted.minimum_bytes, alone.minimum_bytes);
    if (sorted_fits && alone_fits) {
        plan->other_read_bytes = (take_sorted ? &alone : &sorted)->iteration_read_bytes;
    }
    if (!take_sorted) {
        slc_layouts_close(layouts);
        *layouts = blco;
    }
    return SLC_OK;
}
