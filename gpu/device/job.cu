/* Runs MTTKRP jobs: a job begins by clearing the output, and ends when the results of all batches
 * have been added. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"

#include <cinttypes>
#include <cstring>

enum slc_status slc_gpu_enter(const struct slc_gpu *gpu, struct slc_error *err)
{
    if (!gpu->is_open) {
        return slc_fail(err, SLC_ERR_USAGE, "device %d has not been opened", gpu->ordinal);
    }
    SLC_GPU_TRY(cudaSetDevice(gpu->ordinal), err);
    return SLC_OK;
}

enum slc_status slc_gpu_enter_job(const struct slc_gpu *gpu, struct slc_error *err)
{
    if (!gpu->job.active) {
        return slc_fail(err, SLC_ERR_USAGE, "no MTTKRP has begun on device %d", gpu->ordinal);
    }
    return slc_gpu_enter(gpu, err);
}

enum slc_status slc_gpu_leave_job(struct slc_gpu *gpu, enum slc_status status)
{
    if (status != SLC_OK) {
        slc_gpu_drain(gpu);
        gpu->job.broken = true;
    }
    return status;
}

/* ---- begin */

static enum slc_status
check_job(const struct slc_gpu *gpu, const struct slc_device_job *job, struct slc_error *err)
{
    const struct slc_device_problem *problem = &gpu->problem;

    if (gpu->job.active || job->layout >= problem->layout_count || job->mode >= problem->order ||
        (problem->deterministic && !(job->magnitude >= 0))) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "an MTTKRP of layout %u and mode %u, of magnitude %g, cannot begin on "
                        "device %d: the device has %u layouts and %u modes%s",
                        job->layout, job->mode, job->magnitude, gpu->ordinal, problem->layout_count,
                        problem->order,
                        gpu->job.active ? ", and another MTTKRP is in progress" : "");
    }
    if (gpu->residents.lost) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "an MTTKRP failed on device %d before all resident blocks had arrived: "
                        "reopen the device",
                        gpu->ordinal);
    }
    return SLC_OK;
}

/* Computes the bounds of exact sums from the largest magnitudes of the factors' columns, and clears
 * the sums. */
static enum slc_status begin_exact(struct slc_gpu *gpu, double magnitude, struct slc_error *err)
{
    const struct slc_gpu_mttkrp *job = &gpu->job.mttkrp;

    for (unsigned n = 0; n < job->order; n++) {
        if (n != job->mode && !gpu->largest_known[n]) {
            SLC_GPU_TRY(slc_exact_sum_largest(&job->factor[n], job->precision,
                                              gpu->memory.largest + (uint64_t)n * job->rank,
                                              gpu->main),
                        err);
            gpu->largest_known[n] = true;
        }
    }
    SLC_GPU_TRY(slc_exact_sum_begin(&job->exact, job->output.rows, job->rank, gpu->memory.largest,
                                    job->order, job->mode, magnitude, gpu->main),
                err);
    if (gpu->memory.refused != nullptr) {
        SLC_GPU_TRY(cudaMemsetAsync(gpu->memory.refused, 0, job->rank * sizeof *gpu->memory.refused,
                                    gpu->main),
                    err);
    }
    return SLC_OK;
}

static enum slc_status begin_output(struct slc_gpu *gpu, double magnitude, struct slc_error *err)
{
    const struct slc_gpu_matrix *output = &gpu->job.mttkrp.output;
    const uint64_t element = sizeof(double);

    if (gpu->problem.deterministic) {
        SLC_TRY(begin_exact(gpu, magnitude, err));
    } else {
        SLC_GPU_TRY(
            cudaMemsetAsync(output->data, 0, output->rows * output->pitch * element, gpu->main),
            err);
    }
    SLC_GPU_TRY(cudaMemsetAsync(gpu->memory.fault, 0, sizeof *gpu->memory.fault, gpu->main), err);
    SLC_GPU_TRY(cudaEventRecord(gpu->begun, gpu->main), err);
    /* The event is the origin of the job's times. All slots are idle here, so the event completes
     * at once. */
    slc_spans_restart(&gpu->times.copy);
    slc_spans_restart(&gpu->times.compute);
    slc_spans_restart(&gpu->times.busy);
    SLC_GPU_TRY(cudaEventRecord(gpu->times.epoch, gpu->slots[0].stream), err);
    return SLC_OK;
}

enum slc_status slc_gpu_mttkrp_begin(struct slc_device *device,
                                     const struct slc_device_job *job,
                                     struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    struct slc_gpu_mttkrp *mttkrp = &gpu->job.mttkrp;
    enum slc_status status = slc_gpu_enter(gpu, err);

    SLC_THEN(status, check_job(gpu, job, err));
    if (status != SLC_OK) {
        return status;
    }
    gpu->job = {};
    mttkrp->order = gpu->problem.order;
    mttkrp->mode = job->mode;
    mttkrp->rank = gpu->problem.rank;
    mttkrp->precision = gpu->problem.precision;
    memcpy(mttkrp->factor, gpu->memory.factor, sizeof mttkrp->factor);
    mttkrp->output = gpu->memory.output;
    mttkrp->output.rows = gpu->problem.dims[job->mode];
    mttkrp->exact = gpu->memory.exact;
    if (!gpu->problem.deterministic) {
        mttkrp->output.split = slc_gpu_mttkrp_split(mttkrp->rank, mttkrp->precision);
    }
    gpu->job.layout = gpu->memory.layouts + job->layout;
    gpu->job.copies = job->copies;
    gpu->job.chunk_runs = slc_gpu_mttkrp_chunk_runs(mttkrp, &gpu->machine);
    if (gpu->job.chunk_runs == 0) {
        return slc_fail(
            err, SLC_ERR_UNSUPPORTED,
            "device %d has too little shared memory (%u bytes) for a tensor of %u modes",
            gpu->ordinal, gpu->machine.shared_bytes, mttkrp->order);
    }
    status = slc_gpu_transcode_residents(gpu, err);
    SLC_THEN(status, begin_output(gpu, job->magnitude, err));
    if (status != SLC_OK) {
        slc_gpu_drain(gpu);
        return status;
    }
    gpu->job.active = true;
    return SLC_OK;
}

