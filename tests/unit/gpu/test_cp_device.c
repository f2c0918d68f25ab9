/* CP-ALS from disk through the emulated device, as the command runs it: the CPU's fit, no factor
 * copied to the host before the end, resident blocks copied once, and the same bits for any order
 * of events if requested. Failing calls of the runtime end the run, and nothing is left on the
 * device. */
#include "cp_fixture.h"
#include "emulate.h"
#include "slc_test.h"

#include "cpu/cpu.h"
#include "engine/executor/gpu_executor.h"
#include "engine/planning/planning.h"
#include "gpu/gpu.h"

#include <math.h>
#include <string.h>

enum { RANK = 5, DRAWS = 12000, ITERATIONS = 3 };

/* A store decomposed on the emulated device. */
struct run {
    struct slc_store store;
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_device *device;
    struct slc_backend *backend; /* backend of the CPU if it shares the work, or NULL */
    bool open;
    uint64_t factor_bytes_seen; /* bytes of factors copied to the host by the end of an iteration */
};

static struct fixture_tensor tensor;
static char path[512];

static void make_problem(void)
{
    static const uint64_t dims[3] = {220, 60, 35};

    if (path[0] == '\0') {
        fixture_random(&tensor, 3, dims, DRAWS, slc_test_seed());
        for (uint64_t i = 0; i < tensor.nnz; i++) {
            tensor.values[i] = 1.0 + floor(8.0 * tensor.values[i]);
        }
        for (unsigned t = 0; t < SLC_COUNT(tensor.tile_nnz); t++) {
            tensor.tile_nnz[t] = 700;
        }
        fixture_store(&tensor, slc_test_folder(), "gpu", SLC_CODEC_PACKED, 4096, path);
    }
}

static void close_run(struct run *run)
{
    if (run->open) {
        slc_gpu_executor_close(run->device, run->stream);
    }
    slc_stream_close(run->stream);
    if (run->backend != NULL) {
        run->backend->ops->destroy(run->backend);
    }
    if (run->device != NULL) {
        run->device->ops->destroy(run->device);
    }
    slc_store_close(&run->store);
    memset(run, 0, sizeof *run);
}

/* Opens a run with `device_bytes` of device memory; 0: the smallest sufficient number. */
static enum slc_status open_run(struct run *run,
                                const struct slc_plan_request *request,
                                uint64_t device_bytes,
                                struct slc_error *err)
{
    const struct slc_gpu_options options = {0, device_bytes != 0 ? device_bytes : 1};
    struct slc_plan_request wanted = *request;
    enum slc_status status;

    memset(run, 0, sizeof *run);
    status = slc_store_open(NULL, path, &run->store, err);

    if (status == SLC_OK) {
        run->layouts = slc_layouts_one(run->store.reader);
        status = slc_gpu_create(&options, &run->device, err);
    }
    wanted.gpu = run->device;
    if (status == SLC_OK && device_bytes == 0) {
        CU_ASSERT_EQUAL(slc_plan_make(&run->layouts, &wanted, &run->plan, NULL), SLC_ERR_BUDGET);
        device_bytes = run->plan.gpu.minimum_bytes;
        close_run(run);
        return open_run(run, request, device_bytes, err);
    }
    if (status == SLC_OK) {
        status = slc_plan_make(&run->layouts, &wanted, &run->plan, err);
    }
    if (status == SLC_OK) {
        status = slc_stream_open(NULL, &run->layouts, &run->plan, &run->stream, err);
    }
    if (status == SLC_OK) {
        status = slc_gpu_executor_open(run->device, &run->layouts, &run->plan, run->stream, err);
        run->open = status == SLC_OK;
    }
    if (status == SLC_OK && request->hybrid.kind != SLC_HYBRID_NONE) {
        status = slc_cpu_backend_create(&run->backend, err);
    }
    return status;
}

static void look_at_factors(void *context, const struct slc_cp_iteration *iteration)
{
    struct run *run = context;
    struct slc_device_stats stats;

    (void)iteration;
    run->device->ops->stats(run->device, &stats);
    run->factor_bytes_seen = stats.factor_bytes_to_host;
}

