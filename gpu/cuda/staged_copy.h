/*
 * Copies between a device and unregistered host memory, through a small registered piece: for data
 * that is copied once, such as tables of benchmarks. Private to gpu/.
 */
#ifndef SLC_GPU_STAGED_COPY_H
#define SLC_GPU_STAGED_COPY_H

#include "gpu/cuda/cuda.h"

/* Both return when the copy is complete, after all earlier work on the stream. Errors:
 * cudaErrorMemoryAllocation if the host has no memory for the piece; those of the runtime. */
cudaError_t slc_staged_to_device(void *to, const void *from, uint64_t bytes, cudaStream_t stream);
cudaError_t slc_staged_to_host(void *to, const void *from, uint64_t bytes, cudaStream_t stream);

/* Allocates device memory with a copy, at least one byte; NULL after an error. */
cudaError_t slc_staged_create(void **memory, const void *from, uint64_t bytes, cudaStream_t stream);

#endif
