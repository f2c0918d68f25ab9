/* Decompositions on several devices equal those on one: with divided partitions bitwise for any
 * number of devices and threads, with equal shares of nonzeros within rounding. A failure of one
 * device ends all. */
#include "cpu_groups_fixture.h"
#include "engine/executor/cpu_groups.h"

#include "base/error/fault.h"
#include "cpu/cpu.h"
#include "slc_test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct shape {
    unsigned order;
    uint64_t dims[5];
    uint64_t nnz, target_nnz;
} shapes[] = {
    {3, {40, 3, 700}, 6000, 270}, /* mode 2 has rows in many partitions */
    {4, {30, 50, 20, 11}, 6000, 600},
    {5, {25, 9, 14, 30, 2}, 6000, 400},
};

static void make_shape(struct devices_store *made, unsigned s)
{
    char name[16] = "shape0";

    name[5] = (char)('0' + s);
    devices_store_create(made, name, shapes[s].order, shapes[s].dims, shapes[s].nnz,
                         shapes[s].target_nnz);
}

/* The statistics of the devices must add up. */
static void check_stats(const struct slc_cp_result *result, uint64_t nnz, unsigned devices)
{
    uint64_t sum = 0, sent = 0;

    CU_ASSERT_EQUAL(result->device_count, devices);
    for (unsigned d = 0; d < devices; d++) {
        sum += result->devices[d].nnz;
        sent += result->devices[d].sent_bytes;
        CU_ASSERT(result->devices[d].compute_seconds >= 0.0);
        CU_ASSERT(d == 0 || result->devices[d].copied_bytes > 0);
    }
    CU_ASSERT_EQUAL(sum, nnz * result->order * result->iterations);
    CU_ASSERT_EQUAL(sent > 0, devices > 1);
}

static void same_bits_on_any_devices(void)
{
    static const unsigned counts[] = {1, 2, 4};

    for (unsigned s = 0; s < SLC_COUNT(shapes); s++) {
        struct devices_store made;

        make_shape(&made, s);
        for (unsigned variant = 0; variant < 4; variant++) {
            if (slc_test_threads_only() && variant % 3 != s && variant != s) {
                continue; /* each variant is tested with some shape */
            }
            struct slc_plan_request request =
                devices_request(variant == 3 && s == 0 ? 70 : 5, 0, 2);
            struct slc_cp_result one, want = {0};

            request.deterministic = variant % 2 == 1;
            request.precision = variant == 2 ? SLC_F32 : SLC_F64;
            devices_decompose(made.path, &request, 3, &one);
            for (unsigned c = 0; c < SLC_COUNT(counts); c++) {
                for (unsigned threads = 1; threads <= 3; threads++) {
                    struct slc_cp_result got;

                    if (slc_test_quick() && (c + threads + variant) % 3 != 0 && c + threads > 1) {
                        continue;
                    }
                    request.cpu_groups = counts[c];
                    request.threads = threads;
                    devices_decompose(made.path, &request, 3, &got);
                    check_stats(&got, made.tensor.nnz, counts[c]);
                    CU_ASSERT(devices_same_bits(&one, &got) || request.rank > 64);
                    CU_ASSERT(devices_difference(&one, &got) <= 1e-8);
                    CU_ASSERT_DOUBLE_EQUAL(one.fit, got.fit, 1e-12);
                    if (want.order == 0) {
                        want = got;
                        continue;
                    }
                    CU_ASSERT(devices_same_bits(&want, &got));
                    CU_ASSERT_EQUAL(memcmp(&want.fit, &got.fit, sizeof want.fit), 0);
                    slc_cp_result_destroy(&got);
                }
            }
            slc_cp_result_destroy(&one);
            slc_cp_result_destroy(&want);
        }
        devices_store_destroy(&made);
    }
}

/* With small budgets and other I/O methods, all devices share two slots, and no block is cached. */
static void same_bits_with_little_memory(void)
{
    struct slc_cp_result want, got;
    struct devices_store made;

    make_shape(&made, 0);
    for (unsigned devices = 1; devices <= 4; devices += 3) {
        struct slc_plan_request request = devices_request(6, devices, 2);

        request.schedule = SLC_SCHEDULE_FILE;
        devices_decompose(made.path, &request, 2, &want);
        request.slots = 2;
        request.cache = false;
        devices_decompose(made.path, &request, 2, &got);
        CU_ASSERT(devices_same_bits(&want, &got));
        slc_cp_result_destroy(&got);
        request.io = SLC_IO_MMAP;
        request.slots = 3;
        request.schedule = SLC_SCHEDULE_LARGEST;
        devices_decompose(made.path, &request, 2, &got);
        CU_ASSERT(devices_same_bits(&want, &got));
        slc_cp_result_destroy(&got);
        slc_cp_result_destroy(&want);
    }
    devices_store_destroy(&made);
}

