/* Computes MTTKRPs over a stream with a device that has its own memory and processes whole encoded
 * blocks (base/device.h), alone or together with the CPU. */
#ifndef SLC_ENGINE_GPU_EXECUTOR_H
#define SLC_ENGINE_GPU_EXECUTOR_H

#include "base/device.h"
#include "engine/plan/plan.h"
#include "engine/stream/stream.h"

/* Sets *problem to the problem for which the plan's device is opened, without descriptions of
 * layouts (NULL). */
void slc_gpu_executor_problem(const struct slc_layouts *layouts,
                              const struct slc_plan *plan,
                              struct slc_device_problem *problem);

/* Opens a device for the plan, with descriptions of the layouts. Errors: those of opening the
 * device. */
enum slc_status slc_gpu_executor_open_device(struct slc_device *device,
                                             const struct slc_layouts *layouts,
                                             const struct slc_plan *plan,
                                             struct slc_error *err) SLC_NODISCARD;
/* Returns a job for the layout that `reader` reads, which has number `layout` among the problem's
 * layouts. */
struct slc_device_job slc_gpu_executor_job(const struct slc_reader *reader,
                                           const struct slc_plan *plan,
                                           unsigned layout,
                                           unsigned mode);

/* Checks the sum of squares in the header, from which the job derived the magnitude of values.
 * `squares` is the sum of squared values that all devices computed for the layout
 * (slc_device_stats). Errors: SLC_ERR_DAMAGED, with the file and both sums, if `squares` is more
 * than twice the sum in the header: the magnitude is then too small, and deterministic sums may be
 * invalid. */
enum slc_status slc_gpu_executor_check_squares(const struct slc_reader *reader,
                                               double squares,
                                               struct slc_error *err) SLC_NODISCARD;

/* Opens the device for the plan and the layouts of the stream, and attaches it to the stream.
 * Ownership: release with slc_gpu_executor_close before the stream is closed and the device
 * destroyed. Errors: those of opening the device and of slc_stream_attach; the device is then
 * closed. */
enum slc_status slc_gpu_executor_open(struct slc_device *device,
                                      const struct slc_layouts *layouts,
                                      const struct slc_plan *plan,
                                      struct slc_stream *stream,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_gpu_executor_close(struct slc_device *device, struct slc_stream *stream);

/* Computes the MTTKRP in `mode` from the factors of the device, into the output of the device.
 * Order: chosen by the device; reproducible if the plan is deterministic. Errors: the first error
 * of the stream or the device. After an error the device is ready for another job, unless resident
 * blocks are incomplete; then it must be reopened. */
enum slc_status slc_gpu_executor_mttkrp(struct slc_device *device,
                                        struct slc_stream *stream,
                                        const struct slc_plan *plan,
                                        unsigned mode,
                                        const volatile int *stop,
                                        void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                        void *progress_context,
                                        struct slc_error *err) SLC_NODISCARD;

/* The CPU's part of an MTTKRP that the CPU and a device share. */
struct slc_hybrid_cpu {
    struct slc_backend *backend;
    /* The job reads the factors in host memory, which must equal the factors of the device. It
     * writes the CPU's part of the sums to an output in host memory. Its conflict strategy must
     * accept each tile once, in any order. */
    const struct slc_mttkrp_job *job;
    /* split of this mode; the work of CPU and device is recorded in it */
    struct slc_hybrid *hybrid;
    /* Time already spent on the CPU's part, such as reading factors back. */
    double prepared_seconds;
};

/* Computes the MTTKRP on the CPU and the device, between which `hybrid` divides the blocks. The
 * output of the device then holds the complete sums. Needs: a plan with a hybrid split. If
 * slc_hybrid_without_cpu returns true, the device computes all blocks, and neither the backend nor
 * the factors in host memory are used. Order: not reproducible. Errors: those of
 * slc_gpu_executor_mttkrp and of the backend. The work of CPU and device is recorded in `hybrid`
 * only if the pass and the device's job succeed. */
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
