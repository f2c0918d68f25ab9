/* Converts errors of the CUDA runtime to error records. */
#ifndef SLC_GPU_CHECK_H
#define SLC_GPU_CHECK_H

#include "gpu/cuda/cuda.h"

/* Reports an error of `call`. The message has only the name of the function: "cudaMalloc" for
 * "cudaMalloc(&memory, bytes)". */
static inline enum slc_status
slc_gpu_fail(cudaError_t error, const char *call, struct slc_error *err)
{
    int name = 0;

    /* Clear the runtime's last error; otherwise the next launch would report it. */
    (void)cudaGetLastError();
    while (call[name] != '\0' && call[name] != '(') {
        name++;
    }
    return slc_fail(err, error == cudaErrorMemoryAllocation ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM,
                    "the device failed: %.*s: %s", name, call, cudaGetErrorString(error));
}

/* Makes the calling function return an error if `call` fails. */
#define SLC_GPU_TRY(call, err)                                                                     \
    do {                                                                                           \
        const cudaError_t slc_gpu_error = (call);                                                  \
                                                                                                   \
        if (slc_gpu_error != cudaSuccess) {                                                        \
            return slc_gpu_fail(slc_gpu_error, #call, err);                                        \
        }                                                                                          \
    } while (0)

/* Sets *reached to true if all work before a recorded event has completed. */
static inline enum slc_status
slc_gpu_reached(cudaEvent_t event, bool *reached, struct slc_error *err)
{
    const cudaError_t error = cudaEventQuery(event);

    *reached = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return SLC_OK;
    }
    return *reached ? SLC_OK : slc_gpu_fail(error, "cudaEventQuery", err);
}

#endif
