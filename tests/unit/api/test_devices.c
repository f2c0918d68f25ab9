/* Devices through the public API, against the CPU: only sluice/sluice.h and a shared library, with
 * an emulated GPU (SLC_EMULATED) or none. */
#include "api_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 40, COLUMNS = 9, TUBES = 7, RANK = 3, NNZ = 800 };
static const uint64_t dims[3] = {ROWS, COLUMNS, TUBES};

/* The last log message. */
static char logged[1024];

static void keep_line(void *context, enum sluice_log_level level, const char *message)
{
    (void)context;
    (void)level;
    snprintf(logged, sizeof logged, "%s", message);
}

/* Path of `name` in a folder shared by all tests. */
static const char *place(const char *name)
{
    static char folder[256], path[512];

    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s", slc_test_folder());
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static struct sluice_store *made_store(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_generate_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = NULL;

    options.output.overwrite = 1;
    options.rank = RANK;
    API_OK(sluice_generate(place("made.slc"), 3, dims, NNZ, &options, &err), &err);
    API_OK(sluice_store_open(place("made.slc"), &store, &err), &err);
    return store;
}

static struct sluice_device_options on(enum sluice_device_kind kind, enum sluice_split split)
{
    const struct sluice_device_options device = {
        .struct_bytes = sizeof device, .kind = kind, .split = split, .split_fraction = 0.5};

    return device;
}

static void fill(double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        numbers[i] = cos((double)i);
    }
}

static double factors[3][ROWS * RANK];
static uint32_t threads = 2;
static struct sluice_device_plan gpu, less_gpu;

static enum sluice_status mttkrp(const struct sluice_store *store,
                                 const struct sluice_device_options *device,
                                 double *output,
                                 struct sluice_error *err)
{
    const struct sluice_mttkrp_options options = {
        .struct_bytes = sizeof options, .run = {.threads = threads}, .compute = {.device = device}};
    const double *given[3];

    for (unsigned n = 0; n < 3; n++) {
        fill(factors[n], dims[n] * RANK);
        given[n] = factors[n];
    }
    return sluice_mttkrp(store, 0, RANK, given, output, ROWS * RANK, &options, err);
}

static enum sluice_status mttkrp_plan(const struct sluice_store *store,
                                      const struct sluice_device_options *device,
                                      struct sluice_device_plan *filled,
                                      struct sluice_error *err)
{
    struct sluice_device_options known = *device;
    const struct sluice_mttkrp_options options = {
        .struct_bytes = sizeof options, .run = {.threads = threads}, .compute = {.device = &known}};
    struct sluice_plan plan = {.struct_bytes = sizeof plan};

    FRESH(*filled);
    known.plan = filled;
    return sluice_mttkrp_plan(store, 0, RANK, &options, &plan, err);
}

static enum sluice_status cpd_plan(const struct sluice_store *store,
                                   const struct sluice_device_options *device,
                                   struct sluice_plan *plan,
                                   struct sluice_device_plan *filled,
                                   struct sluice_error *err)
{
    struct sluice_device_options known = *device;
    const struct sluice_cpd_options options = {
        .struct_bytes = sizeof options, .run = {.threads = threads}, .compute = {.device = &known}};

    FRESH(*plan);
    FRESH(*filled);
    known.plan = filled;
    return sluice_cpd_plan(store, RANK, &options, plan, err);
}

static enum sluice_status ttv(const struct sluice_store *store,
                              const struct sluice_device_options *device,
                              struct sluice_ttv_report *report,
                              struct sluice_error *err)
{
    const struct sluice_ttv_options options = {
        .struct_bytes = sizeof options, .run = {.threads = threads}, .compute = {.device = device}};
    const double *vectors[3] = {factors[0], factors[1], factors[2]};

    for (unsigned n = 0; n < 3; n++) {
        fill(factors[n], dims[n]);
    }
    report->struct_bytes = sizeof *report;
    return sluice_ttv(store, vectors, NULL, &options, report, err);
}

static enum sluice_status ttm(const struct sluice_store *store,
                              const struct sluice_device_options *device,
                              struct sluice_ttm_report *report,
                              struct sluice_error *err)
{
    const struct sluice_ttm_options options = {
        .struct_bytes = sizeof options, .run = {.threads = threads}, .compute = {.device = device}};

    fill(factors[1], (size_t)COLUMNS * RANK);
    report->struct_bytes = sizeof *report;
    return sluice_ttm(store, 1, RANK, factors[1], place("product"), &options, report, err);
}

