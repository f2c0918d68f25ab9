/*
 * Reports how the partitions of sorted layouts are divided between devices, and the work of the
 * devices.
 */
#ifndef SLC_TOOLS_DEVICES_REPORT_H
#define SLC_TOOLS_DEVICES_REPORT_H

#include "engine/executor/assign.h"
#include "engine/executor/executor.h"
#include "storage/manifest/store.h"
#include "tools/session/session.h"

#include <jansson.h>

/* Division of the partitions of one layout. */
struct device_shares {
    unsigned mode;
    uint64_t partitions;
    uint64_t loads[SLC_MAX_DEVICES]; /* nonzeros of each device */
    uint64_t least, most;
    uint64_t bound; /* lower bound of the largest load for any assignment */
};

/*
 * Divides the partitions of every sorted layout, largest first (engine/executor/assign.h), and sets
 * *count to the number of these layouts. Errors: SLC_ERR_USAGE if there are none; those of opening
 * them.
 */
enum slc_status devices_divide(const struct slc_store *store,
                               unsigned devices,
                               struct device_shares shares[SLC_MAX_ORDER],
                               unsigned *count,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Prints the division as a line per layout, and returns it as a JSON array with an object per
 * layout.
 */
void devices_report_division(const struct device_shares *shares, unsigned count, unsigned devices);
json_t *devices_division_json(const struct device_shares *shares, unsigned count, unsigned devices);

/*
 * Prints "Devices": a line per device with `verbose`, and the load balance. Prints nothing without
 * devices.
 */
void devices_report_stats(const struct slc_plan *plan,
                          const struct slc_member_stats *stats,
                          bool verbose);

/*
 * Reports of a GPU (base/device.h): its part of the plan, its work, and the passes that it shared
 * with the CPU (engine/hybrid/hybrid.h).
 */

/*
 * Prints the GPU memory of a plan, one part per line, and the work of the GPU. Prints nothing if
 * the plan has no GPU.
 */
void gpu_report_plan(const struct slc_plan *plan, unsigned order);
void gpu_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats);

/*
 * Prints the properties of a described device; nothing for an opened one. `no_device`: why no
 * device could be opened, unless the user asked for a described one.
 */
void gpu_report_described(const struct slc_plan *plan, const struct slc_error *no_device);

/*
 * Prints a line per mode whose passes CPU and GPU shared; nothing if none were shared. `shares` has
 * an element per mode.
 */
void gpu_report_shares(const struct slc_hybrid *shares, unsigned order);

#endif
