/*
 * Copies between a device and memory of the host that is not registered, through a small piece that
 * is: for what is copied once, as lists of benchmarks. Private to gpu/.
 */
#ifndef SLC_GPU_STAGED_COPY_H
#define SLC_GPU_STAGED_COPY_H

#include "gpu/cuda/cuda.h"

/*
 * Both return when the copy has been made, after everything before it on the stream. Errors:
 * cudaErrorMemoryAllocation where the host has no memory for the piece; those of the runtime.
 */
cudaError_t slc_staged_to_device(void *to, const void *from, uint64_t bytes, cudaStream_t stream);
cudaError_t slc_staged_to_host(void *to, const void *from, uint64_t bytes, cudaStream_t stream);

/* Memory of the device with a copy; NULL after an error. Of one byte where there are none. */
cudaError_t slc_staged_create(void **memory, const void *from, uint64_t bytes, cudaStream_t stream);

#endif