static enum slc_status decompose(struct run *run,
                                 const struct slc_plan_request *request,
                                 struct slc_cp_result *result,
                                 struct slc_error *err)
{
    struct slc_cp_options options = fixture_options(RANK, ITERATIONS);

    options.seed = 3;
    options.deterministic = request->deterministic;
    options.parts.gpu = run->device;
    options.iteration = look_at_factors;
    options.context = run;
    return slc_cp_run(&run->store, run->stream, run->backend, &run->plan, &options, result, err);
}

static struct slc_plan_request request_of(unsigned streams)
{
    struct slc_plan_request request = fixture_request(RANK);

    request.streams = streams;
    request.slots = 4;
    return request;
}

/* Computes the result of the CPU alone. */
static void run_cpu(const struct slc_plan_request *request, struct slc_cp_result *result)
{
    struct slc_cp_options options = fixture_options(RANK, ITERATIONS);
    struct slc_plan_request alone = *request;
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_run run;

    options.seed = 3;
    options.deterministic = request->deterministic;
    alone.hybrid.kind = SLC_HYBRID_NONE;
    SLC_ASSERT_OK(fixture_open(&run, path, &alone, &err), &err);
    SLC_ASSERT_OK(
        slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, result, &err), &err);
    fixture_close(&run);
}

static double fit_of_cpu(const struct slc_plan_request *request)
{
    struct slc_cp_result result;
    double fit;

    run_cpu(request, &result);
    fit = result.fit;
    slc_cp_result_destroy(&result);
    return fit;
}

/* Memory in which a third of the blocks are resident. */
static uint64_t third(const struct slc_plan_request *request)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct run run;
    uint64_t bytes;

    SLC_ASSERT_OK(open_run(&run, request, 0, &err), &err);
    bytes = run.plan.gpu.minimum_bytes;
    for (;;) {
        close_run(&run);
        bytes += 8192;
        SLC_ASSERT_OK(open_run(&run, request, bytes, &err), &err);
        if (run.plan.layouts[0].resident_bytes * 3 >= run.plan.layouts[0].store_bytes) {
            break;
        }
    }
    close_run(&run);
    return bytes;
}

/* Checks the copies over all passes, and that no factor was copied back before the end. */
static void check_copies(const struct run *run, const struct slc_cp_result *result)
{
    const struct slc_layout_info *info = slc_reader_info(run->store.reader);
    const struct slc_device_stats *stats = &result->gpu;
    const uint64_t passes = (uint64_t)result->iterations * info->order;
    uint64_t all = 0, stay = 0, factor_bytes = 0;

    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(run->store.reader, b, &entry);
        all += entry.bytes;
        stay += slc_plan_keeps(run->plan.layouts[0].resident_blocks, info->block_count, b)
                    ? entry.bytes
                    : 0;
    }
    CU_ASSERT(stay > 0 && stay < all);
    CU_ASSERT_EQUAL(stats->blocks, passes * info->block_count);
    CU_ASSERT_EQUAL(stats->nnz, passes * info->nnz);
    CU_ASSERT_EQUAL(stats->block_bytes, stay + passes * (all - stay));
    CU_ASSERT_EQUAL(stats->resident_bytes, (passes - 1) * stay);
    for (unsigned n = 0; n < info->order; n++) {
        factor_bytes += info->dims[n] * RANK * slc_value_bytes(result->factors[n].type);
    }
    CU_ASSERT_EQUAL(run->factor_bytes_seen, 0);
    CU_ASSERT(stats->factor_bytes_to_host >= factor_bytes);
    CU_ASSERT(stats->factor_bytes_to_host < 2 * factor_bytes);
}

