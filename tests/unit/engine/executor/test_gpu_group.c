/* Several devices that process whole blocks (engine/executor/gpu_group.h), here fake ones: the
 * factors of one device, blocks and rows divided as between CPU devices, and faults of any device
 * that end all. Sums are in order of arrival; each contribution counted exactly once shows in the
 * result, within rounding. */
#include "cpu_groups_fixture.h"
#include "fake_device.h"

#include "base/error/fault.h"
#include "engine/executor/gpu_group.h"
#include "engine/executor/group_division.h"
#include "engine/planning/planning.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANK = 5, DEVICES_MAX = 4, PLENTY = 1 << 28 };

static const uint64_t dims[] = {40, 3, 700}; /* mode 2 has rows in many partitions */
static struct devices_store made;

/* Small tiles, so that there are blocks to divide equally. */
static void make_problem(void)
{
    struct slc_error err = SLC_ERROR_INIT;

    if (made.path[0] != '\0') {
        return;
    }
    (void)snprintf(made.path, sizeof made.path, "%s/group.slc", slc_test_folder());
    slc_made_tensor_create(&made.tensor, 3, dims, 6000, SLC_MADE_COUNTS, slc_test_seed());
    made.tensor.tile_nnz = 256;
    SLC_ASSERT_OK(slc_made_store_write(&made.tensor, NULL, made.path, SLC_CODEC_PACKED, 4096, &err),
                  &err);
    for (unsigned n = 0; n < 3; n++) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(&made.tensor, made.path, n, 270, SLC_CODEC_PACKED,
                                                4096, &err),
                      &err);
    }
}

/* The state of a run except its solver. */
struct group_run {
    struct slc_store store;
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_device *device[DEVICES_MAX];
    unsigned count;
    struct slc_gpu_group *group;
};

static struct slc_plan_request group_request(unsigned count, enum slc_split split)
{
    struct slc_plan_request request = devices_request(RANK, 0, 2);

    request.gpu_count = count;
    request.split = split;
    request.layouts = split == SLC_SPLIT_NNZ ? SLC_LAYOUTS_BLCO : SLC_LAYOUTS_SORTED;
    return request;
}

static void group_create(struct group_run *run, unsigned count, uint64_t bytes, unsigned late_us)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(run, 0, sizeof *run);
    run->count = count;
    SLC_ASSERT_OK(slc_store_open(NULL, made.path, &run->store, &err), &err);
    for (unsigned d = 0; d < count; d++) {
        const struct fake_options options = {.layouts = &run->layouts,
                                             .memory_bytes = bytes + d * 100,
                                             .late_us = late_us,
                                             .seed = slc_test_seed() + d};

        run->device[d] = fake_create(&options);
    }
}

static enum slc_status
group_start(struct group_run *run, struct slc_plan_request request, struct slc_error *err)
{
    const uint32_t modes =
        request.operation == SLC_OP_CPD ? UINT32_MAX : UINT32_C(1) << request.mode;
    enum slc_status status;

    request.gpu = run->device[0];
    request.gpus = run->device;
    slc_layouts_close(&run->layouts);
    status = slc_layouts_open(&run->store, request.layouts, modes, UINT64_MAX, &run->layouts, err);
    if (status == SLC_OK) {
        status = slc_plan_choose(&run->layouts, &request, &run->plan, err);
    }
    if (status == SLC_OK) {
        status = slc_stream_open(NULL, &run->layouts, &run->plan, &run->stream, err);
    }
    if (status == SLC_OK) {
        status = slc_gpu_group_open(&run->layouts, &run->plan, run->stream, &run->group, err);
    }
    return status;
}

static void group_stop(struct group_run *run)
{
    slc_gpu_group_close(run->group);
    run->group = NULL;
    slc_stream_close(run->stream);
    run->stream = NULL;
}

static void group_close(struct group_run *run)
{
    group_stop(run);
    for (unsigned d = 0; d < run->count; d++) {
        const struct fake_counts *counts = fake_counts(run->device[d]);

        CU_ASSERT_EQUAL(counts->registered, 0);
        CU_ASSERT_EQUAL(counts->wrongs, 0);
        CU_ASSERT_EQUAL(counts->begun, counts->ended);
        CU_ASSERT_EQUAL(counts->opened, counts->closed);
        run->device[d]->ops->destroy(run->device[d]);
    }
    slc_layouts_close(&run->layouts);
    slc_store_close(&run->store);
}

static struct slc_cp_options group_options(const struct group_run *run, unsigned iterations)
{
    return (struct slc_cp_options){.rank = RANK,
                                   .iterations = iterations,
                                   .seed = 11,
                                   .deterministic = run->plan.request.deterministic,
                                   .parts = {.gpus = run->group, .layouts = &run->layouts}};
}