static struct sluice_model_info decompose(const struct sluice_store *store,
                                          const struct sluice_device_options *device)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    const struct sluice_cpd_options options = {.struct_bytes = sizeof options,
                                               .run = {.threads = threads},
                                               .compute = {.device = device},
                                               .iterations = 3,
                                               .tolerance = -1};
    struct sluice_model *model = NULL;
    struct sluice_model_info info;

    API_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    info = api_info(model);
    sluice_model_destroy(model);
    return info;
}

static void expect_same(const double *a, const double *b, size_t count)
{
    double most = 0;

    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
    }
    CU_ASSERT(most < 1e-11);
}

/* CPU devices divide equal shares of nonzeros; there are no partitions to divide. */
static void divides_between_cpus(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_device_options options = on(SLUICE_DEVICE_CPU, SLUICE_SPLIT_DEFAULT);
    static double alone[ROWS * RANK], divided[ROWS * RANK];

    API_OK(mttkrp(store, &options, alone, &err), &err);
    options.count = 2;
    threads = 1;
    REFUSED(mttkrp(store, &options, divided, &err), SLUICE_ERR_USAGE, "no layout sorted by mode 1");
    options.split = SLUICE_SPLIT_NNZ;
    API_OK(mttkrp_plan(store, &options, &gpu, &err), &err);
    CU_ASSERT(gpu.count == 2 && gpu.name[0] == '\0');
    API_OK(mttkrp(store, &options, divided, &err), &err);
    expect_same(alone, divided, (size_t)ROWS * RANK);
    sluice_store_close(store);
}

static void rejects_conflicting_options(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_device_options options = on((enum sluice_device_kind)3, SLUICE_SPLIT_DEFAULT);
    struct sluice_ttv_report report;
    static double output[ROWS * RANK];

    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_USAGE, "kind 3");
    options = on(SLUICE_DEVICE_CPU, (enum sluice_split)6);
    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_USAGE, "split 6");
    options = on(SLUICE_DEVICE_CPU, SLUICE_SPLIT_ADAPTIVE);
    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_USAGE, "a GPU");
    options = on(SLUICE_DEVICE_CPU, SLUICE_SPLIT_DEFAULT);
    options.memory_bytes = 1 << 20;
    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_USAGE, "a limit of device memory");
    options = on(SLUICE_DEVICE_GPU, SLUICE_SPLIT_DEFAULT);
    options.count = SLUICE_MAX_DEVICES + 1;
    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_USAGE, "count is 17");
    options.count = 2;
    REFUSED(ttv(store, &options, &report, &err), SLUICE_ERR_USAGE, "count is 2");
    sluice_store_close(store);
}

/* Plans for a GPU by the name of its chip need no GPU; computing with the name is an error. */
static void plans_for_a_chip(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_device_options options = on(SLUICE_DEVICE_GPU, SLUICE_SPLIT_DEFAULT);
    struct sluice_plan plan, less;
    struct sluice_ttv_report vectors;
    static double output[ROWS * RANK];

    options.chip = "h200";
    API_OK(cpd_plan(store, &options, &plan, &gpu, &err), &err);
    CU_ASSERT_STRING_EQUAL(gpu.name, "h200");
    CU_ASSERT(gpu.described == 1 && gpu.multiprocessors == 132);
    CU_ASSERT_EQUAL(gpu.budget_bytes, UINT64_C(141000000000) / 10 * 9);
    CU_ASSERT(gpu.resident_blocks > 0 && gpu.resident_bytes > 0 && gpu.copied_bytes == 0 &&
              gpu.slot_bytes > 0);
    CU_ASSERT(gpu.host_bytes > 0 && gpu.host_bytes < plan.total_bytes);
    options.memory_bytes = gpu.minimum_bytes;
    API_OK(cpd_plan(store, &options, &less, &less_gpu, &err), &err);
    CU_ASSERT(less_gpu.budget_bytes == options.memory_bytes && less_gpu.resident_blocks == 0 &&
              less_gpu.copied_bytes == less.iteration_bytes);
    options.memory_bytes = 1 << 10;
    CU_ASSERT_EQUAL(mttkrp_plan(store, &options, &gpu, &err), SLUICE_ERR_BUDGET);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "MiB of device memory or more"));
    CU_ASSERT_STRING_EQUAL(err.field, "device->memory_bytes");
    api_clear(&err);
    options.memory_bytes = UINT64_C(1) << 40;
    CU_ASSERT_EQUAL(cpd_plan(store, &options, &plan, &gpu, &err), SLUICE_ERR_USAGE);
    CU_ASSERT(strstr(err.message, "h200 has 141 GB") != NULL && strstr(err.message, "--") == NULL);
    api_clear(&err);
    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_USAGE, "describes a GPU to plan for");
    REFUSED(ttv(store, &options, &vectors, &err), SLUICE_ERR_USAGE, "describes a GPU to plan for");
    options.chip = "abacus";
    CU_ASSERT_EQUAL(cpd_plan(store, &options, &plan, &gpu, &err), SLUICE_ERR_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "unknown device 'abacus': use one of a100, "));
    sluice_store_close(store);
}

