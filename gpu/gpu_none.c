/* What stands in for gpu/ in a build without CUDA: there are no devices. */
#include "gpu/fiber_list.h"
#include "gpu/gpu.h"
#include "gpu/lists.h"
#include "gpu/measure.h"
#include "gpu/variants.h"

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

unsigned slc_gpu_lists_kernels(void)
{
    return 0;
}

const char *slc_gpu_lists_kernel(unsigned kernel)
{
    (void)kernel;
    return "?";
}

enum slc_status slc_gpu_lists_create(struct slc_device *device,
                                     const struct slc_gpu_lists_source *source,
                                     const struct slc_gpu_lists_options *options,
                                     struct slc_gpu_lists **lists,
                                     struct slc_error *err)
{
    (void)device;
    (void)source;
    (void)options;
    *lists = NULL;
    return no_cuda(err);
}

void slc_gpu_lists_destroy(struct slc_gpu_lists *lists)
{
    (void)lists;
}

enum slc_status slc_gpu_lists_mttkrp(struct slc_gpu_lists *lists,
                                     unsigned kernel,
                                     unsigned mode,
                                     struct slc_gpu_lists_run *run,
                                     struct slc_error *err)
{
    (void)lists;
    (void)kernel;
    (void)mode;
    *run = (struct slc_gpu_lists_run){.chosen = "?"};
    return no_cuda(err);
}

const char *slc_gpu_product_name(enum slc_gpu_product product)
{
    (void)product;
    return "?";
}

enum slc_status slc_gpu_fiber_list_create(const struct slc_gpu_fiber_source *source,
                                          struct slc_gpu_fiber_list **list,
                                          struct slc_error *err)
{
    (void)source;
    *list = NULL;
    return no_cuda(err);
}

void slc_gpu_fiber_list_destroy(struct slc_gpu_fiber_list *list)
{
    (void)list;
}

uint64_t slc_gpu_fiber_list_count(const struct slc_gpu_fiber_list *list)
{
    (void)list;
    return 0;
}

enum slc_status slc_gpu_fiber_list_multiply(struct slc_gpu_fiber_list *list,
                                            const struct slc_gpu_product_run *run,
                                            double *seconds,
                                            uint64_t *bytes,
                                            struct slc_error *err)
{
    (void)list;
    (void)run;
    (void)seconds;
    *bytes = 0;
    return no_cuda(err);
}

unsigned slc_gpu_variants(void)
{
    return 0;
}

const char *slc_gpu_variant_name(unsigned variant)
{
    (void)variant;
    return "?";
}

enum slc_status
slc_gpu_variant_use(struct slc_device *device, unsigned variant, struct slc_error *err)
{
    (void)device;
    (void)variant;
    return no_cuda(err);
}
