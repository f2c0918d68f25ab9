/* Replaces the files that need CUDA in a build without CUDA, and reports that there are no
 * devices. */
#include "gpu/gpu.h"
#include "gpu/measure.h"

static enum slc_status no_cuda(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_SYSTEM, "this sluice was built without CUDA");
}

int slc_gpu_toolkit(void)
{
    return 0;
}

enum slc_status slc_gpu_count(unsigned *count, struct slc_error *err)
{
    *count = 0;
    return no_cuda(err);
}

enum slc_status slc_gpu_create(const struct slc_gpu_options *options,
                               struct slc_device **device,
                               struct slc_error *err)
{
    (void)options;
    *device = NULL;
    return no_cuda(err);
}

void slc_gpu_release(unsigned ordinal)
{
    (void)ordinal;
}

const char *slc_gpu_ceiling_name(enum slc_gpu_ceiling ceiling)
{
    (void)ceiling;
    return "?";
}

enum slc_status slc_gpu_measure(unsigned ordinal,
                                const struct slc_gpu_measurement *measurement,
                                double *bytes_per_second,
                                struct slc_error *err)
{
    (void)ordinal;
    (void)measurement;
    *bytes_per_second = 0;
    return no_cuda(err);
}

const char *slc_gpu_peak_name(enum slc_value_type type)
{
    (void)type;
    return "?";
}

enum slc_status slc_gpu_measure_peak(unsigned ordinal,
                                     const struct slc_gpu_peak *peak,
                                     double *per_second,
                                     struct slc_error *err)
{
    (void)ordinal;
    (void)peak;
    *per_second = 0;
    return no_cuda(err);
}
