/* Opens a store and a fake device, plans and runs. */
#include "device_run.h"

#include "slc_test.h"

#include "base/random.h"
#include "engine/planning/planning.h"

#include <string.h>

void device_run_tensor(struct fixture_tensor *tensor, uint64_t draws)
{
    static const uint64_t dims[3] = {300, 70, 50};

    fixture_random(tensor, 3, dims, draws, slc_test_seed());
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        tensor->values[i] = (double)(1 + slc_random_below(slc_test_seed(), 3, i, 9));
    }
    for (unsigned t = 0; t < 3; t++) {
        tensor->tile_nnz[t] = 300 + 128 * t;
    }
}

void device_run_store(struct device_run *run,
                      const char *path,
                      const struct slc_files *files,
                      uint64_t device_bytes,
                      unsigned late_us)
{
    const struct fake_options options = {.layouts = &run->layouts,
                                         .memory_bytes = device_bytes,
                                         .late_us = late_us,
                                         .seed = slc_test_seed()};
    struct slc_error err = SLC_ERROR_INIT;

    memset(run, 0, sizeof *run);
    SLC_ASSERT_OK(slc_store_open(files, path, &run->store, &err), &err);
    run->device = fake_create(&options);
}

enum slc_status device_run_start(struct device_run *run,
                                 const struct slc_plan_request *request,
                                 struct slc_error *err)
{
    struct slc_plan_request wanted = *request;
    enum slc_status status;

    wanted.gpu = run->device;
    slc_layouts_close(&run->layouts);
    status =
        slc_layouts_open(&run->store, wanted.layouts, UINT32_MAX, UINT64_MAX, &run->layouts, err);
    if (status == SLC_OK) {
        status = slc_plan_choose(&run->layouts, &wanted, &run->plan, err);
    }
    if (status == SLC_OK) {
        status = slc_stream_open(run->store.files, &run->layouts, &run->plan, &run->stream, err);
    }
    if (status == SLC_OK) {
        status = slc_gpu_executor_open(run->device, &run->layouts, &run->plan, run->stream, err);
        run->open = status == SLC_OK;
    }
    return status;
}

void device_run_stop(struct device_run *run)
{
    if (run->open) {
        slc_gpu_executor_close(run->device, run->stream);
    }
    run->open = false;
    slc_stream_close(run->stream);
    run->stream = NULL;
}

void device_run_close(struct device_run *run)
{
    device_run_stop(run);
    if (run->device != NULL) {
        CU_ASSERT_EQUAL(fake_counts(run->device)->registered, 0);
        CU_ASSERT_EQUAL(fake_counts(run->device)->wrongs, 0);
        CU_ASSERT_EQUAL(fake_counts(run->device)->begun, fake_counts(run->device)->ended);
        CU_ASSERT_EQUAL(fake_counts(run->device)->opened, fake_counts(run->device)->closed);
        run->device->ops->destroy(run->device);
    }
    slc_layouts_close(&run->layouts);
    slc_store_close(&run->store);
}

/* Plans for a device with this much memory. */
static enum slc_status plan_for(const char *path,
                                const struct slc_plan_request *request,
                                uint64_t device_bytes,
                                struct slc_plan *plan,
                                struct slc_error *err)
{
    struct device_run run;
    enum slc_status status;

    device_run_store(&run, path, NULL, device_bytes, 0);
    status = device_run_start(&run, request, err);
    *plan = run.plan;
    device_run_close(&run);
    return status;
}

void device_run_limits(const char *path,
                       const struct slc_plan_request *request,
                       uint64_t *least,
                       uint64_t *all)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_plan plan;

    SLC_ASSERT_FAILS(plan_for(path, request, 1, &plan, &err), SLC_ERR_BUDGET, &err,
                     "MiB of device memory or more");
    *least = plan.gpu.minimum_bytes;
    slc_error_clear(&err);
    SLC_ASSERT_OK(plan_for(path, request, UINT64_C(1) << 40, &plan, &err), &err);
    for (unsigned l = 0; l < plan.layout_count; l++) {
        CU_ASSERT_EQUAL(plan.layouts[l].resident_bytes, request->cache && plan.layouts[l].passes > 0
                                                            ? plan.layouts[l].store_bytes
                                                            : 0);
    }
    *all = plan.gpu.total_bytes - plan.gpu.kept_expanded_bytes;
}

void device_run_raise_stop(void *context, uint64_t done, uint64_t blocks, uint64_t bytes)
{
    (void)blocks;
    (void)bytes;
    if (done > 2) {
        __atomic_store_n((int *)context, 1, __ATOMIC_RELAXED);
    }
}
