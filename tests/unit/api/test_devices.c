/*
 * Devices by the public API, against the CPU: nothing but sluice/sluice.h and a shared library,
 * with a GPU that is emulated (SLC_EMULATED) or with none.
 */
#include "slc_test.h"

#include <sluice/sluice.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 40, COLUMNS = 9, TUBES = 7, RANK = 3, NNZ = 800 };
static const uint64_t dims[3] = {ROWS, COLUMNS, TUBES};

/* What was logged last. */
static char logged[1024];

static void keep_line(void *context, enum sluice_log_level level, const char *message)
{
    (void)context;
    (void)level;
    snprintf(logged, sizeof logged, "%s", message);
}

/* Number `name` in a folder that all tests share. */
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
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_generate_options options;
    struct sluice_store *store = NULL;

    sluice_generate_options_init(&options, sizeof options);
    options.overwrite = 1;
    options.rank = RANK;
    SLC_ASSERT_OK(sluice_generate(place("made.slc"), 3, dims, NNZ, &options, &err), &err);
    SLC_ASSERT_OK(sluice_store_open(place("made.slc"), &store, &err), &err);
    return store;
}

static struct sluice_compute_options on(enum sluice_device device, const char *split)
{
    struct sluice_compute_options options;

    sluice_compute_options_init(&options, sizeof options);
    options.device = device;
    options.split = split;
    options.threads = 2;
    return options;
}

static void fill(double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        numbers[i] = cos((double)i);
    }
}

/* A call that fails; `err` is fresh again. */
#define REFUSED(call, want, part)                                                                  \
    do {                                                                                           \
        SLC_ASSERT_FAILS(call, want, &err, part);                                                  \
        err = (struct slc_error)SLC_ERROR_INIT;                                                    \
    } while (0)

static double factors[3][ROWS * RANK];

static enum slc_status mttkrp(const struct sluice_store *store,
                              const struct sluice_compute_options *options,
                              double *output,
                              struct slc_error *err)
{
    const double *given[3];

    for (unsigned n = 0; n < 3; n++) {
        fill(factors[n], dims[n] * RANK);
        given[n] = factors[n];
    }
    return sluice_mttkrp(store, 0, RANK, given, output, options, err);
}

static enum slc_status ttv(const struct sluice_store *store,
                           const struct sluice_compute_options *compute,
                           struct sluice_ttv_report *report,
                           struct slc_error *err)
{
    const double *vectors[3] = {factors[0], factors[1], factors[2]};
    struct sluice_ttv_options options;

    for (unsigned n = 0; n < 3; n++) {
        fill(factors[n], dims[n]);
    }
    sluice_ttv_options_init(&options, sizeof options);
    options.compute = compute;
    report->struct_bytes = sizeof *report;
    return sluice_ttv(store, vectors, NULL, &options, report, err);
}

static enum slc_status ttm(const struct sluice_store *store,
                           const struct sluice_compute_options *compute,
                           struct sluice_ttm_report *report,
                           struct slc_error *err)
{
    struct sluice_ttm_options options;

    fill(factors[1], (size_t)COLUMNS * RANK);
    sluice_ttm_options_init(&options, sizeof options);
    options.compute = compute;
    report->struct_bytes = sizeof *report;
    return sluice_ttm(store, 1, RANK, factors[1], place("product"), &options, report, err);
}

static void decompose(const struct sluice_store *store,
                      const struct sluice_compute_options *compute,
                      struct sluice_cpd_report *report)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_cpd *model = NULL;

    sluice_cpd_options_init(&options, sizeof options);
    options.iterations = 3;
    options.tolerance = 0;
    options.compute = compute;
    report->struct_bytes = sizeof *report;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    SLC_ASSERT_OK(sluice_cpd_report(model, report, &err), &err);
    sluice_cpd_destroy(model);
}

static void expect_same(const double *a, const double *b, size_t count)
{
    double most = 0;

    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
    }
    CU_ASSERT(most < 1e-11);
}

