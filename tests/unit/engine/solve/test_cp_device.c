/* CP-ALS on a device that processes whole blocks, and its plans: the CPU's fit, factors that leave
 * the device only when the run ends, for any reason, and memory of both kinds that adds up. */
#include "device_run.h"
#include "make_sorted.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 4, DRAWS = 30000 };

static struct fixture_tensor tensor;
static char path[512];

static void make_problem(void)
{
    if (path[0] == '\0') {
        device_run_tensor(&tensor, DRAWS);
        fixture_store(&tensor, slc_test_folder(), "cp", SLC_CODEC_PACKED, 4096, path);
    }
}

/* Makes the same run on the CPU. */
static void run_cpu(const struct slc_plan_request *request,
                    struct slc_cp_options options,
                    struct slc_cp_result *result)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_run run;

    options.parts.gpu = NULL;
    options.stop = NULL;
    options.iteration = NULL;
    SLC_ASSERT_OK(fixture_open(&run, path, request, &err), &err);
    SLC_ASSERT_OK(
        slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, result, &err), &err);
    fixture_close(&run);
}

static enum slc_status run_device(struct device_run *run,
                                  struct slc_cp_options *options,
                                  struct slc_cp_result *result,
                                  struct slc_error *err)
{
    options->parts.gpu = run->device;
    return slc_cp_run(&run->store, run->stream, NULL, &run->plan, options, result, err);
}

/* Compares a run on a device with `extra` bytes beyond the least memory with the CPU's. */
static void compare(const struct slc_plan_request *request,
                    struct slc_cp_options options,
                    uint64_t extra_bytes,
                    double tolerance)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result cpu, result;
    struct device_run run;
    uint64_t least, all;
    double distance = 0.0;

    run_cpu(request, options, &cpu);
    device_run_limits(path, request, &least, &all);
    device_run_store(&run, path, NULL, least + extra_bytes, 100);
    SLC_ASSERT_OK(device_run_start(&run, request, &err), &err);
    SLC_ASSERT_OK(run_device(&run, &options, &result, &err), &err);
    CU_ASSERT_DOUBLE_EQUAL(result.fit, cpu.fit, tolerance);
    CU_ASSERT_EQUAL(result.iterations, cpu.iterations);
    CU_ASSERT_EQUAL(result.reason, cpu.reason);
    for (unsigned n = 0; n < result.order; n++) {
        for (uint64_t i = 0; i < result.factors[n].rows; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                distance = fmax(distance, fabs(slc_matrix_get(&result.factors[n], i, r) -
                                               slc_matrix_get(&cpu.factors[n], i, r)));
            }
        }
    }
    CU_ASSERT(distance <= 100.0 * tolerance);
    /* Every factor is copied to the device once and back once, and no output is copied. If rows are
     * solved on the host, each update also copies its output and its factor. */
    const uint64_t copies = request->host_rows ? result.order * result.iterations : 0;
    CU_ASSERT_EQUAL(fake_counts(run.device)->factors_written, result.order + copies);
    CU_ASSERT_EQUAL(fake_counts(run.device)->factors_read, result.order);
    CU_ASSERT_EQUAL(fake_counts(run.device)->outputs_read, copies);
    CU_ASSERT_EQUAL(fake_counts(run.device)->begun, result.order * result.iterations);
    CU_ASSERT((result.gpu.resident_bytes > 0) ==
              (run.plan.gpu.kept_blocks > 0 && result.iterations > 0));
    slc_cp_result_destroy(&result);
    slc_cp_result_destroy(&cpu);
    device_run_close(&run);
}

static void test_same_fit(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_cp_options options = fixture_options(RANK, 4);
    static const unsigned order[3] = {2, 0, 1};

    make_problem();
    compare(&request, options, 0, 1e-10);
    request.streams = 3;
    compare(&request, options, UINT64_C(64) << 10, 1e-10);
    fixture_regularize(&options, 0.5);
    options.mode_order_set = true;
    memcpy(options.mode_order, order, sizeof order);
    request.cache = false;
    compare(&request, options, UINT64_C(64) << 10, 1e-10);
    request.cache = true;
    request.precision = SLC_F32;
    compare(&request, options, UINT64_C(1) << 20, 1e-5);
    request.precision = SLC_F64;
    request.deterministic = true;
    options.deterministic = true;
    request.copies = SLC_COPIES_AUTO;
    request.passes = SLC_PASSES_AUTO;
    compare(&request, options, UINT64_C(1) << 20, 1e-10);
    options.iterations = 0;
    compare(&request, options, 0, 0.0);
}

