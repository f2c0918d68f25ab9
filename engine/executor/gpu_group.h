/* Runs a decomposition on several devices with their own memory (base/device.h; [Wijeratne2025]).
 * Each device has a copy of the factors, multiplies the blocks it owns
 * (engine/executor/group_division.h), and solves the rows it owns. The solved rows travel around a
 * ring of devices until all copies are equal. One stream feeds all devices.
 *
 * Blocks and rows are assigned, and blocks are ordered, as in engine/executor/cpu_groups.h, but
 * devices process whole blocks. Neither factors nor outputs are copied through host memory. */
#ifndef SLC_ENGINE_GPU_GROUP_H
#define SLC_ENGINE_GPU_GROUP_H

#include "engine/executor/exchange.h"
#include "engine/executor/executor.h"

/* Divides the layouts of the computed modes, opens the plan's devices for them and attaches them to
 * the stream. All arguments are borrowed until slc_gpu_group_close. Ownership: release with
 * slc_gpu_group_close, which accepts NULL, before the stream is closed and the devices destroyed.
 * Errors: SLC_ERR_USAGE if the plan has no devices; those of slc_group_division_create, of opening
 * a device and of slc_stream_attach. After an error all devices are closed. */
enum slc_status slc_gpu_group_open(const struct slc_layouts *layouts,
                                   const struct slc_plan *plan,
                                   struct slc_stream *stream,
                                   struct slc_gpu_group **group,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_gpu_group_close(struct slc_gpu_group *group);

/* For plans. Return the number of units of rows in the mode with the most units, and the bytes of
 * host memory that slc_gpu_group_open allocates. */
uint64_t slc_gpu_group_units_most(const struct slc_layouts *layouts, const struct slc_plan *plan);
uint64_t slc_gpu_group_memory_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan);

/* Loads the factors, one per mode, into every device; skips factors without memory. */
enum slc_status slc_gpu_group_load(struct slc_gpu_group *group,
                                   const struct slc_matrix *factors,
                                   struct slc_error *err) SLC_NODISCARD;

/* Computes the MTTKRP of `mode`. Afterwards the output of each device holds the complete sums of
 * the rows that the device owns. Order: if the plan is deterministic, bits depend only on the
 * layout, not on the number of devices or the split. Errors: those of the stream and the devices,
 * which end the pass for all devices. After an error outputs are undefined, factors are unchanged,
 * and slc_gpu_executor_mttkrp describes the state of the devices. */
enum slc_status slc_gpu_group_mttkrp(struct slc_gpu_group *group,
                                     unsigned mode,
                                     const volatile int *stop,
                                     void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                     void *progress_context,
                                     struct slc_error *err) SLC_NODISCARD;

/* An exchange of the rows of factor `mode`. Every device has a copy of the factor, and each row was
 * updated on one device. */
struct slc_gpu_group_ring {
    unsigned count, mode;
    uint64_t row_bytes;                               /* bytes of a row, for bytes_sent */
    struct slc_device *device[SLC_MAX_DEVICES];       /* opened for the same problem */
    struct slc_device_rows rows[SLC_MAX_DEVICES];     /* rows that each device updated */
    struct slc_exchange_stats stats[SLC_MAX_DEVICES]; /* set by the exchange */
};

/* Sends all rows around the ring of devices until all copies are equal. Errors: those of
 * factor_copy, SLC_ERR_MEMORY, SLC_ERR_SYSTEM; a row is then defined only on the device that
 * updated it. */
enum slc_status slc_gpu_group_exchange(struct slc_gpu_group_ring *ring,
                                       struct slc_error *err) SLC_NODISCARD;

/* Return the totals of one device since it was opened, and the sums over all devices. Compute
 * seconds are the time of the device's kernels; wait seconds are the rest of its passes. */
void slc_gpu_group_stats(const struct slc_gpu_group *group,
                         unsigned device,
                         struct slc_member_stats *stats);
void slc_gpu_group_sum(const struct slc_gpu_group *group, struct slc_device_stats *stats);

#endif
