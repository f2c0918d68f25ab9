/* Copies between a device and host memory through a small buffer of registered memory. */
#include "gpu/cuda/staged_copy.h"

#include <string.h>

/* Size of the staging buffer; copies of this size reach about the full rate of registered
 * memory. */
static const uint64_t piece_bytes = 4 << 20;

/* Copies piece by piece. Waits until a piece has left the staging buffer before the next piece is
 * written to the buffer. */
static cudaError_t copy_pieces(
    void *to, const void *from, uint64_t bytes, bool to_device, void *staging, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;

    for (uint64_t at = 0; at < bytes && error == cudaSuccess; at += piece_bytes) {
        const uint64_t now = bytes - at < piece_bytes ? bytes - at : piece_bytes;
        unsigned char *target = static_cast<unsigned char *>(to) + at;
        const unsigned char *source = static_cast<const unsigned char *>(from) + at;

        if (to_device) {
            memcpy(staging, source, now);
            error = cudaMemcpyAsync(target, staging, now, cudaMemcpyHostToDevice, stream);
        } else {
            error = cudaMemcpyAsync(staging, source, now, cudaMemcpyDeviceToHost, stream);
        }
        if (error == cudaSuccess) {
            error = cudaStreamSynchronize(stream);
        }
        if (error == cudaSuccess && !to_device) {
            memcpy(target, staging, now);
        }
    }
    return error;
}

static cudaError_t
copy_staged(void *to, const void *from, uint64_t bytes, bool to_device, cudaStream_t stream)
{
    struct slc_buffer staging = SLC_BUFFER_INIT;
    cudaError_t error;

    if (bytes == 0) {
        return cudaStreamSynchronize(stream);
    }
    if (slc_buffer_create(&staging, bytes < piece_bytes ? bytes : piece_bytes, SLC_PAGES_SMALL,
                          nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    error = cudaHostRegister(staging.data, staging.bytes, cudaHostRegisterDefault);
    if (error == cudaSuccess) {
        error = copy_pieces(to, from, bytes, to_device, staging.data, stream);
        if (error != cudaSuccess) {
            /* A copy may still be pending, and the staging buffer is freed next. */
            (void)cudaStreamSynchronize(stream);
        }
        (void)cudaHostUnregister(staging.data);
    }
    slc_buffer_destroy(&staging);
    return error;
}

cudaError_t slc_staged_to_device(void *to, const void *from, uint64_t bytes, cudaStream_t stream)
{
    return copy_staged(to, from, bytes, true, stream);
}

cudaError_t slc_staged_to_host(void *to, const void *from, uint64_t bytes, cudaStream_t stream)
{
    return copy_staged(to, from, bytes, false, stream);
}

cudaError_t slc_staged_create(void **memory, const void *from, uint64_t bytes, cudaStream_t stream)
{
    cudaError_t error;

    *memory = nullptr;
    error = cudaMalloc(memory, bytes > 0 ? bytes : 1);
    if (error == cudaSuccess) {
        error = slc_staged_to_device(*memory, from, bytes, stream);
    }
    if (error != cudaSuccess) {
        (void)cudaFree(*memory);
        *memory = nullptr;
    }
    return error;
}