/* Rows with constraints are solved on the host. */
static void test_constraints(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_cp_options options = fixture_options(RANK, 4);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct device_run run;

    make_problem();
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        options.terms[n].nonnegative = true;
    }
    request.host_rows = true;
    compare(&request, options, 0, 1e-10);
    options.terms[1].l1 = 0.01;
    request.precision = SLC_F32;
    compare(&request, options, UINT64_C(1) << 20, 1e-5);

    request.host_rows = false;
    device_run_store(&run, path, NULL, UINT64_C(1) << 30, 100);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    CU_ASSERT_EQUAL(run_device(&run, &options, &result, &err), SLC_ERR_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "no memory for the rows"));
    device_run_close(&run);
}

/* Each mode is computed from the layout sorted by it. All layouts share the device's memory. */
static void test_sorted_layouts(void)
{
    static const uint64_t dims[3] = {90, 40, 30};
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_cp_options options = fixture_options(RANK, 3);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor made;
    char blco_path[512];

    make_problem();
    slc_made_tensor_create(&made, 3, dims, 8000, SLC_MADE_COUNTS, slc_test_seed());
    made.tile_nnz = 700;
    memcpy(blco_path, path, sizeof path);
    snprintf(path, sizeof path, "%.400s/sorted.slc", slc_test_folder());
    SLC_ASSERT_OK(slc_made_store_write(&made, NULL, path, SLC_CODEC_LZ4, 4096, &err), &err);
    for (unsigned n = 0; n < 3; n++) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(&made, path, n, 2000, SLC_CODEC_PACKED, 4096, &err),
                      &err);
    }
    compare(&request, options, UINT64_C(64) << 10, 1e-10);
    request.layouts = SLC_LAYOUTS_SORTED;
    compare(&request, options, UINT64_C(64) << 10, 1e-10);
    memcpy(path, blco_path, sizeof path);
    slc_made_tensor_destroy(&made);
}

/* Reasons to end a run early. */
struct ending {
    int stop;
    unsigned after; /* iteration after which the run ends */
};

static void end_after(void *context, const struct slc_cp_iteration *iteration)
{
    struct ending *ending = context;

    if (iteration->iteration == ending->after) {
        __atomic_store_n(&ending->stop, 1, __ATOMIC_RELAXED);
    }
}

/* A stop leaves the model of the last iteration. */
static void test_stops(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_cp_options options = fixture_options(RANK, 3);
    struct slc_error err = SLC_ERROR_INIT;
    struct ending ending = {0, 3};
    struct slc_cp_result cpu, result;
    struct device_run run;
    uint64_t least, all;

    make_problem();
    run_cpu(&request, options, &cpu);
    device_run_limits(path, &request, &least, &all);
    device_run_store(&run, path, NULL, least, 0);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    options.iterations = 50;
    options.stop = &ending.stop;
    options.iteration = end_after;
    options.context = &ending;
    SLC_ASSERT_OK(run_device(&run, &options, &result, &err), &err);
    CU_ASSERT_EQUAL(result.reason, SLC_STOP_SIGNAL);
    CU_ASSERT_EQUAL(result.iterations, 3);
    CU_ASSERT_DOUBLE_EQUAL(result.fit, cpu.fit, 1e-10);
    CU_ASSERT_DOUBLE_EQUAL(result.lambda[0], cpu.lambda[0], 1e-8 * cpu.lambda[0]);
    slc_cp_result_destroy(&result);
    /* The same stream and device can run again. */
    ending.stop = 0;
    options.max_seconds = 1e-9;
    SLC_ASSERT_OK(run_device(&run, &options, &result, &err), &err);
    CU_ASSERT_EQUAL(result.reason, SLC_STOP_TIME);
    CU_ASSERT_EQUAL(fake_counts(run.device)->factors_read, 2 * result.order);
    slc_cp_result_destroy(&result);
    slc_cp_result_destroy(&cpu);
    device_run_close(&run);
}

/* Any failing call ends the run with its message, and leaves nothing on the device. */
static void test_refusals(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_cp_options options = fixture_options(RANK, 2);
    struct slc_cp_result result;
    struct device_run run;
    uint64_t least, all, k;
    enum slc_status status = SLC_ERR_SYSTEM;
    struct slc_error err = SLC_ERROR_INIT;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    device_run_store(&run, path, NULL, least + (UINT64_C(64) << 10), 0);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    for (k = 1; status != SLC_OK; k += slc_test_quick() ? 11 : 1) {
        slc_error_clear(&err);
        (void)fake_refuse(run.device, k);
        status = run_device(&run, &options, &result, &err);
        (void)fake_refuse(run.device, 0);
        if (status != SLC_OK) {
            SLC_ASSERT_FAILS(status, SLC_ERR_SYSTEM, &err, "was refused");
            CU_ASSERT(result.lambda == NULL);
            /* Open the device again, because resident blocks may be lost. */
            device_run_stop(&run);
            slc_error_clear(&err);
            SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
        }
    }
    CU_ASSERT(k > 30);
    slc_cp_result_destroy(&result);
    device_run_close(&run);
}