static void equal_shares_agree(void)
{
    for (unsigned s = 0; s < SLC_COUNT(shapes); s++) {
        struct slc_plan_request request = devices_request(5, 0, 2);
        struct slc_cp_result one, got;
        struct devices_store made;

        make_shape(&made, s);
        devices_decompose(made.path, &request, 3, &one);
        request.split = SLC_SPLIT_NNZ;
        request.layouts = SLC_LAYOUTS_BLCO;
        for (unsigned devices = 1; devices <= 4; devices++) {
            for (unsigned threads = 1; threads <= 3; threads++) {
                request.schedule = threads % 2 == 0 ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
                request.cpu_groups = devices;
                request.threads = threads;
                if (slc_test_quick() && (devices + threads) % 3 != 0) {
                    continue;
                }
                devices_decompose(made.path, &request, 3, &got);
                check_stats(&got, made.tensor.nnz, devices);
                CU_ASSERT(devices_difference(&one, &got) <= 1e-8);
                CU_ASSERT_DOUBLE_EQUAL(one.fit, got.fit, 1e-12);
                slc_cp_result_destroy(&got);
            }
        }
        slc_cp_result_destroy(&one);
        devices_store_destroy(&made);
    }
}

/* If there are more devices than partitions or rows, some devices only pass rows on. */
static void devices_may_have_nothing(void)
{
    static const uint64_t dims[] = {2, 3, 50};
    struct slc_plan_request request = devices_request(3, 0, 1);
    struct slc_cp_result one, got;
    struct devices_store made;

    devices_store_create(&made, "few", 3, dims, 400, 60);
    devices_decompose(made.path, &request, 3, &one);
    request.cpu_groups = FIXTURE_DEVICES_MAX;
    devices_decompose(made.path, &request, 3, &got);
    CU_ASSERT(devices_same_bits(&one, &got));
    CU_ASSERT_EQUAL(got.devices[FIXTURE_DEVICES_MAX - 1].nnz, 0);
    CU_ASSERT(got.devices[FIXTURE_DEVICES_MAX - 1].sent_bytes > 0);
    slc_cp_result_destroy(&got);
    request.split = SLC_SPLIT_NNZ;
    request.layouts = SLC_LAYOUTS_BLCO;
    devices_decompose(made.path, &request, 3, &got);
    CU_ASSERT(devices_difference(&one, &got) <= 1e-8);
    slc_cp_result_destroy(&got);
    slc_cp_result_destroy(&one);
    devices_store_destroy(&made);
}

/* A device that fails at its k-th tile, or sets the stop flag. */
struct failing {
    struct slc_backend backend; /* first member, because the engine has a pointer to it */
    struct slc_backend_ops ops;
    struct slc_backend *inner;
    atomic_int left;
    bool stops;
    int stop;
};

static struct failing failing;

static enum slc_status
begin(struct slc_backend *backend, const struct slc_mttkrp_job *job, struct slc_error *err)
{
    (void)backend;
    return failing.inner->ops->mttkrp_begin(failing.inner, job, err);
}

static enum slc_status fail_tile(struct slc_backend *backend,
                                 unsigned worker,
                                 struct slc_tile_view *tile,
                                 struct slc_error *err)
{
    (void)backend;
    if (atomic_fetch_sub(&failing.left, 1) == 1) {
        if (!failing.stops) {
            return slc_fail(err, SLC_ERR_SYSTEM, "the device fell off the bus");
        }
        __atomic_store_n(&failing.stop, 1, __ATOMIC_RELAXED);
    }
    return failing.inner->ops->mttkrp_tile(failing.inner, worker, tile, err);
}

static void abort_job(struct slc_backend *backend)
{
    (void)backend;
    failing.inner->ops->mttkrp_abort(failing.inner);
}

static enum slc_status end(struct slc_backend *backend, struct slc_error *err)
{
    (void)backend;
    return failing.inner->ops->mttkrp_end(failing.inner, err);
}

static bool split_take(struct slc_backend *backend, uint64_t partition, uint64_t *row, double *sums)
{
    (void)backend;
    return failing.inner->ops->mttkrp_split_take(failing.inner, partition, row, sums);
}

