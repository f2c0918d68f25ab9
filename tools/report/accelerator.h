/*
 * Devices with memory of their own (base/device.h) in commands: what it holds and what it
 * has done.
 */
#ifndef SLC_TOOLS_ACCELERATOR_H
#define SLC_TOOLS_ACCELERATOR_H

#include "tools/session/session.h"

/* What it holds, one part a line; and what it has done. Nothing where the plan has none. */
void accelerator_report_plan(const struct slc_plan *plan, unsigned order);
void accelerator_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats);

/* What is known of a device that is described: nothing where there is one. `no_device`: why there
 * is none, unless that was asked for. */
void accelerator_report_described(const struct slc_plan *plan, const struct slc_error *no_device);

#endif
