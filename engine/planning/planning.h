/* Makes plans (engine/plan/plan.h): adds up the memory that the other folders of engine/ need, and
 * divides the budget. */
#ifndef SLC_ENGINE_PLANNING_H
#define SLC_ENGINE_PLANNING_H

#include "base/error/error.h"
#include "engine/plan/plan.h"

/* Plans an operation. A mode is read from its sorted layout if `layouts` has this layout, otherwise
 * from the first layout, `blco`. Errors: SLC_ERR_BUDGET, with the smallest sufficient budget in the
 * message and in plan->minimum_bytes; SLC_ERR_USAGE. */
enum slc_status slc_plan_make(const struct slc_layouts *layouts,
                              const struct slc_plan_request *request,
                              struct slc_plan *plan,
                              struct slc_error *err) SLC_NODISCARD;

/* Makes the best of several plans, and closes the layouts that this plan does not read. Layouts:
 * `blco` alone is used if an iteration then reads fewer bytes than from sorted layouts, if copies
 * per mode fit only with `blco` alone, or if no other plan fits. Otherwise sorted layouts are used.
 * The smallest sufficient budget is the smaller of the minimums of two plans, with sorted layouts
 * and with `blco` alone. A deterministic plan uses all available layouts, because its bits may
 * depend on the layouts of a store, but not on the budget. Passes: two modes are updated per pass
 * if `request->passes` is SLC_PASSES_FUSED, or if it is SLC_PASSES_AUTO and an iteration then reads
 * fewer bytes than in any other plan. The plan then chooses the order of modes, unless the request
 * sets it. Errors: those of slc_plan_make; SLC_ERR_USAGE with the reason if passes that update two
 * modes are required but impossible. */
enum slc_status slc_plan_choose(struct slc_layouts *layouts,
                                const struct slc_plan_request *request,
                                struct slc_plan *plan,
                                struct slc_error *err) SLC_NODISCARD;

struct slc_ttm_division; /* engine/product/ttm.h */

/* Plans a TTM over the only layout of `layouts`. The request's rank is the number of columns of the
 * matrix. Blocks are read in file order and not cached. *division gets the rest of the budget,
 * which is counted in plan->output_bytes and total_bytes. With request->gpu, the lanes of the
 * device also use host memory of the budget. plan->threads is then the number of lanes plus, if the
 * CPU shares the work, the number of requested threads. Errors: those of slc_plan_make, and
 * SLC_ERR_BUDGET with the smallest sufficient device memory in the message. */
enum slc_status slc_ttm_plan(const struct slc_layouts *layouts,
                             const struct slc_plan_request *request,
                             struct slc_plan *plan,
                             struct slc_ttm_division *division,
                             struct slc_error *err) SLC_NODISCARD;

#endif