static void test_fit(void)
{
    const struct slc_plan_request request = request_of(3);
    double want;

    make_problem();
    want = fit_of_cpu(&request);
    for (unsigned seed = 1; seed <= 3; seed++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_result result;
        struct run run;

        emulate(seed);
        SLC_ASSERT_OK(open_run(&run, &request, third(&request), &err), &err);
        CU_ASSERT_EQUAL(run.plan.gpu.streams, 3);
        SLC_ASSERT_OK(decompose(&run, &request, &result, &err), &err);
        CU_ASSERT_DOUBLE_EQUAL(result.fit, want, 1e-9);
        check_copies(&run, &result);
        slc_cp_result_destroy(&result);
        close_run(&run);
        emulate_end();
        if (slc_test_quick()) {
            break;
        }
    }
}

/* Returns the distance of two factors, relative in norm. */
static double apart(const struct slc_matrix *a, const struct slc_matrix *b)
{
    double difference = 0, norm = 0;

    for (uint64_t i = 0; i < a->rows; i++) {
        for (uint32_t r = 0; r < RANK; r++) {
            const double value = slc_matrix_get(b, i, r);

            difference += pow(slc_matrix_get(a, i, r) - value, 2);
            norm += value * value;
        }
    }
    return sqrt(difference / norm);
}

/* A run on the CPU and the device together has the result of a run on the CPU alone. */
static void check_shared(const struct slc_hybrid_wish *wish, unsigned seed)
{
    struct slc_plan_request request = request_of(2);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result cpu, result;
    struct run run;

    request.hybrid = *wish;
    request.cache = seed % 2 == 0;
    run_cpu(&request, &cpu);
    emulate(seed);
    SLC_ASSERT_OK(open_run(&run, &request, request.cache ? UINT64_C(1) << 26 : 0, &err), &err);
    SLC_ASSERT_OK(decompose(&run, &request, &result, &err), &err);
    CU_ASSERT_DOUBLE_EQUAL(result.fit, cpu.fit, 1e-9);
    for (unsigned n = 0; n < result.order; n++) {
        const struct slc_hybrid *share = &result.hybrid[n];

        CU_ASSERT(apart(&result.factors[n], &cpu.factors[n]) <= 1e-8);
        CU_ASSERT_EQUAL(share->parts[0].nnz + share->parts[1].nnz, ITERATIONS * tensor.nnz);
        CU_ASSERT(share->parts[0].nnz > 0 && share->parts[1].nnz > 0);
        CU_ASSERT(slc_hybrid_rates_fraction(&share->rates) > 0);
        CU_ASSERT(slc_hybrid_rates_fraction(&share->rates) < 1);
    }
    /* Factors are copied back as they are updated. */
    CU_ASSERT(run.factor_bytes_seen > 0);
    slc_cp_result_destroy(&result);
    slc_cp_result_destroy(&cpu);
    close_run(&run);
    emulate_end();
}

static void test_shared(void)
{
    static const struct slc_hybrid_wish wishes[] = {
        {SLC_HYBRID_STATIC, 0.4}, {SLC_HYBRID_ADAPTIVE, 0}, {SLC_HYBRID_QUEUE, 0}};

    make_problem();
    for (unsigned w = slc_test_threads_only() ? 2 : 0; w < SLC_COUNT(wishes); w++) {
        check_shared(&wishes[w], 30 + w);
    }
}

static void test_f32(void)
{
    struct slc_plan_request request = request_of(2);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct run run;
    double want;

    make_problem();
    request.precision = SLC_F32;
    want = fit_of_cpu(&request);
    emulate(4);
    SLC_ASSERT_OK(open_run(&run, &request, 0, &err), &err);
    SLC_ASSERT_OK(decompose(&run, &request, &result, &err), &err);
    CU_ASSERT_DOUBLE_EQUAL(result.fit, want, 1e-5);
    slc_cp_result_destroy(&result);
    close_run(&run);
    emulate_end();
}

static bool same_bits(const struct slc_cp_result *a, const struct slc_cp_result *b)
{
    bool same = a->fit == b->fit;

    for (unsigned n = 0; n < a->order; n++) {
        same = same && memcmp(a->factors[n].buffer.data, b->factors[n].buffer.data,
                              a->factors[n].rows * a->factors[n].pitch * sizeof(double)) == 0;
    }
    return same;
}

