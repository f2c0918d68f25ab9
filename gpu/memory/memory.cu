/* Allocates and releases the memory of an open device; memory_parts.c defines its parts. */
#include "gpu/cuda/check.h"

extern "C" {
#include "base/memory/checked.h"
#include "gpu/memory/memory.h"
}

#include <cinttypes>

enum slc_status slc_gpu_device_memory_allocate(uint64_t bytes, void **memory, struct slc_error *err)
{
    const cudaError_t error = cudaMalloc(memory, bytes);

    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return slc_fail_field(err, SLC_ERR_MEMORY, SLC_FIELD_DEVICE_MEMORY,
                              "the device does not have %" PRIu64
                              " MiB free in one piece: other processes use its memory, or the "
                              "limit leaves too little memory for CUDA itself",
                              slc_div_up_u64(bytes, UINT64_C(1) << 20));
    }
    return error == cudaSuccess ? SLC_OK : slc_gpu_fail(error, "cudaMalloc", err);
}

enum slc_status slc_gpu_memory_allocate(const struct slc_device_problem *problem,
                                        struct slc_gpu_memory *memory,
                                        struct slc_error *err)
{
    if (!slc_gpu_memory_measure(problem, memory)) {
        return slc_fail(err, SLC_ERR_MEMORY,
                        "the parts of the device's memory sum to more than 2^64 bytes");
    }
    SLC_TRY(slc_buffer_create(&memory->plain, memory->plain_bytes, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_buffer_create(&memory->registered, memory->registered_bytes, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_gpu_device_memory_allocate(memory->device_bytes, &memory->device, err));
    SLC_GPU_TRY(cudaHostRegister(memory->registered.data, memory->registered.bytes,
                                 cudaHostRegisterPortable),
                err);
    memory->is_registered = true;
    (void)slc_gpu_memory_lay_out(problem, memory, slc_memory_gap);
    return SLC_OK;
}

void slc_gpu_memory_release(struct slc_gpu_memory *memory)
{
    if (memory->is_registered) {
        (void)cudaHostUnregister(memory->registered.data);
    }
    if (memory->device != nullptr) {
        (void)cudaFree(memory->device);
    }
    slc_buffer_destroy(&memory->registered);
    slc_buffer_destroy(&memory->plain);
    *memory = {};
}
