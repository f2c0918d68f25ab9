/*
 * sluice's MTTKRP on several devices together (AMPED): how it scales with their number, and how
 * evenly they are busy. The devices may be one that is named several times.
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_GROUP_H
#define SLC_TOOLS_BENCH_DEVICE_GROUP_H

#include "tools/bench/device/device_rows.h"

/*
 * Appends a row per mode to `rows` for `count` logical devices, all of them the device `ordinal`:
 * shares of partitions if the store has layouts sorted by every mode, and equal shares of nonzeros.
 * The median is that of the device that computes longest. If there is no memory for them, one row
 * has a note instead. Errors: those of planning, streaming and devices.
 */
enum slc_status device_group_measure(const struct device_mttkrp *measured,
                                     unsigned ordinal,
                                     unsigned count,
                                     json_t *rows,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
