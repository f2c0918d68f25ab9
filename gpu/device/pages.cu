/* Registers host memory, from which the device then copies directly. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"

static bool grow_pages(struct slc_gpu *gpu)
{
    const size_t capacity = gpu->pages_capacity == 0 ? 4 : 2 * gpu->pages_capacity;
    void *pages = slc_realloc(gpu->pages, capacity * sizeof *gpu->pages);

    if (pages == nullptr) {
        return false;
    }
    gpu->pages = static_cast<struct slc_gpu_pages *>(pages);
    gpu->pages_capacity = capacity;
    return true;
}

enum slc_status slc_gpu_host_register(struct slc_device *device,
                                      void *memory,
                                      uint64_t bytes,
                                      struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    cudaError_t error;

    SLC_GPU_TRY(cudaSetDevice(gpu->ordinal), err);
    if (gpu->pages_count == gpu->pages_capacity && !grow_pages(gpu)) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the list of registered memory");
    }
    /* With the flag Portable, every device of the process may copy from this memory. */
    error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
    if (error != cudaSuccess && error != cudaErrorHostMemoryAlreadyRegistered) {
        (void)cudaGetLastError();
        return slc_fail(err, error == cudaErrorMemoryAllocation ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM,
                        "cannot lock %llu bytes of host memory for the device: %s; check the limit "
                        "on locked memory (ulimit -l)",
                        (unsigned long long)bytes, cudaGetErrorString(error));
    }
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
    }
    gpu->pages[gpu->pages_count++] = {static_cast<unsigned char *>(memory), bytes,
                                      error == cudaSuccess};
    return SLC_OK;
}

void slc_gpu_host_unregister(struct slc_device *device, void *memory)
{
    struct slc_gpu *gpu = slc_gpu_of(device);

    for (size_t i = 0; i < gpu->pages_count; i++) {
        if (gpu->pages[i].begin == memory) {
            slc_gpu_wait(gpu);
            if (gpu->pages[i].own && cudaHostUnregister(memory) != cudaSuccess) {
                (void)cudaGetLastError();
            }
            gpu->pages[i] = gpu->pages[--gpu->pages_count];
            return;
        }
    }
}

bool slc_gpu_is_registered(const struct slc_gpu *gpu, const void *memory, uint64_t bytes)
{
    const uintptr_t first = reinterpret_cast<uintptr_t>(memory);

    for (size_t i = 0; i < gpu->pages_count; i++) {
        const uintptr_t begin = reinterpret_cast<uintptr_t>(gpu->pages[i].begin);

        if (first >= begin && first - begin <= gpu->pages[i].bytes &&
            bytes <= gpu->pages[i].bytes - (first - begin)) {
            return true;
        }
    }
    return false;
}

void slc_gpu_pages_release(struct slc_gpu *gpu)
{
    while (gpu->pages_count > 0) {
        slc_gpu_host_unregister(&gpu->device, gpu->pages[gpu->pages_count - 1].begin);
    }
}
