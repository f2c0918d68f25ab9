/*
 * Several devices with memory of their own (base/device.h) that compute together (AMPED): all have
 * a copy of the factors, each multiplies the blocks it owns (engine/executor/group_division.h),
 * solves for the rows it owns, and these go round a ring from device to device until all copies are
 * equal. One stream feeds all of them.
 *
 * What engine/executor/cpu_groups.h is for backends this is for devices that take whole blocks:
 * shares, owners and the order of blocks are the same. Neither factors nor outputs pass through the
 * host.
 */
#ifndef SLC_ENGINE_GPU_GROUP_H
#define SLC_ENGINE_GPU_GROUP_H

#include "engine/executor/exchange.h"
#include "engine/executor/executor.h"

/*
 * Divides the layouts of the modes that are computed, opens the plan's devices for it and makes
 * them the stream's. Everything is borrowed until close. Owns: slc_gpu_group_close, which takes
 * NULL, before the stream is closed and the devices destroyed. Errors: SLC_ERR_USAGE for a plan
 * without devices, those of slc_group_division_create, of opening a device and of
 * slc_stream_attach; all devices are closed then.
 */
enum slc_status slc_gpu_group_open(const struct slc_layouts *layouts,
                                   const struct slc_plan *plan,
                                   struct slc_stream *stream,
                                   struct slc_gpu_group **group,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_gpu_group_close(struct slc_gpu_group *group);

/* Units of rows of the mode with the most, and the host's memory for all the above; for plans. */
uint64_t slc_gpu_group_units_most(const struct slc_layouts *layouts, const struct slc_plan *plan);
uint64_t slc_gpu_group_memory_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan);

/* Gives every device factors, one per mode; one without memory is left out. */
enum slc_status slc_gpu_group_load(struct slc_gpu_group *group,
                                   const struct slc_matrix *factors,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * The MTTKRP of `mode`: each device's output then has the rows it owns, complete. Order: where the
 * plan is deterministic, bits depend on the layout alone, not on the number of devices or the way
 * of dividing. Errors: those of the stream and the devices, which end the pass for all; outputs are
 * then undefined, factors as they were, and all devices ready for another job,
 * as slc_gpu_executor_mttkrp says.
 */
enum slc_status slc_gpu_group_mttkrp(struct slc_gpu_group *group,
                                     unsigned mode,
                                     const volatile int *stop,
                                     void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                     void *progress_context,
                                     struct slc_error *err) SLC_NODISCARD;

/* Rows of factor `mode`, of which every device has a copy and each row is new on one device. */
struct slc_gpu_group_ring {
    unsigned count, mode;
    uint64_t row_bytes;                               /* of a row, for bytes_sent */
    struct slc_device *device[SLC_MAX_DEVICES];       /* open for one problem (unit_most) */
    struct slc_row_piece rows[SLC_MAX_DEVICES];       /* that are new on each device */
    struct slc_exchange_stats stats[SLC_MAX_DEVICES]; /* set by the exchange */
};

/*
 * Sends all rows round the ring of devices, so that all copies are equal. Errors: those of
 * factor_copy, SLC_ERR_MEMORY, SLC_ERR_SYSTEM; rows are undefined then but on their devices.
 */
enum slc_status slc_gpu_group_exchange(struct slc_gpu_group_ring *ring,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * What a device has done since it was opened, and what all have together. Seconds of computing are
 * those of its kernels; those of waiting the rest of its passes.
 */
void slc_gpu_group_stats(const struct slc_gpu_group *group,
                         unsigned device,
                         struct slc_member_stats *stats);
void slc_gpu_group_sum(const struct slc_gpu_group *group, struct slc_device_stats *stats);

#endif
