/*
 * MTTKRPs by a device with memory of its own that takes whole encoded blocks (base/device.h), fed
 * by a stream; by the device alone, or by it and the CPU together.
 */
#ifndef SLC_ENGINE_GPU_EXECUTOR_H
#define SLC_ENGINE_GPU_EXECUTOR_H

#include "base/device.h"
#include "engine/plan/plan.h"
#include "engine/stream/stream.h"

/* What the plan's device is opened for; its layouts are not described (NULL). */
void slc_gpu_executor_problem(const struct slc_layouts *layouts,
                              const struct slc_plan *plan,
                              struct slc_device_problem *problem);

/* Opens a device for the plan and the layouts, which it describes. Errors: those of open. */
enum slc_status slc_gpu_executor_open_device(struct slc_device *device,
                                             const struct slc_layouts *layouts,
                                             const struct slc_plan *plan,
                                             struct slc_error *err) SLC_NODISCARD;
/* A job for the problem's `layout`, which `reader` reads. */
struct slc_device_job slc_gpu_executor_job(const struct slc_reader *reader,
                                           const struct slc_plan *plan,
                                           unsigned layout,
                                           unsigned mode);

/*
 * Whether the job's magnitude was right: `squares` is what the devices have seen of the layout
 * (slc_device_stats, of all devices). Where it was not, deterministic sums are not to be used.
 * Errors: SLC_ERR_DAMAGED, with the file and both figures.
 */
enum slc_status slc_gpu_executor_check_squares(const struct slc_reader *reader,
                                               double squares,
                                               struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the device for the plan and the layouts of the stream, and makes it the stream's. Owns:
 * slc_gpu_executor_close, before the stream is closed and the device destroyed. Errors: those of
 * open and slc_stream_attach; the device is closed then.
 */
enum slc_status slc_gpu_executor_open(struct slc_device *device,
                                      const struct slc_layouts *layouts,
                                      const struct slc_plan *plan,
                                      struct slc_stream *stream,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_gpu_executor_close(struct slc_device *device, struct slc_stream *stream);

/*
 * The MTTKRP in `mode`, from the factors that the device has, into the device's output. Order: the
 * bits of the device, where the plan is deterministic the same ones every time. Errors: those of
 * the stream and the device; the first fault wins, and the device is ready for another job, unless
 * blocks that were to stay there have not all come: then it has to be opened again.
 */
enum slc_status slc_gpu_executor_mttkrp(struct slc_device *device,
                                        struct slc_stream *stream,
                                        const struct slc_plan *plan,
                                        unsigned mode,
                                        const volatile int *stop,
                                        void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                        void *progress_context,
                                        struct slc_error *err) SLC_NODISCARD;

/* The CPU's part of an MTTKRP that it shares with the device. */
struct slc_hybrid_cpu {
    struct slc_backend *backend;
    /* With the host's factors, equal to the device's, and an output of the host, which holds the
     * CPU's part of the sums afterwards. The strategy takes tiles in any order, each once. */
    const struct slc_mttkrp_job *job;
    struct slc_hybrid *hybrid; /* of this mode; learns what both have done */
    double prepared_seconds;   /* spent on the CPU's part before, such as on the host's factors */
};

/*
 * The same by both, as the share has it: the sum of both parts into the device's output. Needs a
 * plan with a share. If slc_hybrid_without_cpu, the device computes all blocks, and neither the
 * backend nor the host's factors are used. Order: none is promised. Errors: those of the backend,
 * too. What both did is noted in the share once the pass and the device's job have ended well.
 */
enum slc_status
slc_gpu_executor_mttkrp_hybrid(struct slc_device *device,
                               struct slc_stream *stream,
                               const struct slc_plan *plan,
                               const struct slc_hybrid_cpu *cpu,
                               const volatile int *stop,
                               void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                               void *progress_context,
                               struct slc_error *err) SLC_NODISCARD;

#endif
