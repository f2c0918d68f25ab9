/*
 * Reports of a GPU (base/device.h): what a plan puts on it, what it has done, and how it shared
 * passes with the CPU (engine/hybrid/hybrid.h).
 */
#ifndef SLC_TOOLS_GPU_REPORT_H
#define SLC_TOOLS_GPU_REPORT_H

#include "tools/session/session.h"

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
