/*
 * Devices with memory of their own (base/device.h) in commands: what it holds and what it
 * has done.
 */
#ifndef SLC_TOOLS_ACCELERATOR_H
#define SLC_TOOLS_ACCELERATOR_H

#include "session.h"

#include <jansson.h>

/* What it holds, one part a line; and what it has done. Nothing where the plan has none. */
void accelerator_report_plan(const struct slc_plan *plan);
void accelerator_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats);

/* The same as objects; null where the plan has none. */

#endif
