/*
 * Makes plans (engine/plan/plan.h): what every other folder of engine/ needs is asked for here, and
 * the budget divided.
 */
#ifndef SLC_ENGINE_PLANNING_H
#define SLC_ENGINE_PLANNING_H

#include "base/error/error.h"
#include "engine/plan/plan.h"

/*
 * Plans an operation: a mode is read from the layout sorted by it where that is among `layouts`,
 * else from the first, `blco`.
 * Errors: SLC_ERR_BUDGET, naming minimum_bytes (which *plan holds then too); SLC_ERR_USAGE.
 */
enum slc_status slc_plan_make(const struct slc_layouts *layouts,
                              const struct slc_plan_request *request,
                              struct slc_plan *plan,
                              struct slc_error *err) SLC_NODISCARD;

/*
 * The best of some plans. With `blco` alone where that is the better choice: sorted layouts are
 * taken unless an iteration would read more from them, copies per mode have room, or only `blco`
 * fits. Where it does not, they are taken if they do. The smallest budget is that of either. What
 * is not taken is closed and leaves `layouts`. A deterministic plan takes what there is: its bits
 * may depend on the layouts of a store, but not on the budget. With passes that update two modes
 * where `request->passes` asks for them or, with AUTO, an iteration then reads less than by any
 * plan without; the order of modes is then the plan's, unless the request sets it. Errors, too:
 * SLC_ERR_USAGE where there can be no such passes but have to be, and why.
 */
enum slc_status slc_plan_choose(struct slc_layouts *layouts,
                                const struct slc_plan_request *request,
                                struct slc_plan *plan,
                                struct slc_error *err) SLC_NODISCARD;

struct slc_ttm_division; /* engine/product/ttm.h */

/*
 * Plans a product over the only layout of `layouts`: the request's rank is the number of columns,
 * blocks are taken in file order and not kept. What the budget leaves goes to *share, and
 * plan->output_bytes and total_bytes count it.
 * With request->GPU its lanes take a part of the budget, too, and plan->threads are the
 * request's, where these have a share, and one for each lane. Errors: as slc_plan_make, and
 * SLC_ERR_BUDGET naming the --device-memory that is enough.
 */
enum slc_status slc_ttm_plan(const struct slc_layouts *layouts,
                             const struct slc_plan_request *request,
                             struct slc_plan *plan,
                             struct slc_ttm_division *division,
                             struct slc_error *err) SLC_NODISCARD;

#endif
