/*
 * Devices with memory of their own (base/device.h) in commands: which one computes, what it holds
 * and what it has done.
 */
#ifndef SLC_TOOLS_ACCELERATOR_H
#define SLC_TOOLS_ACCELERATOR_H

#include "session.h"

#include <jansson.h>

/*
 * The devices that the options ask for, one where none are named: *count is 0 for the CPU. With
 * `auto` that is where there is no other, or the options ask for what it alone can do; `why` then
 * says so. Owns: each device's destroy. Errors: with `gpu` those of slc_gpu_create; SLC_ERR_USAGE
 * for options of GPUs where none is asked for.
 */
enum slc_status accelerator_choose(const struct session_options *options,
                                   struct slc_device *devices[OPTION_COUNTS_MAX],
                                   unsigned *count,
                                   struct slc_error *why,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * Destroys them, and has CUDA forget those that the options name: for a run that goes on without.
 */
void accelerator_drop(const struct session_options *options,
                      struct slc_device *const *devices,
                      unsigned count);

/* What it holds, one part a line; and what it has done. Nothing where the plan has none. */
void accelerator_report_plan(const struct slc_plan *plan);
void accelerator_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats);

/* The same as objects; null where the plan has none. */
json_t *accelerator_plan_json(const struct slc_plan *plan);
json_t *accelerator_stats_json(const struct slc_plan *plan, const struct slc_device_stats *stats);

#endif
