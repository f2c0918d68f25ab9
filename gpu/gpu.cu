/* Counts, creates and destroys CUDA devices, and defines their table of operations. */
#include "gpu/cuda/check.h"
#include "gpu/product/product.h"

extern "C" {
#include "base/memory/checked.h"
#include "gpu/gpu.h"
}

#include <cinttypes>
#include <cstdio>
#include <cstring>

/* The oldest architecture for which this build has machine code (-Dgpu_archs). Devices older than
 * architecture 80 lack warp instructions that gpu/ uses (__reduce_add_sync). */
#if !defined(SLC_GPU_OLDEST)
#define SLC_GPU_OLDEST 80
#endif

static enum slc_status no_device(cudaError_t error, struct slc_error *err)
{
    (void)cudaGetLastError();
    return slc_fail(
        err, SLC_ERR_SYSTEM,
        "no CUDA device can be used: %s; check that there is a device and a driver for CUDA %d.%d",
        cudaGetErrorString(error), CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

int slc_gpu_toolkit(void)
{
    return CUDART_VERSION;
}

enum slc_status slc_gpu_count(unsigned *count, struct slc_error *err)
{
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);

    *count = 0;
    if (error != cudaSuccess || devices < 1) {
        return no_device(error == cudaSuccess ? cudaErrorNoDevice : error, err);
    }
    *count = (unsigned)devices;
    return SLC_OK;
}

static void info(const struct slc_device *device, struct slc_device_info *info)
{
    const struct slc_gpu *gpu = slc_gpu_of(device);
    size_t free_bytes = 0, total_bytes = 0;

    if (cudaSetDevice(gpu->ordinal) != cudaSuccess ||
        cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        free_bytes = 0;
    }
    memcpy(info->name, gpu->name, sizeof info->name);
    info->total_bytes = gpu->total_bytes;
    info->free_bytes = slc_min_u64(free_bytes, gpu->cap_bytes - gpu->memory.device_bytes -
                                                   slc_gpu_product_bytes(gpu));
    info->multiprocessors = gpu->machine.multiprocessors;
    info->shared_bytes = gpu->machine.shared_bytes;
    info->described = false;
}

static void stats(const struct slc_device *device, struct slc_device_stats *stats)
{
    const struct slc_gpu *gpu = slc_gpu_of(device);

    *stats = gpu->stats;
    stats->copy_seconds += slc_spans_seconds(&gpu->times.copy);
    stats->compute_seconds += slc_spans_seconds(&gpu->times.compute);
    stats->busy_seconds += slc_spans_seconds(&gpu->times.busy);
    slc_gpu_product_stats(gpu, stats);
}

static void destroy(struct slc_device *device)
{
    if (device != nullptr) {
        struct slc_gpu *gpu = slc_gpu_of(device);

        slc_gpu_close(device);
        slc_gpu_pages_release(gpu);
        slc_free(gpu->pages);
        slc_free(gpu);
    }
}

static const struct slc_device_ops operations = {
    "cuda",
    info,
    {slc_gpu_memory_bytes, slc_gpu_host_bytes, slc_gpu_open, slc_gpu_close, slc_gpu_host_register,
     slc_gpu_host_unregister, slc_gpu_factor_write, slc_gpu_factor_read, slc_gpu_output_read},
    {slc_gpu_mttkrp_begin, slc_gpu_block, slc_gpu_resident, slc_gpu_flush, slc_gpu_copied,
     slc_gpu_poll, slc_gpu_mttkrp_end, slc_gpu_output_add_host},
    {slc_gpu_update, slc_gpu_gram, slc_gpu_scale, slc_gpu_factor_copy, slc_gpu_output_add,
     slc_gpu_output_rows, slc_gpu_update_units},
    {slc_gpu_product_memory_bytes, slc_gpu_product_host_bytes, slc_gpu_product_open,
     slc_gpu_product_tile, slc_gpu_product_more},
    stats,
    destroy,
};

/* Reads the device's properties and sets its memory limit. */
static enum slc_status
read_properties(struct slc_gpu *gpu, const struct slc_gpu_options *options, struct slc_error *err)
{
    struct cudaDeviceProp properties;
    size_t free_bytes, total_bytes;
    const uint64_t mib = UINT64_C(1) << 20;

    SLC_GPU_TRY(cudaGetDeviceProperties(&properties, gpu->ordinal), err);
    if (properties.major * 10 + properties.minor < SLC_GPU_OLDEST) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "device %d (%s) has compute capability %d.%d; the oldest supported by this "
                        "build is %d.%d",
                        gpu->ordinal, properties.name, properties.major, properties.minor,
                        SLC_GPU_OLDEST / 10, SLC_GPU_OLDEST % 10);
    }
    SLC_GPU_TRY(cudaSetDevice(gpu->ordinal), err);
    SLC_GPU_TRY(cudaMemGetInfo(&free_bytes, &total_bytes), err);
    if (options->memory_bytes > free_bytes) {
        return slc_fail_field(
            err, SLC_ERR_USAGE, SLC_FIELD_DEVICE_MEMORY,
            "%" PRIu64 " MiB of device memory requested, but %" PRIu64 " of the %" PRIu64
            " MiB of device %d (%s) are free: request less, or omit the option to use nine tenths "
            "of the free memory",
            slc_div_up_u64(options->memory_bytes, mib), (uint64_t)free_bytes / mib,
            (uint64_t)total_bytes / mib, gpu->ordinal, properties.name);
    }
    (void)snprintf(gpu->name, sizeof gpu->name, "%.*s", (int)sizeof gpu->name - 1, properties.name);
    gpu->total_bytes = total_bytes;
    gpu->cap_bytes = options->memory_bytes != 0 ? options->memory_bytes : free_bytes / 10 * 9;
    gpu->machine.multiprocessors = (unsigned)properties.multiProcessorCount;
    gpu->machine.shared_bytes = (unsigned)properties.sharedMemPerBlockOptin;
    gpu->machine.architecture = (unsigned)(properties.major * 10 + properties.minor);
    return SLC_OK;
}

enum slc_status slc_gpu_create(const struct slc_gpu_options *options,
                               struct slc_device **device,
                               struct slc_error *err)
{
    struct slc_gpu *gpu;
    unsigned count;
    enum slc_status status = slc_gpu_count(&count, err);

    *device = nullptr;
    if (status != SLC_OK) {
        return status;
    }
    if (options->ordinal >= count) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "device %u does not exist: this machine has %u devices, and numbers start at 0",
            options->ordinal, count);
    }
    gpu = static_cast<struct slc_gpu *>(slc_calloc(1, sizeof *gpu));
    if (gpu == nullptr) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for device %u", options->ordinal);
    }
    gpu->device.ops = &operations;
    gpu->ordinal = (int)options->ordinal;
    status = read_properties(gpu, options, err);
    if (status != SLC_OK) {
        destroy(&gpu->device);
        return status;
    }
    *device = &gpu->device;
    return SLC_OK;
}

void slc_gpu_release(unsigned ordinal)
{
    if (cudaSetDevice((int)ordinal) == cudaSuccess) {
        (void)cudaDeviceReset();
    }
    (void)cudaGetLastError();
}
