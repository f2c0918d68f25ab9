/*
 * Several devices with memory of their own (base/device.h) that compute together ([Wijeratne2025]).
 * Each device has a copy of the factors, multiplies the blocks it owns
 * (engine/executor/group_division.h), and solves the rows it owns. The solved rows travel around a
 * ring of devices until all copies are equal. One stream feeds all devices.
 *
 * This module corresponds to engine/executor/cpu_groups.h: shares, owners and the order of blocks
 * are the same, but devices process whole blocks. Neither factors nor outputs pass through the
 * host.
 */
#ifndef SLC_ENGINE_GPU_GROUP_H
#define SLC_ENGINE_GPU_GROUP_H

#include "engine/executor/exchange.h"
#include "engine/executor/executor.h"

/*
 * Divides the layouts of the computed modes, opens the plan's devices for them and attaches them to
 * the stream. Everything is borrowed until close. Owns: release with slc_gpu_group_close, which
 * accepts NULL, before the stream is closed and the devices destroyed. Errors: SLC_ERR_USAGE for a
 * plan without devices, those of slc_group_division_create, of opening a device and of
 * slc_stream_attach; all devices are then closed.
 */
enum slc_status slc_gpu_group_open(const struct slc_layouts *layouts,
                                   const struct slc_plan *plan,
                                   struct slc_stream *stream,
                                   struct slc_gpu_group **group,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_gpu_group_close(struct slc_gpu_group *group);

/*
 * The largest number of row units of a mode, and the host memory that slc_gpu_group_open allocates;
 * for plans.
 */
uint64_t slc_gpu_group_units_most(const struct slc_layouts *layouts, const struct slc_plan *plan);
uint64_t slc_gpu_group_memory_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan);

/* Loads the factors, one per mode, into every device; skips factors without memory. */
enum slc_status slc_gpu_group_load(struct slc_gpu_group *group,
                                   const struct slc_matrix *factors,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * Computes the MTTKRP of `mode`: the output of each device then holds the complete sums of the rows
 * that the device owns. Order: if the plan is deterministic, bits depend only on the layout, not on
 * the number of devices or the split. Errors: those of the stream and the devices, which end the
 * pass for all; outputs are then undefined, factors unchanged, and the devices in the state that
 * slc_gpu_executor_mttkrp describes.
 */
enum slc_status slc_gpu_group_mttkrp(struct slc_gpu_group *group,
                                     unsigned mode,
                                     const volatile int *stop,
                                     void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                     void *progress_context,
                                     struct slc_error *err) SLC_NODISCARD;

/* Rows of factor `mode`: every device has a copy, and each row is new on one device. */
struct slc_gpu_group_ring {
    unsigned count, mode;
    uint64_t row_bytes;                               /* bytes of a row, for bytes_sent */
    struct slc_device *device[SLC_MAX_DEVICES];       /* open for one problem (unit_most) */
    struct slc_row_piece rows[SLC_MAX_DEVICES];       /* rows that are new on each device */
    struct slc_exchange_stats stats[SLC_MAX_DEVICES]; /* set by the exchange */
};

/* Sends all rows around the ring of devices, so that all copies are equal. Errors: those of
 * factor_copy, SLC_ERR_MEMORY, SLC_ERR_SYSTEM; rows are then defined only on their own devices. */
enum slc_status slc_gpu_group_exchange(struct slc_gpu_group_ring *ring,
                                       struct slc_error *err) SLC_NODISCARD;

/* Totals of a device since it was opened, and sums over all devices. Compute seconds are those of
 * its kernels; wait seconds are the rest of its passes. */
void slc_gpu_group_stats(const struct slc_gpu_group *group,
                         unsigned device,
                         struct slc_member_stats *stats);
void slc_gpu_group_sum(const struct slc_gpu_group *group, struct slc_device_stats *stats);

#endif
