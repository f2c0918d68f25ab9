/* Replaces the functions of lists.h in builds without CUDA. Every returned status is a failure. */
#include "tools/bench/rivals/gpu/lists.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

static enum slc_status no_cuda(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_SYSTEM, "this sluice was built without CUDA");
}

unsigned slc_gpu_lists_kernels(void)
{
    return 0;
}

const char *slc_gpu_lists_kernel(unsigned kernel)
{
    return "?";
}

enum slc_status slc_gpu_lists_create(struct slc_device *device,
                                     const struct slc_gpu_lists_source *source,
                                     const struct slc_gpu_lists_options *options,
                                     struct slc_gpu_lists **lists,
                                     struct slc_error *err)
{
    *lists = NULL;
    return no_cuda(err);
}

void slc_gpu_lists_destroy(struct slc_gpu_lists *lists)
{
}

enum slc_status slc_gpu_lists_mttkrp(struct slc_gpu_lists *lists,
                                     unsigned kernel,
                                     unsigned mode,
                                     struct slc_gpu_lists_run *run,
                                     struct slc_error *err)
{
    *run = (struct slc_gpu_lists_run){.chosen = "?"};
    return no_cuda(err);
}

const char *slc_gpu_product_name(enum slc_gpu_fiber_product product)
{
    return "?";
}

enum slc_status slc_gpu_fiber_list_create(const struct slc_gpu_fiber_source *source,
                                          struct slc_gpu_fiber_list **list,
                                          struct slc_error *err)
{
    *list = NULL;
    return no_cuda(err);
}

void slc_gpu_fiber_list_destroy(struct slc_gpu_fiber_list *list)
{
}

uint64_t slc_gpu_fiber_list_count(const struct slc_gpu_fiber_list *list)
{
    return 0;
}

enum slc_status slc_gpu_fiber_list_multiply(struct slc_gpu_fiber_list *list,
                                            const struct slc_gpu_product_run *run,
                                            double *seconds,
                                            uint64_t *bytes,
                                            struct slc_error *err)
{
    *bytes = 0;
    return no_cuda(err);
}
