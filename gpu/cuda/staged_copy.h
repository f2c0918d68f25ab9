/* Copies between a device and unregistered host memory through a small registered buffer, for data
 * that is copied only once, such as tables of benchmarks. Private to gpu/. */
#ifndef SLC_GPU_STAGED_COPY_H
#define SLC_GPU_STAGED_COPY_H

#include "gpu/cuda/cuda.h"

/* Copy after all earlier work on the stream, and return when the copy is complete. Errors:
 * cudaErrorMemoryAllocation if host memory for the buffer does not suffice; errors of the CUDA
 * runtime. */
cudaError_t slc_staged_to_device(void *to, const void *from, uint64_t bytes, cudaStream_t stream);
cudaError_t slc_staged_to_host(void *to, const void *from, uint64_t bytes, cudaStream_t stream);

/* Allocates device memory, at least one byte, and copies `from` to it. Sets *memory to NULL after
 * an error. */
cudaError_t slc_staged_create(void **memory, const void *from, uint64_t bytes, cudaStream_t stream);

#endif