#ifdef SLC_EMULATED
/* MTTKRP on the GPU alone, on GPU and CPU, and on the GPU named twice, each with its plan. */
static void multiplies_by_a_gpu(void)
{
    static const enum sluice_split splits[] = {SLUICE_SPLIT_DEFAULT, SLUICE_SPLIT_STATIC,
                                               SLUICE_SPLIT_NNZ};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_device_options options = on(SLUICE_DEVICE_CPU, SLUICE_SPLIT_DEFAULT);
    static double alone[ROWS * RANK], output[ROWS * RANK];

    API_OK(mttkrp(store, &options, alone, &err), &err);
    for (unsigned k = 0; k < 3; k++) {
        options = on(SLUICE_DEVICE_GPU, splits[k]);
        options.memory_bytes = UINT64_C(256) << 20;
        options.count = k == 2 ? 2 : 0;
        API_OK(mttkrp_plan(store, &options, &gpu, &err), &err);
        CU_ASSERT(gpu.name[0] != '\0' && gpu.streams > 0);
        CU_ASSERT(gpu.described == 0 && gpu.multiprocessors > 0);
        CU_ASSERT_EQUAL(gpu.count, options.count);
        CU_ASSERT(gpu.minimum_bytes <= gpu.total_bytes && gpu.total_bytes <= gpu.budget_bytes &&
                  gpu.budget_bytes <= options.memory_bytes);
        memset(output, 0, sizeof output);
        API_OK(mttkrp(store, &options, output, &err), &err);
        expect_same(alone, output, (size_t)ROWS * RANK);
    }
    options = on(SLUICE_DEVICE_GPU, SLUICE_SPLIT_DEFAULT);
    options.memory_bytes = 1;
    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_BUDGET, "");
    sluice_store_close(store);
}

static void decomposes_on_a_gpu(void)
{
    struct sluice_store *store = made_store();
    const struct sluice_device_options cpu = on(SLUICE_DEVICE_CPU, SLUICE_SPLIT_DEFAULT);
    const struct sluice_device_options automatic = on(SLUICE_DEVICE_AUTO, SLUICE_SPLIT_DEFAULT);
    struct sluice_model_info by_cpu, by_gpu;

    logged[0] = '\0';
    sluice_log_to(keep_line, NULL);
    by_cpu = decompose(store, &cpu);
    by_gpu = decompose(store, &automatic);
    CU_ASSERT_EQUAL(logged[0], '\0');
    CU_ASSERT_EQUAL(by_cpu.device_nnz, 0);
    CU_ASSERT_EQUAL(by_gpu.device_nnz, 9 * NNZ);
    CU_ASSERT_DOUBLE_EQUAL(by_gpu.fit, by_cpu.fit, 1e-9);
    sluice_log_to(NULL, NULL);
    sluice_store_close(store);
}