/* Devices of the CPU divide equal shares of nonzeros, or partitions, which there are none of. */
static void divides_between_cpus(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_compute_options options = on(SLUICE_DEVICE_CPU, NULL);
    struct sluice_plan plan = {.struct_bytes = sizeof plan};
    static double alone[ROWS * RANK], divided[ROWS * RANK];

    SLC_ASSERT_OK(mttkrp(store, &options, alone, &err), &err);
    options.device_count = 2;
    options.threads = 1;
    REFUSED(mttkrp(store, &options, divided, &err), SLC_ERR_USAGE, "none sorted by mode 1");
    options.split = "nnz";
    SLC_ASSERT_OK(sluice_mttkrp_plan(store, 0, RANK, &options, &plan, &err), &err);
    CU_ASSERT(plan.device_count == 2 && plan.device_name[0] == '\0');
    SLC_ASSERT_OK(mttkrp(store, &options, divided, &err), &err);
    expect_same(alone, divided, (size_t)ROWS * RANK);
    sluice_store_close(store);
}

static void refuses_what_does_not_go_together(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_compute_options options = on((enum sluice_device)3, NULL);
    struct sluice_ttv_report report;
    static double output[ROWS * RANK];

    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_USAGE, "device 3");
    options = on(SLUICE_DEVICE_CPU, "halves");
    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_USAGE, "'halves'");
    options = on(SLUICE_DEVICE_CPU, "adaptive");
    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_USAGE, "a GPU");
    options = on(SLUICE_DEVICE_CPU, NULL);
    options.device_memory_bytes = 1 << 20;
    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_USAGE, "a limit of device memory");
    options = on(SLUICE_DEVICE_GPU, NULL);
    options.device_count = SLUICE_MAX_DEVICES + 1;
    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_USAGE, "(17)");
    options.device_count = 2;
    REFUSED(ttv(store, &options, &report, &err), SLC_ERR_USAGE, "device_count 2");
    sluice_store_close(store);
}

/* Plans for a GPU by the name of its chip, which need none, and what computes refuses it. */
static void plans_for_a_chip(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_compute_options options = on(SLUICE_DEVICE_GPU, NULL);
    struct sluice_plan plan = {.struct_bytes = sizeof plan}, less = plan;
    struct sluice_ttv_report vectors;
    static double output[ROWS * RANK];

    options.device_name = "h200";
    SLC_ASSERT_OK(sluice_cpd_plan(store, RANK, &options, &plan, &err), &err);
    CU_ASSERT_STRING_EQUAL(plan.device_name, "h200");
    CU_ASSERT(plan.device_described == 1 && plan.device_multiprocessors == 132);
    CU_ASSERT_EQUAL(plan.device_budget_bytes, UINT64_C(141000000000) / 10 * 9);
    CU_ASSERT(plan.device_resident_blocks > 0 && plan.device_resident_bytes > 0 &&
              plan.device_copied_bytes == 0 && plan.device_slot_bytes > 0);
    CU_ASSERT(plan.device_host_bytes > 0 && plan.device_host_bytes < plan.total_bytes);
    options.device_memory_bytes = plan.device_minimum_bytes;
    SLC_ASSERT_OK(sluice_cpd_plan(store, RANK, &options, &less, &err), &err);
    CU_ASSERT(less.device_budget_bytes == options.device_memory_bytes &&
              less.device_resident_blocks == 0 && less.device_copied_bytes == less.iteration_bytes);
    options.device_memory_bytes = 1 << 10;
    CU_ASSERT_EQUAL(sluice_mttkrp_plan(store, 0, RANK, &options, &plan, &err), SLC_ERR_BUDGET);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "MiB of device memory or more"));
    CU_ASSERT_EQUAL(err.field, SLC_FIELD_DEVICE_MEMORY);
    slc_error_clear(&err);
    options.device_memory_bytes = UINT64_C(1) << 40;
    CU_ASSERT_EQUAL(sluice_cpd_plan(store, RANK, &options, &plan, &err), SLC_ERR_USAGE);
    CU_ASSERT(strstr(err.message, "h200 has 141 GB") != NULL && strstr(err.message, "--") == NULL);
    slc_error_clear(&err);
    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_USAGE, "describes a GPU to plan for");
    REFUSED(ttv(store, &options, &vectors, &err), SLC_ERR_USAGE, "describes a GPU to plan for");
    options.device_name = "abacus";
    CU_ASSERT_EQUAL(sluice_cpd_plan(store, RANK, &options, &plan, &err), SLC_ERR_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "the device 'abacus' is none of a100, "));
    sluice_store_close(store);
}

