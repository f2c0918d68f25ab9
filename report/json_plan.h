/* A plan, and what has come of its choices and iterations, for records and logs. */
#ifndef SLC_REPORT_JSON_PLAN_H
#define SLC_REPORT_JSON_PLAN_H

#include "base/device.h"
#include "engine/executor/executor.h"
#include "engine/hybrid/hybrid.h"
#include "engine/plan/plan.h"
#include "engine/solve/cp_als.h"

#include <jansson.h>

json_t *slc_json_plan(const struct slc_plan *plan, unsigned order);
/* How a mode's strategy was chosen: candidates with ns per nonzero, measured where tried. */
json_t *slc_json_choice(unsigned mode, const struct slc_conflict_choice *choice);
json_t *slc_json_iteration(const struct slc_cp_iteration *iteration, unsigned order);

/* The memory of a GPU that a plan is for, and what it has done; null where there is none. */
json_t *slc_json_device_plan(const struct slc_plan *plan, unsigned order);
json_t *slc_json_device_stats(const struct slc_plan *plan, const struct slc_device_stats *stats);

/*
 * How work is shared between CPU and device, with the fraction where one was asked for; and with
 * what was measured and done in each mode that passes were made over, `shares` having one per mode.
 * Null where nothing is shared.
 */
json_t *slc_json_hybrid_wish(const struct slc_hybrid_wish *wish);
json_t *slc_json_hybrid(const struct slc_hybrid *shares, unsigned order);

/* The largest over the mean of nonzeros of the plan's devices, and of the time that these took. */
void slc_devices_imbalance(const struct slc_plan *plan,
                           const struct slc_member_stats *stats,
                           double *of_nnz,
                           double *of_time);
/* What each of them did; null where there are none. */
json_t *slc_json_devices_stats(const struct slc_plan *plan, const struct slc_member_stats *stats);

#endif