static void split_add(struct slc_backend *backend, uint64_t row, const double *sums)
{
    (void)backend;
    failing.inner->ops->mttkrp_split_add(failing.inner, row, sums);
}

/* Makes device `d` of the run fail at its `at`-th tile. */
static void make_failing(struct devices_run *run, unsigned d, int at)
{
    failing.inner = run->backends[d];
    failing.ops = *failing.inner->ops;
    failing.ops.mttkrp_begin = begin;
    failing.ops.mttkrp_tile = fail_tile;
    failing.ops.mttkrp_abort = abort_job;
    failing.ops.mttkrp_end = end;
    failing.ops.mttkrp_split_take = split_take;
    failing.ops.mttkrp_split_add = split_add;
    failing.backend.ops = &failing.ops;
    atomic_store(&failing.left, at);
    failing.stops = false;
    failing.stop = 0;
    run->backends[d] = &failing.backend;
}

/* All devices stop, the message is reported, and the same devices can compute again. */
static void a_failure_ends_all(void)
{
    struct devices_store made;

    make_shape(&made, 0);
    for (int at = 1; at < 300; at += at < 20 ? 6 : 70) {
        struct slc_plan_request request = devices_request(4, 3, 2);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_options options;
        struct slc_cp_result result;
        struct devices_run run;

        SLC_ASSERT_OK(devices_run_plan(&run, made.path, &request, &err), &err);
        devices_run_start(&run);
        make_failing(&run, (unsigned)at % 3, at);
        options = devices_options(&run, 40);
        SLC_ASSERT_FAILS(
            slc_cp_run(&run.store, run.stream, NULL, &run.plan, &options, &result, &err),
            SLC_ERR_SYSTEM, &err, "fell off the bus");
        CU_ASSERT_PTR_NULL(result.factors[0].buffer.data);
        slc_error_clear(&err);
        options.iterations = 2;
        SLC_ASSERT_OK(slc_cp_run(&run.store, run.stream, NULL, &run.plan, &options, &result, &err),
                      &err);
        slc_cp_result_destroy(&result);
        run.backends[(unsigned)at % 3] = failing.inner;
        devices_run_close(&run);
    }
    devices_store_destroy(&made);
}

static void stop_after_two(void *context, const struct slc_cp_iteration *iteration)
{
    (void)context;
    failing.stop = iteration->iteration == 2;
}

/* A stop after an iteration leaves the result of that iteration; a stop within a pass leaves a
 * model. */
static void a_stop_ends_all(void)
{
    struct slc_plan_request request = devices_request(4, 3, 2);
    struct slc_cp_options options;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result want, got;
    struct devices_store made;
    struct devices_run run;

    make_shape(&made, 1);
    devices_decompose(made.path, &request, 2, &want);
    SLC_ASSERT_OK(devices_run_plan(&run, made.path, &request, &err), &err);
    devices_run_start(&run);
    make_failing(&run, 1, 1 << 30);
    options = devices_options(&run, 40);
    options.stop = &failing.stop;
    options.iteration = stop_after_two;
    SLC_ASSERT_OK(slc_cp_run(&run.store, run.stream, NULL, &run.plan, &options, &got, &err), &err);
    CU_ASSERT_EQUAL(got.reason, SLC_STOP_SIGNAL);
    CU_ASSERT(devices_same_bits(&want, &got));
    slc_cp_result_destroy(&got);
    options.iteration = NULL;
    for (int at = 1; at < 100; at += 9) {
        failing.stop = 0;
        failing.stops = true;
        atomic_store(&failing.left, at);
        SLC_ASSERT_OK(slc_cp_run(&run.store, run.stream, NULL, &run.plan, &options, &got, &err),
                      &err);
        CU_ASSERT_EQUAL(got.reason, SLC_STOP_SIGNAL);
        CU_ASSERT(got.iterations < 40);
        slc_cp_result_destroy(&got);
    }
    run.backends[1] = failing.inner;
    devices_run_close(&run);
    slc_cp_result_destroy(&want);
    devices_store_destroy(&made);
}

/* One MTTKRP: every device ends with all rows, equal to those of one device; a failure changes
 * no factor. */