#ifdef SLC_EMULATED
/* Alone, with the CPU, twice over; with a plan that names it. */
static void multiplies_by_a_gpu(void)
{
    static const char *const splits[] = {NULL, "static=0.5", "nnz"};
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_compute_options options = on(SLUICE_DEVICE_CPU, NULL);
    static double alone[ROWS * RANK], output[ROWS * RANK];

    SLC_ASSERT_OK(mttkrp(store, &options, alone, &err), &err);
    for (unsigned k = 0; k < 3; k++) {
        struct sluice_plan plan = {.struct_bytes = sizeof plan};

        options = on(SLUICE_DEVICE_GPU, splits[k]);
        options.device_memory_bytes = UINT64_C(256) << 20;
        options.device_count = k == 2 ? 2 : 0;
        SLC_ASSERT_OK(sluice_mttkrp_plan(store, 0, RANK, &options, &plan, &err), &err);
        CU_ASSERT(plan.device_name[0] != '\0' && plan.device_streams > 0);
        CU_ASSERT(plan.device_described == 0 && plan.device_multiprocessors > 0);
        CU_ASSERT_EQUAL(plan.device_count, options.device_count);
        CU_ASSERT(plan.device_minimum_bytes <= plan.device_total_bytes &&
                  plan.device_total_bytes <= plan.device_budget_bytes &&
                  plan.device_budget_bytes <= options.device_memory_bytes);
        memset(output, 0, sizeof output);
        SLC_ASSERT_OK(mttkrp(store, &options, output, &err), &err);
        expect_same(alone, output, (size_t)ROWS * RANK);
    }
    options = on(SLUICE_DEVICE_GPU, NULL);
    options.device_memory_bytes = 1;
    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_BUDGET, "");
    sluice_store_close(store);
}

static void decomposes_on_a_gpu(void)
{
    struct sluice_store *store = made_store();
    const struct sluice_compute_options cpu = on(SLUICE_DEVICE_CPU, NULL);
    const struct sluice_compute_options gpu = on(SLUICE_DEVICE_AUTO, NULL);
    struct sluice_cpd_report by_cpu, by_gpu;

    logged[0] = '\0';
    sluice_log_to(keep_line, NULL);
    decompose(store, &cpu, &by_cpu);
    decompose(store, &gpu, &by_gpu);
    CU_ASSERT_EQUAL(logged[0], '\0');
    CU_ASSERT_EQUAL(by_cpu.device_nnz, 0);
    CU_ASSERT_EQUAL(by_gpu.device_nnz, 9 * NNZ);
    CU_ASSERT_DOUBLE_EQUAL(by_gpu.fit, by_cpu.fit, 1e-9);
    sluice_log_to(NULL, NULL);
    sluice_store_close(store);
}