/* The parts of both memories add up, and more memory never reduces the resident blocks. */
static void test_plans(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    uint64_t least, all, kept = 0;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    for (uint64_t bytes = least; bytes < all + 4096; bytes += (all - least) / 7) {
        struct slc_error err = SLC_ERROR_INIT;
        struct device_run run;
        const struct slc_plan_gpu *device = &run.plan.gpu;

        device_run_store(&run, path, NULL, bytes, 0);
        SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
        CU_ASSERT_STRING_EQUAL(device->name, "a fake");
        CU_ASSERT_EQUAL(device->budget_bytes, bytes);
        CU_ASSERT_EQUAL(device->minimum_bytes, least);
        CU_ASSERT(device->total_bytes <= bytes);
        CU_ASSERT_EQUAL(device->total_bytes,
                        device->factor_bytes + device->slots_bytes + device->resident_bytes);
        CU_ASSERT(device->kept_blocks >= kept);
        kept = device->kept_blocks;
        CU_ASSERT(device->streams >= 1 && device->slot_bytes >= run.plan.slot_bytes);
        CU_ASSERT_EQUAL(run.plan.scratch_bytes, 0);
        CU_ASSERT_EQUAL(run.plan.output_bytes, 0);
        CU_ASSERT(run.plan.device_bytes > 0);
        CU_ASSERT(run.plan.copies_bytes == 0 && run.plan.fusion.modes == 0);
        device_run_close(&run);
    }
    CU_ASSERT(kept > 0);
}

/* The error names the least sufficient memory; a byte less does not suffice. */
static void test_minimum(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct device_run run;
    uint64_t least, all, host_bytes;

    make_problem();
    for (unsigned streams = 0; streams < 9; streams += 4) {
        request.streams = streams;
        device_run_limits(path, &request, &least, &all);
        device_run_store(&run, path, NULL, least - 1, 0);
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(device_run_start(&run, &request, &err), SLC_ERR_BUDGET, &err,
                         "MiB of device memory or more");
        /* The failed plan still states how much host memory the device needs. */
        host_bytes = run.plan.device_bytes;
        CU_ASSERT(host_bytes > 0 && run.plan.minimum_bytes > host_bytes);
        device_run_close(&run);
        device_run_store(&run, path, NULL, least, 0);
        slc_error_clear(&err);
        SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
        CU_ASSERT_EQUAL(run.plan.gpu.streams, streams == 0 ? 1 : streams);
        CU_ASSERT_EQUAL(run.plan.gpu.total_bytes, least);
        CU_ASSERT_EQUAL(run.plan.device_bytes, host_bytes);
        device_run_close(&run);
    }
}

static void refuse(struct device_run *run, const struct slc_plan_request *request, const char *part)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_FAILS(device_run_start(run, request, &err), SLC_ERR_USAGE, &err, part);
}

static void test_impossible(void)
{
    const struct slc_plan_request plain = fixture_request(RANK);
    struct slc_cp_options options = fixture_options(RANK, 1);
    struct slc_plan_request request = plain;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct device_run run;

    make_problem();
    device_run_store(&run, path, NULL, UINT64_C(1) << 30, 0);
    request.copies = SLC_COPIES_ALWAYS;
    refuse(&run, &request, "replicas are available on the CPU only: request auto");
    request = plain;
    request.passes = SLC_PASSES_FUSED;
    refuse(&run, &request, "two modes are available on the CPU only: request auto");
    request = plain;
    request.cpu_groups = 2;
    refuse(&run, &request, "the device cpu");
    request = plain;
    request.streams = SLC_DEVICE_STREAMS + 1;
    refuse(&run, &request, "9 device streams");
    request = plain;
    request.operation = SLC_OP_TTM;
    refuse(&run, &request, "matrix");
    SLC_ASSERT_OK(device_run_start(&run, &plain, &err), &err);
    SLC_ASSERT_FAILS(slc_cp_run(&run.store, run.stream, NULL, &run.plan, &options, &result, &err),
                     SLC_ERR_USAGE, &err, "the same device");
    device_run_close(&run);
    fixture_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"the CPU's fit and factors", test_same_fit},  {"constraints", test_constraints},
    {"sorted layouts", test_sorted_layouts},       {"stops by signal and time", test_stops},
    {"any call is refused", test_refusals},        {"plans add up", test_plans},
    {"the least memory that works", test_minimum}, {"impossible requests", test_impossible},
};

SLC_SUITE(cp_device)
{
    return slc_test_main("cp by a device", tests, SLC_COUNT(tests), argc, argv);
}
