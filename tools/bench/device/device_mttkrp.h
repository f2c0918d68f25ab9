/*
 * MTTKRP on a device, mode by mode: sluice's from encoded blocks, resident as far as the device's
 * memory reaches and streamed beyond, and those of other programs from lists of coordinates
 * (tools/bench/rivals/gpu/lists.h).
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_MTTKRP_H
#define SLC_TOOLS_BENCH_DEVICE_MTTKRP_H

#include "tools/bench/device/device_rows.h"

/* Appends a row per mode, kernel and variant to `rows`. Errors: those of planning, streaming and
 * the device; SLC_ERR_USAGE for a kernel or a variant that does not exist. */
enum slc_status device_mttkrp_measure(const struct device_mttkrp *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