static void check_mttkrp(const struct devices_store *made, enum slc_split split, unsigned mode)
{
    struct slc_plan_request request = devices_request(7, 3, 2);
    struct slc_matrix factors[SLC_MAX_ORDER] = {{0}}, output = {0}, want = {0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_executor *devices = NULL;
    struct slc_executor_setup setup;
    struct slc_executor_pass pass = {.mode = mode};
    struct devices_run run;
    double worst = 0.0;

    request.operation = SLC_OP_MTTKRP;
    request.mode = mode;
    request.split = split;
    request.layouts = split == SLC_SPLIT_NNZ ? SLC_LAYOUTS_BLCO : SLC_LAYOUTS_SORTED;
    for (unsigned devices_count = 1; devices_count <= 3; devices_count += 2) {
        request.cpu_groups = devices_count;
        SLC_ASSERT_OK(devices_run_plan(&run, made->path, &request, &err), &err);
        devices_run_start(&run);
        for (unsigned n = 0; n < made->tensor.order && devices_count == 1; n++) {
            SLC_ASSERT_OK(slc_matrix_create(&factors[n], SLC_F64, made->tensor.dims[n], 7, &err),
                          &err);
            for (uint64_t i = 0; i < made->tensor.dims[n] * 7; i++) {
                slc_matrix_set(&factors[n], i / 7, (uint32_t)(i % 7),
                               1.0 / (double)(i % 97 + n + 1));
            }
        }
        SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, made->tensor.dims[mode], 7, &err), &err);
        setup =
            (struct slc_executor_setup){.parts = {.groups = run.backends, .layouts = &run.layouts},
                                        .stream = run.stream,
                                        .plan = &run.plan,
                                        .factors = factors,
                                        .output = &output.buffer};
        SLC_ASSERT_OK(slc_executor_create(&setup, &devices, &err), &err);
        SLC_ASSERT_OK(devices->ops->load(devices, &err), &err);
        SLC_ASSERT_OK(devices->ops->mttkrp(devices, &pass, &err), &err);
        SLC_ASSERT_OK(devices->ops->read_output(devices, mode, &err), &err);
        for (unsigned d = 1; d < devices_count; d++) {
            for (unsigned n = 0; n < made->tensor.order; n++) {
                CU_ASSERT_EQUAL(memcmp(slc_cpu_groups_factor(devices, d, n)->buffer.data,
                                       factors[n].buffer.data,
                                       factors[n].rows * slc_matrix_row_bytes(&factors[n])),
                                0);
            }
        }
        slc_executor_destroy(devices);
        devices_run_close(&run);
        if (devices_count == 1) {
            want = output;
            output = (struct slc_matrix){0};
        }
    }
    for (uint64_t i = 0; i < want.rows * 7; i++) {
        const double a = slc_matrix_get(&want, i / 7, (uint32_t)(i % 7));
        const double b = slc_matrix_get(&output, i / 7, (uint32_t)(i % 7));
        const double difference = a > b ? a - b : b - a;

        worst = difference > worst ? difference : worst;
    }
    CU_ASSERT(split == SLC_SPLIT_PARTITIONS ? worst == 0.0 : worst <= 1e-11);
    for (unsigned n = 0; n < made->tensor.order; n++) {
        slc_matrix_destroy(&factors[n]);
    }
    slc_matrix_destroy(&want);
    slc_matrix_destroy(&output);
}

static void outputs_are_gathered(void)
{
    struct devices_store made;

    make_shape(&made, 0);
    for (unsigned mode = 0; mode < 3; mode++) {
        check_mttkrp(&made, SLC_SPLIT_PARTITIONS, mode);
        check_mttkrp(&made, SLC_SPLIT_NNZ, mode);
    }
    devices_store_destroy(&made);
}

/* Allocations and threads fail at any moment: the error is reported, and nothing leaks. */
static void refusals_end_it(void)
{
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    struct slc_plan_request request = devices_request(4, 3, 2);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_options options;
    struct slc_cp_result result;
    struct devices_store made;
    struct devices_run run;

    make_shape(&made, 2);
    SLC_ASSERT_OK(devices_run_plan(&run, made.path, &request, &err), &err);
    devices_run_start(&run);
    options = devices_options(&run, 1);
    for (unsigned kind = 0; kind < SLC_COUNT(kinds); kind++) {
        enum slc_status status = SLC_ERR_MEMORY;

        for (uint64_t k = 1; status != SLC_OK; k += slc_test_quick() ? 7 : 1) {
            CU_ASSERT_FATAL(k < 1000);
            slc_fault_arm(kinds[kind], k);
            status = slc_cp_run(&run.store, run.stream, NULL, &run.plan, &options, &result, &err);
            slc_fault_arm(kinds[kind], 0);
            CU_ASSERT(status == SLC_OK || status == (kind == 0 ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM));
            slc_error_clear(&err);
        }
        slc_cp_result_destroy(&result);
    }
    devices_run_close(&run);
    devices_store_destroy(&made);
}

