/*
 * Makes plans (engine/plan/plan.h): queries the memory needs of all other folders of engine/, and
 * divides the budget.
 */
#ifndef SLC_ENGINE_PLANNING_H
#define SLC_ENGINE_PLANNING_H

#include "base/error/error.h"
#include "engine/plan/plan.h"

/*
 * Plans an operation. A mode is read from the layout sorted by it if `layouts` has such a layout,
 * otherwise from the first layout, `blco`. Errors: SLC_ERR_BUDGET, naming minimum_bytes, which is
 * then also set in *plan; SLC_ERR_USAGE.
 */
enum slc_status slc_plan_make(const struct slc_layouts *layouts,
                              const struct slc_plan_request *request,
                              struct slc_plan *plan,
                              struct slc_error *err) SLC_NODISCARD;

/*
 * Makes the best of several plans and closes the layouts that it does not read.
 * Layouts: sorted layouts are used unless an iteration would read more bytes from them than from
 * `blco`, copies per mode fit only without them, or only the plan with `blco` fits. They are also
 * used if `blco` does not fit. The smallest budget is the smaller one of both plans. A
 * deterministic plan uses all available layouts: its bits may depend on the layouts of a store, but
 * not on the budget.
 * Passes: two modes are updated per pass if `request->passes` requires it or, with AUTO, if an
 * iteration then reads fewer bytes than in any other plan. The plan then chooses the order of
 * modes, unless the request sets it.
 * Errors: those of slc_plan_make; SLC_ERR_USAGE with the reason if passes that update two modes are
 * required but impossible.
 */
enum slc_status slc_plan_choose(struct slc_layouts *layouts,
                                const struct slc_plan_request *request,
                                struct slc_plan *plan,
                                struct slc_error *err) SLC_NODISCARD;

struct slc_ttm_division; /* engine/product/ttm.h */

/*
 * Plans a product over the only layout of `layouts`. The request's rank is the number of columns of
 * the matrix. Blocks are read in file order and not cached. The rest of the budget is assigned to
 * *division and counted in plan->output_bytes and total_bytes. With request->gpu, the lanes of the
 * device also use a part of the budget. plan->threads then counts one thread per lane and, if the
 * CPU shares the work, the request's threads. Errors: those of slc_plan_make, and SLC_ERR_BUDGET
 * naming the --device-memory that is enough.
 */
enum slc_status slc_ttm_plan(const struct slc_layouts *layouts,
                             const struct slc_plan_request *request,
                             struct slc_plan *plan,
                             struct slc_ttm_division *division,
                             struct slc_error *err) SLC_NODISCARD;

#endif
