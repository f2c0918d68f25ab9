/* Defines the table of functions that create CUDA devices, for code that does not include gpu/. */
#include "gpu/gpu.h"

static enum slc_status
create(unsigned ordinal, uint64_t memory_bytes, struct slc_device **device, struct slc_error *err)
{
    const struct slc_gpu_options options = {.ordinal = ordinal, .memory_bytes = memory_bytes};

    return slc_gpu_create(&options, device, err);
}

const struct slc_device_maker *slc_gpu_maker(void)
{
    static const struct slc_device_maker maker = {create, slc_gpu_release, slc_gpu_describe};

    return &maker;
}
