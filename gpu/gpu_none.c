/* What stands in for gpu/ in a build without CUDA: there are no devices. */
#include "gpu/gpu.h"

enum slc_status slc_gpu_count(unsigned *count, struct slc_error *err)
{
    *count = 0;
    return slc_fail(err, SLC_ERR_SYSTEM, "this sluice was built without CUDA");
}

enum slc_status slc_gpu_create(const struct slc_gpu_options *options,
                               struct slc_device **device,
                               struct slc_error *err)
{
    (void)options;
    *device = NULL;
    return slc_fail(err, SLC_ERR_SYSTEM, "this sluice was built without CUDA");
}