/* ---- end */

enum slc_status slc_gpu_fail_damaged(const struct slc_gpu_fault *fault, struct slc_error *err)
{
    static const char *const what[] = {
        "the bytes contradict their description",                                      /* SOUND */
        "a coordinate is outside the tile's bounds",                                   /* OFFSET */
        "keys do not ascend, or contradict the bases or the tile's first or last key", /* KEYS */
        "a value is zero, not finite, or not in the dictionary",                       /* VALUE */
        "the compressed bytes do not expand to the stored size",                       /* LZ4 */
        "the positions of a group's exceptions do not ascend, or a high part is zero", /* PATCH */
    };
    const unsigned kind = fault->kind < sizeof what / sizeof what[0] ? fault->kind : 0;
    const enum slc_status status = slc_fail(err, SLC_ERR_DAMAGED, "tile %" PRIu64 " is damaged: %s",
                                            (uint64_t)fault->tile, what[kind]);

    slc_error_locate_block(err, nullptr, fault->block_number, fault->block_offset);
    return status;
}

enum slc_status slc_gpu_output_finish(struct slc_gpu *gpu, struct slc_error *err)
{
    const struct slc_gpu_mttkrp *job = &gpu->job.mttkrp;
    const uint64_t rows = job->output.rows;

    if (!gpu->job.sums_pending) {
        return SLC_OK;
    }
    if (gpu->memory.refused != nullptr) {
        SLC_GPU_TRY(slc_exact_sum_add(job->exact.words + 2 * rows * job->rank, gpu->memory.refused,
                                      job->rank, gpu->main),
                    err);
    }
    SLC_GPU_TRY(slc_exact_sum_finish(&job->exact, rows, 0, &job->output, gpu->main), err);
    gpu->job.sums_pending = false;
    return SLC_OK;
}

/* Waits for all batches and all launches of resident blocks, adds their times, and copies the fault
 * to the host. */
static enum slc_status join_batches(struct slc_gpu *gpu, struct slc_error *err)
{
    enum slc_status status = slc_gpu_slot_launch(gpu, err);

    SLC_THEN(status, slc_gpu_residents_launch(gpu, err));
    if (status != SLC_OK) {
        return status;
    }
    for (unsigned s = 0; s < gpu->problem.streams; s++) {
        if (gpu->slots[s].state == SLC_GPU_SLOT_LAUNCHED) {
            SLC_PLANT(
                end_before_batches,
                SLC_GPU_TRY(cudaStreamWaitEvent(gpu->main, gpu->slots[s].computing.end, 0), err));
        }
    }
    status = slc_gpu_residents_join(gpu, err);
    if (status != SLC_OK) {
        return status;
    }
    SLC_GPU_TRY(cudaMemcpyAsync(gpu->memory.host_fault, gpu->memory.fault,
                                sizeof *gpu->memory.fault, cudaMemcpyDeviceToHost, gpu->main),
                err);
    gpu->stats.bytes_to_host += sizeof *gpu->memory.fault;
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    for (unsigned s = 0; s < gpu->problem.streams && status == SLC_OK; s++) {
        if (gpu->slots[s].state == SLC_GPU_SLOT_LAUNCHED) {
            status = slc_gpu_slot_retire(gpu, &gpu->slots[s], err);
        }
    }
    return status == SLC_OK ? slc_gpu_residents_poll(gpu, true, err) : status;
}

enum slc_status slc_gpu_mttkrp_end(struct slc_device *device, struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = slc_gpu_enter_job(gpu, err);

    if (status == SLC_OK && gpu->job.broken) {
        status = slc_fail(
            err, SLC_ERR_SYSTEM,
            "the MTTKRP on device %d is incomplete, because an earlier call of the job failed",
            gpu->ordinal);
    }
    SLC_THEN(status, join_batches(gpu, err));
    if (status == SLC_OK && gpu->memory.host_fault->kind != SLC_GPU_SOUND) {
        status = slc_gpu_fail_damaged(gpu->memory.host_fault, err);
        /* Resident blocks are expanded only when they arrive, so later jobs would not find the
         * damage again. */
        gpu->residents.lost = gpu->residents.lost || gpu->residents.block_count > 0;
    }
    (void)slc_gpu_leave_job(gpu, status);
    gpu->job.has_output = status == SLC_OK;
    gpu->stats.squares = status == SLC_OK ? gpu->memory.host_fault->squares : 0;
    gpu->job.sums_pending = status == SLC_OK && gpu->problem.deterministic;
    gpu->job.active = false;
    return status;
}
