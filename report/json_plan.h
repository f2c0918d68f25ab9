/* Describes plans, strategies and iterations as JSON, for records and logs. */
#ifndef SLC_REPORT_JSON_PLAN_H
#define SLC_REPORT_JSON_PLAN_H

#include "base/device.h"
#include "engine/executor/executor.h"
#include "engine/hybrid/hybrid.h"
#include "engine/plan/plan.h"
#include "engine/solve/cp.h"

#include <jansson.h>

json_t *slc_json_plan(const struct slc_plan *plan, unsigned order);
/* Returns the choice of a strategy for a mode: the candidates with their predicted ns per nonzero
 * and, for candidates that were tried, the measured ns. */
json_t *slc_json_choice(unsigned mode, const struct slc_conflict_choice *choice);
json_t *slc_json_iteration(const struct slc_cp_iteration *iteration, unsigned order);

/* Return the memory plan of a GPU, and its statistics, or null if there is no GPU. */
json_t *slc_json_device_plan(const struct slc_plan *plan, unsigned order);
json_t *slc_json_device_stats(const struct slc_plan *plan, const struct slc_device_stats *stats);

/* Return the requested division of work between CPU and GPU, and the measurements of each mode;
 * `shares` has one element per mode. The functions return null if work is not divided. */
json_t *slc_json_hybrid_wish(const struct slc_hybrid_wish *wish);
json_t *slc_json_hybrid(const struct slc_hybrid *shares, unsigned order);

/* Computes the imbalance of the devices of the plan: the largest number of nonzeros of a device
 * divided by the mean over all devices, and the same ratio of the devices' times. */
void slc_devices_imbalance(const struct slc_plan *plan,
                           const struct slc_member_stats *stats,
                           double *of_nnz,
                           double *of_time);
/* Returns the statistics of each device, or null if there are no devices. */
json_t *slc_json_devices_stats(const struct slc_plan *plan, const struct slc_member_stats *stats);

#endif