/* The same bits for any streams, resident blocks, block order and thread order. */
static void test_deterministic(void)
{
    static const unsigned streams[] = {1, 4, 2};
    struct slc_cp_result first, result;

    make_problem();
    for (unsigned i = 0; i < (slc_test_threads_only() ? 2 : SLC_COUNT(streams)); i++) {
        struct slc_plan_request request = request_of(streams[i]);
        struct slc_error err = SLC_ERROR_INIT;
        struct run run;

        request.deterministic = true;
        request.schedule = i == 0 ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
        request.threads = 1 + i;
        emulate(10 + i);
        SLC_ASSERT_OK(open_run(&run, &request, i == 1 ? UINT64_C(1) << 26 : 0, &err), &err);
        SLC_ASSERT_OK(decompose(&run, &request, i == 0 ? &first : &result, &err), &err);
        if (i == 0) {
            CU_ASSERT_DOUBLE_EQUAL(first.fit, fit_of_cpu(&request), 1e-9);
        } else {
            CU_ASSERT(same_bits(&first, &result));
            slc_cp_result_destroy(&result);
        }
        close_run(&run);
        emulate_end();
    }
    slc_cp_result_destroy(&first);
}

/* A store whose stated sum of squares is too small: fixed-point sums could wrap. A slight
 * difference is rounding. */
static void test_false_squares(void)
{
    static const double lies[] = {0x1p-40, 1 - 1e-9};
    char sound_path[512];

    make_problem();
    memcpy(sound_path, path, sizeof path);
    for (unsigned i = 0; i < SLC_COUNT(lies); i++) {
        struct slc_plan_request request = request_of(2);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_result result;
        struct run run;

        tensor.lie = lies[i];
        fixture_store(&tensor, slc_test_folder(), i == 0 ? "lies" : "rounds", SLC_CODEC_PACKED,
                      4096, path);
        request.deterministic = true;
        emulate(30);
        SLC_ASSERT_OK(open_run(&run, &request, 0, &err), &err);
        if (i == 0) {
            SLC_ASSERT_FAILS(decompose(&run, &request, &result, &err), SLC_ERR_DAMAGED, &err,
                             "sum of squares in the header is");
            CU_ASSERT_STRING_EQUAL(err.file, slc_reader_path(run.store.reader));
        } else {
            SLC_ASSERT_OK(decompose(&run, &request, &result, &err), &err);
            slc_cp_result_destroy(&result);
        }
        close_run(&run);
        emulate_end();
    }
    tensor.lie = 0;
    memcpy(path, sound_path, sizeof path);
}

/* Failing calls of the runtime at some points of a run. */
static void test_refusals(void)
{
    const struct slc_plan_request request = request_of(2);
    unsigned long long calls, step;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct run run;

    make_problem();
    emulate(20);
    SLC_ASSERT_OK(open_run(&run, &request, 0, &err), &err);
    emulate_refuse(0);
    SLC_ASSERT_OK(decompose(&run, &request, &result, &err), &err);
    calls = emulate_refusable();
    slc_cp_result_destroy(&result);
    close_run(&run);
    emulate_end();
    step = calls / (slc_test_quick() ? 4 : 12);
    for (unsigned long long k = 1; k < calls / 2; k += step) {
        emulate(20);
        slc_error_clear(&err);
        SLC_ASSERT_OK(open_run(&run, &request, 0, &err), &err);
        emulate_refuse(k);
        SLC_ASSERT_FAILS(decompose(&run, &request, &result, &err), SLC_ERR_SYSTEM, &err, NULL);
        emulate_refuse(0);
        close_run(&run);
        emulate_end();
    }
    fixture_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"the CPU's fit, a third of the tensor on the device", test_fit},
    {"the CPU and the device together", test_shared},
    {"f32", test_f32},
    {"deterministic runs", test_deterministic},
    {"a false sum of squares", test_false_squares},
    {"calls of the runtime fail", test_refusals},
};

SLC_SUITE(cp_device)
{
    return slc_test_main("gpu: cp by a device", tests, SLC_COUNT(tests), argc, argv);
}
