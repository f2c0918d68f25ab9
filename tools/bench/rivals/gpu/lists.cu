/* Runs and times baselines with the factors of an open device. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"
#include "tools/bench/rivals/gpu/baselines.h"
#include "tools/bench/rivals/gpu/lists.h"

struct slc_gpu_lists {
    struct slc_gpu *gpu;
    struct slc_gpu_forms forms;
    cudaEvent_t begin, end;
};

extern "C" unsigned slc_gpu_lists_kernels(void)
{
    return SLC_GPU_KERNELS;
}

extern "C" const char *slc_gpu_lists_kernel(unsigned kernel)
{
    return slc_gpu_kernel_name(static_cast<enum slc_gpu_kernel>(kernel));
}

static enum slc_status check_options(const struct slc_gpu_lists_options *options,
                                     struct slc_error *err)
{
    if (options->work_group % SLC_WARP != 0 || options->work_group > SLC_BLCO_GROUP_MAX) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a work-group of %u threads: the number must be a multiple of %d, up to %d",
                        options->work_group, +SLC_WARP, +SLC_BLCO_GROUP_MAX);
    }
    if (options->index_bits > 64) {
        return slc_fail(err, SLC_ERR_USAGE, "%u index bits: the number must be at most 64",
                        options->index_bits);
    }
    if (options->queues != 0 &&
        (options->queues < SLC_BLCO_QUEUES_MIN || options->queues > SLC_BLCO_QUEUES_MAX)) {
        return slc_fail(err, SLC_ERR_USAGE, "%u queues: the number must be %d to %d",
                        options->queues, +SLC_BLCO_QUEUES_MIN, +SLC_BLCO_QUEUES_MAX);
    }
    return SLC_OK;
}

static enum slc_status create_events(struct slc_gpu_lists *lists, struct slc_error *err)
{
    const struct slc_gpu *gpu = lists->gpu;

    SLC_TRY(slc_gpu_enter(gpu, err));
    if (gpu->problem.deterministic) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "baselines add in any order, but device %d was opened with deterministic sums",
            gpu->ordinal);
    }
    SLC_GPU_TRY(cudaEventCreateWithFlags(&lists->begin, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&lists->end, cudaEventDefault), err);
    return SLC_OK;
}

extern "C" enum slc_status slc_gpu_lists_create(struct slc_device *device,
                                                const struct slc_gpu_lists_source *source,
                                                const struct slc_gpu_lists_options *options,
                                                struct slc_gpu_lists **result,
                                                struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    struct slc_gpu_lists *lists;

    enum slc_status status;

    SLC_TRY(check_options(options, err));
    lists = static_cast<struct slc_gpu_lists *>(slc_calloc(1, sizeof *lists));
    if (lists == nullptr) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the list of coordinates");
    }
    lists->gpu = gpu;
    lists->forms.options = *options;
    lists->forms.machine = &gpu->machine;
    lists->forms.stream = gpu->main;
    status = create_events(lists, err);
    if (status != SLC_OK) {
        slc_gpu_lists_destroy(lists);
        return status;
    }
    lists->forms.dims = gpu->problem.dims;
    lists->forms.list = {gpu->problem.order, source->type, source->nnz, source->coords,
                         source->values};
    *result = lists;
    return SLC_OK;
}

extern "C" void slc_gpu_lists_destroy(struct slc_gpu_lists *lists)
{
    if (lists == nullptr) {
        return;
    }
    slc_gpu_forms_destroy(&lists->forms);
    slc_event_destroy(lists->begin);
    slc_event_destroy(lists->end);
    slc_free(lists);
}

/* Builds the forms that a kernel needs, while the device is idle. The job of the device remains
 * valid after an error. */
static enum slc_status
prepare(struct slc_gpu_lists *lists, enum slc_gpu_kernel kernel, struct slc_error *err)
{
    struct slc_gpu *gpu = lists->gpu;
    const cudaError_t error = slc_gpu_forms_prepare(&lists->forms, kernel, &gpu->job.mttkrp);

    if (error == cudaErrorInvalidValue) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "kernel %s cannot compute this tensor",
                        slc_gpu_kernel_name(kernel));
    }
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return slc_fail(err, SLC_ERR_MEMORY, "device %d or the host lacks memory for kernel %s",
                        gpu->ordinal, slc_gpu_kernel_name(kernel));
    }
    SLC_GPU_TRY(error, err);
    return SLC_OK;
}

static enum slc_status
compute(struct slc_gpu_lists *lists, enum slc_gpu_kernel kernel, struct slc_error *err)
{
    struct slc_gpu *gpu = lists->gpu;

    SLC_GPU_TRY(cudaEventRecord(lists->begin, gpu->main), err);
    SLC_GPU_TRY(slc_gpu_baseline_run(kernel, &lists->forms, &gpu->job.mttkrp), err);
    SLC_GPU_TRY(cudaEventRecord(lists->end, gpu->main), err);
    return SLC_OK;
}

/* Fills in the measurements of a call. */
static enum slc_status describe(const struct slc_gpu_lists *lists,
                                enum slc_gpu_kernel kernel,
                                unsigned mode,
                                struct slc_gpu_lists_run *run,
                                struct slc_error *err)
{
    const struct slc_gpu *gpu = lists->gpu;
    const struct slc_gpu_form_cost cost = slc_gpu_forms_cost(&lists->forms, kernel, mode);
    struct slc_gpu_blco_times times;
    float milliseconds = 0;

    *run = {};
    SLC_GPU_TRY(cudaEventElapsedTime(&milliseconds, lists->begin, lists->end), err);
    run->seconds = (double)milliseconds * 1e-3;
    run->chosen =
        slc_gpu_kernel_name(slc_gpu_baseline_chosen(kernel, &gpu->job.mttkrp, &gpu->machine));
    run->form_seconds = cost.seconds;
    run->form_bytes_per_nonzero = cost.bytes;
    run->kernel_seconds = run->seconds;
    if (kernel == SLC_GPU_BLCO_QUEUES) {
        SLC_GPU_TRY(slc_gpu_blco_queues_times(&lists->forms.queues, &times), err);
        run->streamed = true;
        run->copy_seconds = times.copy_seconds;
        run->kernel_seconds = times.kernel_seconds;
    }
    return SLC_OK;
}

extern "C" enum slc_status slc_gpu_lists_mttkrp(struct slc_gpu_lists *lists,
                                                unsigned kernel,
                                                unsigned mode,
                                                struct slc_gpu_lists_run *run,
                                                struct slc_error *err)
{
    const enum slc_gpu_kernel named = static_cast<enum slc_gpu_kernel>(kernel);
    struct slc_device *device = &lists->gpu->device;
    const struct slc_device_job job = {0, mode, 0, false};
    enum slc_status status;

    if (kernel >= SLC_GPU_KERNELS) {
        return slc_fail(err, SLC_ERR_USAGE, "there is no baseline number %u", kernel);
    }
    SLC_TRY(device->ops->job.begin(device, &job, err));
    /* Baselines write columns in their natural order. */
    lists->gpu->job.mttkrp.output.split = 0;
    status = prepare(lists, named, err);
    if (status == SLC_OK) {
        status = slc_gpu_leave_job(lists->gpu, compute(lists, named, err));
    } else if (status == SLC_ERR_SYSTEM) {
        status = slc_gpu_leave_job(lists->gpu, status);
    }
    if (status != SLC_OK) {
        (void)device->ops->job.end(device, nullptr);
        return status;
    }
    SLC_TRY(device->ops->job.end(device, err));
    return describe(lists, named, mode, run, err);
}