static enum slc_status decompose(struct group_run *run,
                                 const struct slc_cp_options *options,
                                 struct slc_cp_result *result,
                                 struct slc_error *err)
{
    return slc_cp_run(&run->store, run->stream, NULL, &run->plan, options, result, err);
}

/* Compares the plan for CPU devices with the work done here. */
static void check_shares(const struct group_run *run, const struct slc_cp_result *result)
{
    uint64_t nnz[SLC_MAX_DEVICES] = {0}, sent = 0, received = 0;

    for (unsigned n = 0; n < 3; n++) {
        struct slc_group_division shares;
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(slc_group_division_create(run->layouts.reader[run->plan.mode_layout[n]],
                                                run->plan.request.split, run->count, dims[n],
                                                slc_group_unit_rows(8 * sizeof(double), dims[n]),
                                                &shares, &err),
                      &err);
        for (unsigned d = 0; d < run->count; d++) {
            nnz[d] += shares.nnz[d];
        }
        slc_group_division_destroy(&shares);
    }
    CU_ASSERT_EQUAL(result->device_count, run->count);
    for (unsigned d = 0; d < run->count; d++) {
        struct slc_device_stats stats;

        run->device[d]->ops->stats(run->device[d], &stats);
        CU_ASSERT_EQUAL(result->devices[d].nnz, nnz[d] * result->iterations);
        CU_ASSERT(result->devices[d].copied_bytes > 0);
        sent += result->devices[d].sent_bytes;
        received += stats.bytes_from_devices;
        /* Factors are copied to each device once, and back from the first; outputs stay. */
        CU_ASSERT_EQUAL(fake_counts(run->device[d])->factors_written, 3);
        CU_ASSERT_EQUAL(fake_counts(run->device[d])->factors_read, d == 0 ? 3 : 0);
        CU_ASSERT_EQUAL(fake_counts(run->device[d])->outputs_read, 0);
    }
    CU_ASSERT_EQUAL(sent, received);
    CU_ASSERT_EQUAL(sent, (run->count - 1) * (40 + 3 + 700) * 64 * result->iterations);
}

static void test_factors(void)
{
    static const unsigned counts[] = {1, 2, 4};
    struct slc_plan_request plain = devices_request(RANK, 0, 2);
    struct slc_cp_result cpu;

    make_problem();
    devices_decompose(made.path, &plain, 3, &cpu);
    for (unsigned c = 0; c < 2 * SLC_COUNT(counts); c++) {
        const enum slc_split split = c % 2 == 0 ? SLC_SPLIT_PARTITIONS : SLC_SPLIT_NNZ;
        struct slc_plan_request request = group_request(counts[c / 2], split);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_options options;
        struct slc_cp_result result;
        struct group_run run;

        request.io = c == 5 ? SLC_IO_MMAP : SLC_IO_PREAD;
        request.deterministic = c >= 4;
        request.slots = 3;
        request.cache = c != 3;
        group_create(&run, counts[c / 2], PLENTY, 200);
        SLC_ASSERT_OK(group_start(&run, request, &err), &err);
        options = group_options(&run, 3);
        SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
        CU_ASSERT(devices_difference(&cpu, &result) <= 1e-8);
        CU_ASSERT_DOUBLE_EQUAL(result.fit, cpu.fit, 1e-12);
        check_shares(&run, &result);
        slc_cp_result_destroy(&result);
        group_close(&run);
    }
    slc_cp_result_destroy(&cpu);
}

/* Subtracts the MTTKRP from its output, nonzero by nonzero; returns the largest initial value. */
static double
subtract_mttkrp(const struct slc_matrix *factors, unsigned mode, struct slc_matrix *output)
{
    double largest = 0.0;

    for (uint64_t x = 0; x < made.tensor.nnz; x++) {
        const uint64_t hi = made.tensor.key_hi != NULL ? made.tensor.key_hi[x] : 0;
        uint64_t at[3];

        slc_key_decode(&made.tensor.keys, slc_key_join(made.tensor.key_lo[x], hi), at);
        for (uint32_t r = 0; r < RANK; r++) {
            double product = made.tensor.values[x];

            for (unsigned m = 0; m < 3; m++) {
                product *= m == mode ? 1.0 : slc_matrix_get(&factors[m], at[m], r);
            }
            largest = fmax(largest, fabs(slc_matrix_get(output, at[mode], r)));
            slc_matrix_set(output, at[mode], r, slc_matrix_get(output, at[mode], r) - product);
        }
    }
    return largest;
}

