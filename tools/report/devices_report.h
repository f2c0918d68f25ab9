/*
 * How the partitions of a store's sorted layouts would be divided between devices, and what devices
 * have done.
 */
#ifndef SLC_TOOLS_DEVICES_REPORT_H
#define SLC_TOOLS_DEVICES_REPORT_H

#include "engine/executor/assign.h"
#include "engine/executor/executor.h"
#include "storage/manifest/store.h"
#include "tools/session/session.h"

#include <jansson.h>

/* One layout's partitions. */
struct device_shares {
    unsigned mode;
    uint64_t partitions;
    uint64_t loads[SLC_MAX_DEVICES]; /* nonzeros of each device */
    uint64_t least, most;
    uint64_t bound; /* what no assignment can be better than */
};

/*
 * Divides the partitions of every sorted layout, largest first (engine/executor/assign.h); *count
 * is set to the number of these layouts. Errors: SLC_ERR_USAGE where there are none, those of
 * opening them.
 */
enum slc_status devices_divide(const struct slc_store *store,
                               unsigned devices,
                               struct device_shares shares[SLC_MAX_ORDER],
                               unsigned *count,
                               struct slc_error *err) SLC_NODISCARD;

/* A line for each layout; and an array of an object for each. */
void devices_report_division(const struct device_shares *shares, unsigned count, unsigned devices);
json_t *devices_division_json(const struct device_shares *shares, unsigned count, unsigned devices);

/*
 * "Devices": with `verbose` a line for each of the plan's, and how evenly they were busy. Nothing
 * where there are none.
 */
void devices_report_stats(const struct slc_plan *plan,
                          const struct slc_member_stats *stats,
                          bool verbose);

/*
 * Reports of a GPU (base/device.h): what a plan puts on it, what it has done, and how it shared
 * passes with the CPU (engine/hybrid/hybrid.h).
 */

/* What it holds, one part a line; and what it has done. Nothing where the plan has none. */
void gpu_report_plan(const struct slc_plan *plan, unsigned order);
void gpu_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats);

/* What is known of a device that is described: nothing where there is one. `no_device`: why there
 * is none, unless that was asked for. */
void gpu_report_described(const struct slc_plan *plan, const struct slc_error *no_device);

/*
 * A line for each mode whose passes CPU and GPU shared: what each has done. `shares` has one per
 * mode. Nothing where nothing was shared.
 */
void gpu_report_shares(const struct slc_hybrid *shares, unsigned order);

#endif
