/* The baselines by their names; see baselines.h. */
#include "gpu/baselines.h"

#include "gpu/baseline.h"

#include <string.h>

const char *slc_gpu_kernel_name(enum slc_gpu_kernel kernel)
{
    static const char *const names[] = {"amped"};

    return static_cast<unsigned>(kernel) < SLC_GPU_KERNELS ? names[kernel] : "?";
}

enum slc_gpu_kernel slc_gpu_kernel_parse(const char *name)
{
    unsigned k = 0;

    while (k < SLC_GPU_KERNELS &&
           strcmp(name, slc_gpu_kernel_name(static_cast<enum slc_gpu_kernel>(k))) != 0) {
        k++;
    }
    return static_cast<enum slc_gpu_kernel>(k);
}

cudaError_t slc_gpu_baseline(enum slc_gpu_kernel kernel,
                             const struct slc_gpu_forms *tensor,
                             const struct slc_gpu_mttkrp *job,
                             const struct slc_gpu_machine *machine,
                             cudaStream_t stream)
{
    if (kernel != SLC_GPU_AMPED || tensor->coo == nullptr || tensor->coo->order != job->order) {
        return cudaErrorInvalidValue;
    }
    if (tensor->coo->nnz == 0) {
        return cudaSuccess;
    }
    return slc_baseline_amped(tensor->coo, job, machine, stream);
}
