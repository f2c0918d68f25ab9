/*
 * AMPED's MTTKRP (tools/bench/rivals/gpu/baselines.h) on several devices together: its division of
 * the nonzeros (sections 3.2 and 4.9 of the paper), kernels over lists on each device, and its
 * exchange of the output's rows (4.8), by the ring of engine/executor/gpu_group.h. The devices
 * may be one that is named several times.
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_AMPED_H
#define SLC_TOOLS_BENCH_DEVICE_AMPED_H

#include "tools/bench/device/device_mttkrp.h"
#include "tools/bench/measure/factors.h"
#include "tools/bench/rivals/cpu/coo.h"

struct device_amped;

/*
 * Opens the devices of of->devices, and gives each the factors. The list, complete, and the factors
 * stay borrowed. Owns: device_amped_destroy, which accepts NULL. Errors: those of planning and
 * opening devices.
 */
enum slc_status device_amped_create(const struct device_mttkrp *of,
                                    const struct slc_coo *list,
                                    const struct bench_factors *factors,
                                    struct device_amped **amped,
                                    struct slc_error *err) SLC_NODISCARD;
void device_amped_destroy(struct device_amped *amped);

/*
 * Measures a mode and fills in a row:
 *   device_ms       of each device, alone on the machine, as section 5.6 measures them
 *   median_ms       the longest of these
 *   exchange_ms     of the ring
 *   whole_ms        of all devices at the same time, and the ring
 *   build_ms        dividing, sorting and copying the list
 *   differs         the factor that every device has after the exchange, from `wanted`
 * Spread and scaling (sections 5.6, 5.7) follow from these in the summary (device_summary.h).
 * Errors: those of the devices, SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status device_amped_measure(struct device_amped *amped,
                                     unsigned mode,
                                     const struct slc_matrix *wanted,
                                     json_t *row,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