static void check_refused(const struct devices_store *made,
                          const struct slc_plan_request *request,
                          const char *part)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct devices_run run;

    SLC_ASSERT_FAILS(devices_run_plan(&run, made->path, request, &err), SLC_ERR_USAGE, &err, part);
    devices_run_close(&run);
}

static void plans_count_every_device(void)
{
    struct slc_plan_request request = devices_request(5, 0, 2);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_options options;
    struct slc_cp_result result;
    struct devices_store made;
    struct devices_run one, four;

    make_shape(&made, 0);
    SLC_ASSERT_OK(devices_run_plan(&one, made.path, &request, &err), &err);
    CU_ASSERT_EQUAL(one.plan.device_bytes, 0);
    request.cpu_groups = 4;
    SLC_ASSERT_OK(devices_run_plan(&four, made.path, &request, &err), &err);
    CU_ASSERT_EQUAL(four.plan.factor_bytes, 4 * one.plan.factor_bytes);
    CU_ASSERT_EQUAL(four.plan.output_bytes, 4 * one.plan.output_bytes);
    CU_ASSERT_EQUAL(four.plan.scratch_bytes, 4 * one.plan.scratch_bytes);
    CU_ASSERT_EQUAL(four.plan.threads, 8);
    CU_ASSERT_EQUAL(four.plan.group_threads, 2);
    CU_ASSERT(four.plan.device_bytes > 0);
    devices_run_start(&four);
    options = devices_options(&four, 1);
    options.parts.groups = NULL;
    SLC_ASSERT_FAILS(
        slc_cp_run(&four.store, four.stream, NULL, &four.plan, &options, &result, &err),
        SLC_ERR_USAGE, &err, "the caller must pass both");
    devices_run_close(&one);
    devices_run_close(&four);

    request.copies = SLC_COPIES_ALWAYS;
    check_refused(&made, &request, "need a single device");
    request.copies = SLC_COPIES_NEVER;
    request.split = SLC_SPLIT_NNZ;
    request.deterministic = true;
    check_refused(&made, &request, "use the split 'partitions', or");
    request.deterministic = false;
    request.cpu_groups = SLC_MAX_DEVICES + 1;
    check_refused(&made, &request, "the maximum is 64");
    request.cpu_groups = SLC_MAX_DEVICES;
    request.threads = 17;
    check_refused(&made, &request, "the maximum is 1024 threads");
    devices_store_destroy(&made);
}

/* Divisions that would yield wrong numbers are rejected when devices are created. */
static void divisions_have_to_fit_the_layout(void)
{
    struct slc_plan_request request = devices_request(5, 2, 1);
    struct slc_cp_options options;
    struct slc_cp_result result;
    struct devices_store made;

    make_shape(&made, 0);
    for (unsigned c = 0; c < 2; c++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct devices_run run;

        request.layouts = c == 0 ? SLC_LAYOUTS_BLCO : SLC_LAYOUTS_SORTED;
        request.split = c == 0 ? SLC_SPLIT_PARTITIONS : SLC_SPLIT_NNZ;
        SLC_ASSERT_OK(devices_run_plan(&run, made.path, &request, &err), &err);
        devices_run_start(&run);
        options = devices_options(&run, 1);
        SLC_ASSERT_FAILS(
            slc_cp_run(&run.store, run.stream, NULL, &run.plan, &options, &result, &err),
            SLC_ERR_USAGE, &err, c == 0 ? "no partitions" : "layout 'blco'");
        devices_run_close(&run);
    }
    devices_store_destroy(&made);
}

static const struct slc_test tests[] = {
    {"the same bits on any devices", same_bits_on_any_devices},
    {"the same bits with little memory", same_bits_with_little_memory},
    {"equal shares agree", equal_shares_agree},
    {"devices may have nothing to do", devices_may_have_nothing},
    {"a failure ends all", a_failure_ends_all},
    {"a stop ends all", a_stop_ends_all},
    {"outputs are gathered", outputs_are_gathered},
    {"refusals end it", refusals_end_it},
    {"plans count every device", plans_count_every_device},
    {"divisions have to fit the layout", divisions_have_to_fit_the_layout},
};

SLC_SUITE(cpu_groups)
{
    return slc_test_main("engine cpu groups", tests, SLC_COUNT(tests), argc, argv);
}