/* Every mode, by partitions and by equal shares: rows are complete at their owners. */
static void test_outputs(void)
{
    make_problem();
    for (unsigned n = 0; n < 6; n++) {
        const unsigned mode = n % 3, count = 2 + n % 2;
        struct slc_plan_request request =
            group_request(count, n < 3 ? SLC_SPLIT_PARTITIONS : SLC_SPLIT_NNZ);
        struct slc_matrix factors[3], output;
        struct slc_error err = SLC_ERROR_INIT;
        const struct slc_executor_pass pass = {.mode = mode};
        struct slc_executor_setup setup;
        struct slc_executor *executor;
        double largest, wrong = 0.0;
        struct group_run run;

        request.operation = SLC_OP_MTTKRP;
        request.mode = mode;
        group_create(&run, count, PLENTY, 100);
        SLC_ASSERT_OK(group_start(&run, request, &err), &err);
        for (unsigned m = 0; m < 3; m++) {
            SLC_ASSERT_OK(slc_matrix_create(&factors[m], SLC_F64, dims[m], RANK, &err), &err);
            for (uint64_t i = 0; i < dims[m] * RANK; i++) {
                slc_matrix_set(&factors[m], i / RANK, (uint32_t)(i % RANK),
                               1.0 + (double)(i % 7) / 8.0);
            }
        }
        SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, dims[mode], RANK, &err), &err);
        setup = (struct slc_executor_setup){.parts = {.gpus = run.group},
                                            .stream = run.stream,
                                            .plan = &run.plan,
                                            .factors = factors,
                                            .output = &output.buffer};
        SLC_ASSERT_OK(slc_executor_create(&setup, &executor, &err), &err);
        SLC_ASSERT_OK(executor->ops->load(executor, &err), &err);
        SLC_ASSERT_OK(executor->ops->mttkrp(executor, &pass, &err), &err);
        SLC_ASSERT_OK(executor->ops->read_output(executor, mode, &err), &err);
        slc_executor_destroy(executor);
        largest = subtract_mttkrp(factors, mode, &output);
        for (uint64_t i = 0; i < dims[mode] * RANK; i++) {
            wrong = fmax(wrong, fabs(slc_matrix_get(&output, i / RANK, (uint32_t)(i % RANK))));
        }
        CU_ASSERT(largest > 0.0 && wrong <= 1e-11 * largest);
        for (unsigned m = 0; m < 3; m++) {
            slc_matrix_destroy(&factors[m]);
        }
        slc_matrix_destroy(&output);
        group_close(&run);
    }
}

/* Any call of any device fails: the run ends with its message, and another run can begin. */
static void test_refusals(void)
{
    struct slc_plan_request request = group_request(3, SLC_SPLIT_PARTITIONS);
    struct slc_cp_options options;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct group_run run;

    make_problem();
    group_create(&run, 3, PLENTY, 0);
    SLC_ASSERT_OK(group_start(&run, request, &err), &err);
    options = group_options(&run, 2);
    for (unsigned d = 0; d < 3; d++) {
        enum slc_status status = SLC_ERR_SYSTEM;
        uint64_t k;

        for (k = 1; status != SLC_OK; k += slc_test_quick() ? 13 : 3) {
            slc_error_clear(&err);
            (void)fake_refuse(run.device[d], k);
            status = decompose(&run, &options, &result, &err);
            (void)fake_refuse(run.device[d], 0);
            if (status != SLC_OK) {
                SLC_ASSERT_FAILS(status, SLC_ERR_SYSTEM, &err, "was refused");
                /* Open the group again, because resident blocks may be lost. */
                group_stop(&run);
                slc_error_clear(&err);
                SLC_ASSERT_OK(group_start(&run, request, &err), &err);
                options = group_options(&run, 2);
            }
        }
        CU_ASSERT(k > 20);
        slc_cp_result_destroy(&result);
    }
    group_stop(&run);

    /* Calls of opening fail, too. */
    for (unsigned d = 0; d < 3; d++) {
        for (uint64_t k = 1; k <= 2; k++) {
            slc_error_clear(&err);
            (void)fake_refuse(run.device[d], k);
            SLC_ASSERT_FAILS(group_start(&run, request, &err), SLC_ERR_SYSTEM, &err, "was refused");
            (void)fake_refuse(run.device[d], 0);
            group_stop(&run);
        }
    }
    group_close(&run);
}

static void test_damage_and_stops(void)
{
    struct slc_cp_options options;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct group_run run;
    int stop = 1;

    make_problem();
    group_create(&run, 2, PLENTY, 50);
    SLC_ASSERT_OK(group_start(&run, group_request(2, SLC_SPLIT_NNZ), &err), &err);
    options = group_options(&run, 2);
    fake_damage(run.device[0], 0);
    SLC_ASSERT_FAILS(decompose(&run, &options, &result, &err), SLC_ERR_DAMAGED, &err, "contradict");
    CU_ASSERT_STRING_EQUAL(err.file, slc_reader_path(run.store.reader));
    slc_error_clear(&err);
    options.stop = &stop;
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
    CU_ASSERT_EQUAL(result.reason, SLC_STOP_SIGNAL);
    CU_ASSERT_EQUAL(result.iterations, 0);
    slc_cp_result_destroy(&result);
    group_close(&run);
}

