/* Reports how the partitions of sorted layouts are divided between devices, and the work of the
 * devices. */
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
    uint64_t bound; /* no assignment of partitions has a largest load below this bound */
};

/* Divides the partitions of every sorted layout, largest first (engine/executor/assign.h), and sets
 * *count to the number of these layouts. Errors: SLC_ERR_USAGE if the store has no sorted layout;
 * those of opening the layouts. */
enum slc_status devices_divide(const struct slc_store *store,
                               unsigned devices,
                               struct device_shares shares[SLC_MAX_ORDER],
                               unsigned *count,
                               struct slc_error *err) SLC_NODISCARD;

/* devices_report_division prints one line per layout. devices_division_json returns a JSON array
 * with one object per layout. */
void devices_report_division(const struct device_shares *shares, unsigned count, unsigned devices);
json_t *devices_division_json(const struct device_shares *shares, unsigned count, unsigned devices);

/* Prints "Devices": the load balance and, with `verbose`, a line per device. Prints nothing without
 * devices. */
void devices_report_stats(const struct slc_plan *plan,
                          const struct slc_member_stats *stats,
                          bool verbose);

/* Reports of a GPU (base/device.h): the GPU part of the plan, the work of the GPU, and the passes
 * that GPU and CPU shared (engine/hybrid/hybrid.h). */

/* Prints the GPU memory of a plan, one part per line, and the work of the GPU. Prints nothing if
 * the plan has no GPU. */
void gpu_report_plan(const struct slc_plan *plan, unsigned order);
void gpu_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats);

/* Prints the properties of a device that was described, not opened; otherwise prints nothing.
 * `no_device`: why no device could be opened, unless the user asked for a described device. */
void gpu_report_described(const struct slc_plan *plan, const struct slc_error *no_device);

/* Prints a line for each mode whose passes CPU and GPU shared. Prints nothing if no passes were
 * shared. `shares` has an element per mode. */
void gpu_report_shares(const struct slc_hybrid *shares, unsigned order);

#endif