/* Products by a GPU, and by what has memory for it: the CPU, where that is left open. */
static void forms_products_on_a_gpu(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_compute_options options = on(SLUICE_DEVICE_CPU, NULL);
    struct sluice_ttv_report vectors_cpu, vectors;
    struct sluice_ttm_report matrix_cpu, matrix;

    SLC_ASSERT_OK(ttv(store, &options, &vectors_cpu, &err), &err);
    SLC_ASSERT_OK(ttm(store, &options, &matrix_cpu, &err), &err);
    CU_ASSERT(vectors_cpu.device_nnz == 0 && matrix_cpu.device_nnz == 0);
    options = on(SLUICE_DEVICE_GPU, NULL);
    SLC_ASSERT_OK(ttv(store, &options, &vectors, &err), &err);
    SLC_ASSERT_OK(ttm(store, &options, &matrix, &err), &err);
    CU_ASSERT(vectors.device_nnz == NNZ && matrix.device_nnz == NNZ);
    CU_ASSERT_DOUBLE_EQUAL(vectors.number, vectors_cpu.number, 1e-9);
    CU_ASSERT_EQUAL(matrix.fibers, matrix_cpu.fibers);
    options.device_memory_bytes = 1;
    REFUSED(ttv(store, &options, &vectors, &err), SLC_ERR_BUDGET, "MiB of device memory or more");
    REFUSED(ttm(store, &options, &matrix, &err), SLC_ERR_BUDGET, "MiB of device memory or more");
    options.device = SLUICE_DEVICE_AUTO;
    sluice_log_to(keep_line, NULL);
    for (unsigned k = 0; k < 2; k++) {
        logged[0] = '\0';
        if (k == 0) {
            SLC_ASSERT_OK(ttv(store, &options, &vectors, &err), &err);
        } else {
            SLC_ASSERT_OK(ttm(store, &options, &matrix, &err), &err);
        }
        CU_ASSERT_PTR_NOT_NULL(strstr(logged, "GPU not used"));
    }
    CU_ASSERT(vectors.device_nnz == 0 && matrix.device_nnz == 0);
    sluice_log_to(NULL, NULL);
    sluice_store_close(store);
}
#else
/* Who insists is told why there is none; who does not gets the CPU, and a line in the log. */
static void does_without_a_gpu(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct sluice_compute_options options = on(SLUICE_DEVICE_GPU, NULL);
    struct sluice_ttv_report vectors;
    struct sluice_ttm_report matrix;
    struct sluice_cpd_report model;
    struct sluice_plan plan = {.struct_bytes = sizeof plan};
    static double output[ROWS * RANK];

    CU_ASSERT_EQUAL(sluice_cpd_plan(store, RANK, &options, &plan, &err), SLC_ERR_SYSTEM);
    CU_ASSERT(strstr(err.message, "say which or with how much memory") != NULL &&
              err.field == SLC_FIELD_DEVICE_NAME);
    slc_error_clear(&err);
    options.device_memory_bytes = UINT64_C(80000000000);
    SLC_ASSERT_OK(sluice_cpd_plan(store, RANK, &options, &plan, &err), &err);
    CU_ASSERT(plan.device_described == 1 && strcmp(plan.device_name, "h100") == 0 &&
              plan.device_budget_bytes == options.device_memory_bytes);
    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_SYSTEM, "device gpu");
    options.device_memory_bytes = 0;
    REFUSED(mttkrp(store, &options, output, &err), SLC_ERR_SYSTEM, "device gpu");
    REFUSED(ttv(store, &options, &vectors, &err), SLC_ERR_SYSTEM, "device gpu");
    REFUSED(ttm(store, &options, &matrix, &err), SLC_ERR_SYSTEM, "device gpu");
    options.device = SLUICE_DEVICE_AUTO;
    sluice_log_to(keep_line, NULL);
    for (unsigned k = 0; k < 4; k++) {
        logged[0] = '\0';
        if (k == 0) {
            SLC_ASSERT_OK(mttkrp(store, &options, output, &err), &err);
        } else if (k == 1) {
            SLC_ASSERT_OK(ttv(store, &options, &vectors, &err), &err);
        } else if (k == 2) {
            SLC_ASSERT_OK(ttm(store, &options, &matrix, &err), &err);
        } else {
            decompose(store, &options, &model);
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
        {"refuses what does not go together", refuses_what_does_not_go_together},
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