/* The k-th allocation fails while a group is opened, for every k. */
static void test_allocations(void)
{
    struct slc_plan_request request = group_request(2, SLC_SPLIT_PARTITIONS);
    enum slc_status status = SLC_ERR_MEMORY;
    struct slc_error err = SLC_ERROR_INIT;
    struct group_run run;
    uint64_t k;

    make_problem();
    group_create(&run, 2, PLENTY, 0);
    SLC_ASSERT_OK(group_start(&run, request, &err), &err);
    for (k = 1; status != SLC_OK; k++) {
        slc_gpu_group_close(run.group);
        run.group = NULL;
        slc_error_clear(&err);
        /* Allocations of the devices themselves end the program and are not tested. */
        slc_fault_arm(SLC_FAULT_ALLOCATION, k < 12 ? k : 0);
        status = slc_gpu_group_open(&run.layouts, &run.plan, run.stream, &run.group, &err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_MEMORY);
    }
    CU_ASSERT_EQUAL(k, 13);
    group_close(&run);
}

/* The smallest memory decides; resident blocks are divided, and none is copied twice. */
static void test_memory(void)
{
    struct slc_plan_request request = group_request(3, SLC_SPLIT_NNZ);
    struct slc_cp_options options;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct group_run run;
    uint64_t least, blocks, copies = 0;

    make_problem();
    group_create(&run, 3, 1, 0);
    SLC_ASSERT_FAILS(group_start(&run, request, &err), SLC_ERR_BUDGET, &err,
                     "MiB of device memory or more");
    least = run.plan.gpu.minimum_bytes;
    group_close(&run);

    slc_error_clear(&err);
    group_create(&run, 3, least, 0);
    SLC_ASSERT_OK(group_start(&run, request, &err), &err);
    CU_ASSERT_EQUAL(run.plan.gpu.budget_bytes, least);
    CU_ASSERT_EQUAL(run.plan.gpu.kept_blocks, 0);
    group_close(&run);

    group_create(&run, 3, PLENTY, 0);
    SLC_ASSERT_OK(group_start(&run, request, &err), &err);
    blocks = slc_reader_info(run.layouts.reader[0])->block_count;
    CU_ASSERT_EQUAL(run.plan.gpu.kept_blocks, blocks);
    CU_ASSERT(run.plan.gpu.kept_bytes < run.plan.layouts[0].store_bytes / 2);
    options = group_options(&run, 2);
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
    for (unsigned d = 0; d < 3; d++) {
        for (uint64_t b = 0; b < blocks; b++) {
            copies += fake_counts(run.device[d])->copied[b];
        }
    }
    /* Equal shares of nonzeros may be unequal in bytes, but each device has space for its own. */
    CU_ASSERT_EQUAL(copies, blocks);
    slc_cp_result_destroy(&result);
    group_close(&run);
}

static void test_impossible(void)
{
    struct slc_plan_request request = group_request(2, SLC_SPLIT_PARTITIONS);
    struct slc_cp_options options;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct group_run run;

    make_problem();
    group_create(&run, 2, PLENTY, 0);
    request.layouts = SLC_LAYOUTS_BLCO;
    SLC_ASSERT_FAILS(group_start(&run, request, &err), SLC_ERR_USAGE, &err, "or the split 'nnz'");
    slc_error_clear(&err);
    request = group_request(SLC_MAX_DEVICES + 1, SLC_SPLIT_NNZ);
    SLC_ASSERT_FAILS(group_start(&run, request, &err), SLC_ERR_USAGE, &err, "the maximum is 64");
    slc_error_clear(&err);
    SLC_ASSERT_OK(group_start(&run, group_request(2, SLC_SPLIT_NNZ), &err), &err);
    options = group_options(&run, 1);
    options.parts.gpus = NULL;
    SLC_ASSERT_FAILS(decompose(&run, &options, &result, &err), SLC_ERR_USAGE, &err,
                     "the same devices");
    slc_error_clear(&err);
    run.plan.request.gpu_count = 0;
    SLC_ASSERT_FAILS(slc_gpu_group_open(&run.layouts, &run.plan, run.stream, &run.group, &err),
                     SLC_ERR_USAGE, &err, "several");
    group_close(&run);
    devices_store_destroy(&made);
}

static const struct slc_test tests[] = {
    {"factors of one device", test_factors},
    {"outputs of every mode", test_outputs},
    {"any call of any device is refused", test_refusals},
    {"damaged blocks and stops", test_damage_and_stops},
    {"no memory", test_allocations},
    {"memory of devices", test_memory},
    {"impossible requests", test_impossible},
};

SLC_SUITE(gpu_group)
{
    return slc_test_main("several devices", tests, SLC_COUNT(tests), argc, argv);
}