/* A GPU with enough memory computes products; otherwise the CPU does, unless a GPU is required. */
static void forms_products_on_a_gpu(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_device_options options = on(SLUICE_DEVICE_CPU, SLUICE_SPLIT_DEFAULT);
    struct sluice_ttv_report vectors_cpu, vectors;
    struct sluice_ttm_report matrix_cpu, matrix;

    API_OK(ttv(store, &options, &vectors_cpu, &err), &err);
    API_OK(ttm(store, &options, &matrix_cpu, &err), &err);
    CU_ASSERT(vectors_cpu.device_nnz == 0 && matrix_cpu.device_nnz == 0);
    options = on(SLUICE_DEVICE_GPU, SLUICE_SPLIT_DEFAULT);
    API_OK(ttv(store, &options, &vectors, &err), &err);
    API_OK(ttm(store, &options, &matrix, &err), &err);
    CU_ASSERT(vectors.device_nnz == NNZ && matrix.device_nnz == NNZ);
    CU_ASSERT_DOUBLE_EQUAL(vectors.number, vectors_cpu.number, 1e-9);
    CU_ASSERT_EQUAL(matrix.fibers, matrix_cpu.fibers);
    options.memory_bytes = 1;
    REFUSED(ttv(store, &options, &vectors, &err), SLUICE_ERR_BUDGET,
            "MiB of device memory or more");
    REFUSED(ttm(store, &options, &matrix, &err), SLUICE_ERR_BUDGET, "MiB of device memory or more");
    options.kind = SLUICE_DEVICE_AUTO;
    sluice_log_to(keep_line, NULL);
    for (unsigned k = 0; k < 2; k++) {
        logged[0] = '\0';
        if (k == 0) {
            API_OK(ttv(store, &options, &vectors, &err), &err);
        } else {
            API_OK(ttm(store, &options, &matrix, &err), &err);
        }
        CU_ASSERT_PTR_NOT_NULL(strstr(logged, "GPU not used"));
    }
    CU_ASSERT(vectors.device_nnz == 0 && matrix.device_nnz == 0);
    sluice_log_to(NULL, NULL);
    sluice_store_close(store);
}
#else
/* Without a GPU: an explicit request fails with the reason; otherwise the CPU is used, with a
 * log message. */
static void does_without_a_gpu(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_device_options options = on(SLUICE_DEVICE_GPU, SLUICE_SPLIT_DEFAULT);
    struct sluice_ttv_report vectors;
    struct sluice_ttm_report matrix;
    struct sluice_model_info model;
    struct sluice_plan plan;
    static double output[ROWS * RANK];

    CU_ASSERT_EQUAL(cpd_plan(store, &options, &plan, &gpu, &err), SLUICE_ERR_SYSTEM);
    CU_ASSERT(strstr(err.message, "give its name or its memory size") != NULL &&
              strcmp(err.field, "device->chip") == 0);
    api_clear(&err);
    options.memory_bytes = UINT64_C(80000000000);
    API_OK(cpd_plan(store, &options, &plan, &gpu, &err), &err);
    CU_ASSERT(gpu.described == 1 && strcmp(gpu.name, "h100") == 0 &&
              gpu.budget_bytes == options.memory_bytes);
    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_SYSTEM, "device gpu");
    options.memory_bytes = 0;
    REFUSED(mttkrp(store, &options, output, &err), SLUICE_ERR_SYSTEM, "device gpu");
    REFUSED(ttv(store, &options, &vectors, &err), SLUICE_ERR_SYSTEM, "device gpu");
    REFUSED(ttm(store, &options, &matrix, &err), SLUICE_ERR_SYSTEM, "device gpu");
    options.kind = SLUICE_DEVICE_AUTO;
    sluice_log_to(keep_line, NULL);
    for (unsigned k = 0; k < 4; k++) {
        logged[0] = '\0';
        if (k == 0) {
            API_OK(mttkrp(store, &options, output, &err), &err);
        } else if (k == 1) {
            API_OK(ttv(store, &options, &vectors, &err), &err);
        } else if (k == 2) {
            API_OK(ttm(store, &options, &matrix, &err), &err);
        } else {
            model = decompose(store, &options);
        }
        CU_ASSERT_PTR_NOT_NULL(strstr(logged, "GPU not used: "));
    }
    CU_ASSERT(vectors.device_nnz == 0 && matrix.device_nnz == 0 && model.device_nnz == 0);
    sluice_log_to(NULL, NULL);
    sluice_store_close(store);
}
#endif

SLC_SUITE(devices)
{
    static const struct slc_test tests[] = {
        {"devices of the CPU divide the work", divides_between_cpus},
        {"rejects options that conflict", rejects_conflicting_options},
        {"plans for a chip that is not here", plans_for_a_chip},
#ifdef SLC_EMULATED
        {"MTTKRP by a GPU, with the CPU, by two", multiplies_by_a_gpu},
        {"decomposes on a GPU", decomposes_on_a_gpu},
        {"products by a GPU", forms_products_on_a_gpu},
#else
        {"does without a GPU", does_without_a_gpu},
#endif
    };

    return slc_test_main("api devices", tests, SLC_COUNT(tests), argc, argv);
}
