/* Baselines beside an open device; see lists.h. */
#include "gpu/baselines.h"
#include "gpu/check.h"
#include "gpu/state.h"

extern "C" {
#include "gpu/lists.h"
}

struct slc_gpu_lists {
    struct slc_gpu *gpu;
    struct slc_gpu_coo coo;
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

static enum slc_status fill(struct slc_gpu_lists *lists,
                            uint64_t nnz,
                            const uint32_t *coords,
                            enum slc_value_type type,
                            const void *values,
                            struct slc_error *err)
{
    struct slc_gpu *gpu = lists->gpu;
    enum slc_status status = slc_gpu_enter(gpu, err);

    if (status != SLC_OK) {
        return status;
    }
    if (gpu->problem.deterministic) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "kernels over lists add in any order, but device %d was opened to be "
                        "deterministic",
                        gpu->ordinal);
    }
    lists->forms.coo = &lists->coo;
    SLC_GPU_TRY(slc_gpu_coo_create(&lists->coo, gpu->problem.order, nnz, type), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&lists->begin, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&lists->end, cudaEventDefault), err);
    SLC_GPU_TRY(slc_gpu_coo_write(&lists->coo, coords, values, gpu->main), err);
    return SLC_OK;
}

extern "C" enum slc_status slc_gpu_lists_create(struct slc_device *device,
                                                uint64_t nnz,
                                                const uint32_t *coords,
                                                enum slc_value_type type,
                                                const void *values,
                                                struct slc_gpu_lists **result,
                                                struct slc_error *err)
{
    struct slc_gpu_lists *lists = static_cast<struct slc_gpu_lists *>(slc_calloc(1, sizeof *lists));
    enum slc_status status;

    if (lists == nullptr) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for lists of coordinates");
    }
    lists->gpu = slc_gpu_of(device);
    status = fill(lists, nnz, coords, type, values, err);
    if (status != SLC_OK) {
        slc_gpu_lists_destroy(lists);
        return status;
    }
    *result = lists;
    return SLC_OK;
}

extern "C" void slc_gpu_lists_destroy(struct slc_gpu_lists *lists)
{
    if (lists == nullptr) {
        return;
    }
    slc_gpu_forms_destroy(&lists->forms);
    slc_gpu_coo_destroy(&lists->coo);
    if (lists->begin != nullptr) {
        (void)cudaEventDestroy(lists->begin);
    }
    if (lists->end != nullptr) {
        (void)cudaEventDestroy(lists->end);
    }
    slc_free(lists);
}

/* Between mttkrp_begin and mttkrp_end. */
static enum slc_status
compute(struct slc_gpu_lists *lists, enum slc_gpu_kernel kernel, struct slc_error *err)
{
    static const struct slc_gpu_baseline_options usual = {};
    struct slc_gpu *gpu = lists->gpu;
    const cudaError_t error =
        slc_gpu_forms_prepare(&lists->forms, kernel, &gpu->job.mttkrp, gpu->problem.dims, &usual,
                              &gpu->machine, gpu->main);

    if (error == cudaErrorInvalidValue) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "the kernel %s cannot take this tensor",
                        slc_gpu_kernel_name(kernel));
    }
    SLC_GPU_TRY(error, err);
    SLC_GPU_TRY(cudaEventRecord(lists->begin, gpu->main), err);
    SLC_GPU_TRY(slc_gpu_baseline_run(kernel, &lists->forms, &gpu->job.mttkrp, &usual, &gpu->machine,
                                     gpu->main),
                err);
    SLC_GPU_TRY(cudaEventRecord(lists->end, gpu->main), err);
    return SLC_OK;
}

extern "C" enum slc_status slc_gpu_lists_mttkrp(struct slc_gpu_lists *lists,
                                                unsigned kernel,
                                                unsigned mode,
                                                double *seconds,
                                                struct slc_error *err)
{
    struct slc_device *device = &lists->gpu->device;
    const struct slc_device_job job = {0, mode, 0, false};
    float milliseconds = 0;
    enum slc_status status;

    if (kernel >= SLC_GPU_KERNELS) {
        return slc_fail(err, SLC_ERR_USAGE, "there is no kernel %u over lists", kernel);
    }
    status = device->ops->mttkrp_begin(device, &job, err);
    if (status != SLC_OK) {
        return status;
    }
    status = slc_gpu_leave_job(lists->gpu,
                               compute(lists, static_cast<enum slc_gpu_kernel>(kernel), err));
    if (status != SLC_OK) {
        (void)device->ops->mttkrp_end(device, nullptr);
        return status;
    }
    status = device->ops->mttkrp_end(device, err);
    if (status != SLC_OK) {
        return status;
    }
    SLC_GPU_TRY(cudaEventElapsedTime(&milliseconds, lists->begin, lists->end), err);
    *seconds = (double)milliseconds * 1e-3;
    return SLC_OK;
}
