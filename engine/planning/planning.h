/*
 * Makes plans (engine/plan/plan.h): asks all other folders of engine/ for their memory needs, and
 * divides the budget.
 */
#ifndef SLC_ENGINE_PLANNING_H
#define SLC_ENGINE_PLANNING_H

#include "base/error/error.h"
#include "engine/plan/plan.h"

/*
 * Plans an operation: a mode is read from the layout sorted by it if `layouts` has that, otherwise
 * from the first, `blco`. Errors: SLC_ERR_BUDGET, naming minimum_bytes (which *plan then holds,
 * too); SLC_ERR_USAGE.
 */
enum slc_status slc_plan_make(const struct slc_layouts *layouts,
                              const struct slc_plan_request *request,
                              struct slc_plan *plan,
                              struct slc_error *err) SLC_NODISCARD;

/*
 * Makes the best of several plans and closes the layouts that it does not read.
 * Layouts: sorted ones are used unless an iteration would read more from them, copies per mode fit
 * without them, or only `blco` fits; also if `blco` does not fit. The smallest budget is the
 * smaller of the two. A deterministic plan uses all available layouts: its bits may depend on the
 * layouts of a store, but not on the budget.
 * Passes: two modes per pass if `request->passes` requires it or, with AUTO, if an iteration then
 * reads less than in any other plan; the order of modes is then the plan's, unless the request sets
 * it.
 * Errors: as slc_plan_make; SLC_ERR_USAGE with the reason if passes that update two modes are
 * required but impossible.
 */
enum slc_status slc_plan_choose(struct slc_layouts *layouts,
                                const struct slc_plan_request *request,
                                struct slc_plan *plan,
                                struct slc_error *err) SLC_NODISCARD;

struct slc_ttm_division; /* engine/product/ttm.h */

/*
 * Plans a product over the only layout of `layouts`: the request's rank is the number of columns;
 * blocks are read in file order and not cached. The rest of the budget goes to *division, and is
 * counted in plan->output_bytes and total_bytes. With request->gpu its lanes use a part of the
 * budget, too, and plan->threads counts the request's threads, if the CPU shares the work, plus one
 * per lane. Errors: as slc_plan_make, and SLC_ERR_BUDGET naming the --device-memory that is enough.
 */
enum slc_status slc_ttm_plan(const struct slc_layouts *layouts,
                             const struct slc_plan_request *request,
                             struct slc_plan *plan,
                             struct slc_ttm_division *division,
                             struct slc_error *err) SLC_NODISCARD;

#endif
