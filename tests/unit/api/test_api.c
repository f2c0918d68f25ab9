/* The public API through sluice/sluice.h and the shared library only: from text to factors, every
 * accessor, versioned structs, and errors without side effects. */
#include "api_test.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 3, TUBES = 5, NNZ = 7 };

/* 1-based coordinates and values of a 4 x 3 x 5 tensor; the last line repeats the coordinates of
 * the first. */
static const char text[] = "1 1 1 1.5\n2 3 5 -2\n4 2 2 0.25\n3 3 3 8\n1 2 4 3\n4 1 5 1e2\n"
                           "2 2 1 7\n1 1 1 0.5\n";
static const struct {
    unsigned i, j, k;
    double value;
} nonzeros[NNZ] = {{0, 0, 0, 2.0}, {1, 2, 4, -2.0},  {3, 1, 1, 0.25}, {2, 2, 2, 8.0},
                   {0, 1, 3, 3.0}, {3, 0, 4, 100.0}, {1, 1, 0, 7.0}};

static void write_text(const char *path)
{
    FILE *file = fopen(path, "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(text, 1, sizeof text - 1, file), sizeof text - 1);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* Converts the text above and opens the store; `path` receives its path. */
static struct sluice_store *small_store(char *path, size_t path_bytes)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = NULL;
    const char *folder = slc_test_folder();
    char input[512];

    snprintf(input, sizeof input, "%s/small.tns", folder);
    snprintf(path, path_bytes, "%s/small.slc", folder);
    write_text(input);
    API_OK(sluice_convert(input, path, NULL, NULL, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    return store;
}

static void converts_and_describes(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_convert_report report = {.struct_bytes = sizeof report};
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_store *store;
    char path[512], input[512];
    double squares = 0.0;

    store = small_store(path, sizeof path);
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    CU_ASSERT_EQUAL(info.order, 3);
    CU_ASSERT_EQUAL(info.dims[0], ROWS);
    CU_ASSERT_EQUAL(info.dims[1], COLUMNS);
    CU_ASSERT_EQUAL(info.dims[2], TUBES);
    CU_ASSERT_EQUAL(info.nnz, NNZ);
    CU_ASSERT_EQUAL(info.block_count, 1);
    CU_ASSERT_EQUAL(info.value_type, SLUICE_F32);
    for (unsigned i = 0; i < NNZ; i++) {
        squares += nonzeros[i].value * nonzeros[i].value;
    }
    CU_ASSERT_DOUBLE_EQUAL(info.norm, sqrt(squares), 1e-12);
    sluice_store_close(store);

    /* An existing store is replaced only on request. */
    snprintf(input, sizeof input, "%.*s.tns", (int)strlen(path) - 4, path);
    CU_ASSERT_NOT_EQUAL(sluice_convert(input, path, NULL, NULL, NULL), SLUICE_OK);
    options.output.overwrite = 1;
    options.output.codec = SLUICE_CODEC_LZ4;
    options.entries.dims_order = 3;
    options.entries.dims[0] = 10;
    options.entries.dims[1] = 11;
    options.entries.dims[2] = 12;
    API_OK(sluice_convert(input, path, &options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.entries, NNZ + 1);
    CU_ASSERT_EQUAL(report.duplicates, 1);
    CU_ASSERT_EQUAL(report.nnz, NNZ);
    CU_ASSERT_EQUAL(report.index_base, 1);
    CU_ASSERT_EQUAL(report.dims[2], 12);
    API_OK(sluice_store_open(path, &store, &err), &err);
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    CU_ASSERT_EQUAL(info.codec, SLUICE_CODEC_LZ4);
    CU_ASSERT_EQUAL(info.dims[0], 10);
    sluice_store_close(store);
}

/* Expects an error, and no store. */
static void
refused(enum sluice_status status, const char *path, const char *says, struct sluice_error *err)
{
    struct sluice_store *store = NULL;

    CU_ASSERT_EQUAL(status, SLUICE_ERR_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err->message, says));
    CU_ASSERT_NOT_EQUAL(sluice_store_open(path, &store, NULL), SLUICE_OK);
    sluice_store_close(store);
    *err = (struct sluice_error)SLUICE_ERROR_INIT;
}

static void refuses_before_it_works(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_report report = {.struct_bytes = 0};
    struct sluice_append_report appended = {.struct_bytes = 5000};
    struct sluice_ttv_report product = {.struct_bytes = 1};
    struct sluice_convert_options convert = {.struct_bytes = sizeof convert};
    struct sluice_builder_options build = {.struct_bytes = sizeof build};
    struct sluice_generate_options generate = {.struct_bytes = sizeof generate};
    struct sluice_append_options append = {.struct_bytes = sizeof append};
    struct sluice_cpd_options cpd = {.struct_bytes = sizeof cpd};
    struct sluice_model *model = NULL;
    struct sluice_reshape_options reshape = {.struct_bytes = sizeof reshape};
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_builder *builder = NULL;
    struct sluice_store *store;
    const uint64_t dims[] = {5, 6, 7};
    const double vector[ROWS] = {1};
    const double *const vectors[] = {vector, NULL, NULL};
    char path[512], input[512], other[544];

    store = small_store(path, sizeof path);
    snprintf(input, sizeof input, "%.*s.tns", (int)strlen(path) - 4, path);
    snprintf(other, sizeof other, "%s.other.slc", input);
    refused(sluice_convert(input, other, NULL, &report, &err), other, "is 0:", &err);
    refused(sluice_permute(path, other, 3, (const uint32_t[]){0, 1, 2}, NULL, &report, &err), other,
            "is 0:", &err);
    refused(sluice_ttv(store, vectors, other, NULL, &product, &err), other, "is 1:", &err);
    convert.output.codec = (enum sluice_codec)77;
    refused(sluice_convert(input, other, &convert, NULL, &err), other, "codec 77", &err);
    build.output.codec = (enum sluice_codec)77;
    refused(sluice_builder_create(other, 3, &build, &builder, &err), other, "codec 77", &err);
    convert.output.codec = SLUICE_CODEC_LZ4;
    convert.output.relabel = (enum sluice_relabel)77;
    refused(sluice_convert(input, other, &convert, NULL, &err), other, "relabel 77", &err);
    convert.output.relabel = SLUICE_RELABEL_NONE;
    convert.entries.duplicates = (enum sluice_duplicates)77;
    refused(sluice_convert(input, other, &convert, NULL, &err), other, "duplicates 77", &err);
    convert.entries.duplicates = SLUICE_DUPLICATES_SUM;
    convert.entries.value = (enum sluice_value)77;
    refused(sluice_convert(input, other, &convert, NULL, &err), other, "value 77", &err);
    generate.output.codec = (enum sluice_codec)77;
    refused(sluice_generate(other, 3, dims, 9, &generate, &err), other, "codec 77", &err);
    reshape.output.codec = (enum sluice_codec)77;
    refused(sluice_slice(path, other, 0, NULL, &reshape, NULL, &err), other, "codec 77", &err);
    refused(sluice_builder_create(NULL, 3, NULL, &builder, &err), other, "output is NULL", &err);
    refused(sluice_check(NULL, NULL, NULL, &err), other, "path is NULL", &err);
    refused(sluice_export(path, NULL, NULL, NULL, &err), other, "output is NULL", &err);
    refused(sluice_slice(NULL, other, 0, NULL, NULL, NULL, &err), other, "path is NULL", &err);
    refused(sluice_layout_drop(NULL, SLUICE_LAYOUT_SORTED, 0, &err), other, "path is NULL", &err);
    refused(sluice_model_load(store, NULL, &model, &err), other, "folder is NULL", &err);
    refused(sluice_run_top(NULL, NULL, NULL, &err), other, "folder is NULL", &err);
    cpd.checkpoint_folder = path;
    refused(sluice_cpd(store, 2, &cpd, &model, &err), other, "it is a store", &err);
    refused(sluice_store_open(NULL, &store, &err), other, "path is NULL", &err);

    /* The failed append has not changed the store. */
    append.again = 1;
    refused(sluice_append(path, input, &append, &appended, &err), other, "is 5000:", &err);
    append.duplicates = (enum sluice_duplicates)77;
    refused(sluice_append(path, input, &append, NULL, &err), other, "duplicates 77", &err);
    append.duplicates = SLUICE_DUPLICATES_SUM;
    append.output.codec = SLUICE_CODEC_LZ4;
    refused(sluice_append(path, input, &append, NULL, &err), other, "codec, relabel", &err);
    sluice_store_close(store);
    API_OK(sluice_store_open(path, &store, &err), &err);
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    CU_ASSERT_EQUAL(info.appended, 0);
    sluice_store_close(store);
}

static void multiplies(void)
{
    enum { RANK = 3 };
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_mttkrp_options options = {.struct_bytes = sizeof options};
    double a[ROWS * RANK], b[COLUMNS * RANK], c[TUBES * RANK];
    double output[ROWS * RANK], expected[ROWS * RANK] = {0};
    const double *factors[3] = {NULL, b, c};
    struct sluice_store *store;
    char path[512];

    for (unsigned i = 0; i < COLUMNS * RANK; i++) {
        b[i] = 1.0 + i;
    }
    for (unsigned i = 0; i < TUBES * RANK; i++) {
        c[i] = 3.0 - i;
    }
    for (unsigned x = 0; x < NNZ; x++) {
        for (unsigned r = 0; r < RANK; r++) {
            expected[nonzeros[x].i * RANK + r] +=
                nonzeros[x].value * b[nonzeros[x].j * RANK + r] * c[nonzeros[x].k * RANK + r];
        }
    }
    store = small_store(path, sizeof path);
    for (unsigned variant = 0; variant < 4; variant++) {
        options.run.threads = 1 + variant % 2;
        options.compute.io = variant < 2 ? SLUICE_IO_PREAD : SLUICE_IO_MMAP;
        options.compute.deterministic = variant == 3;
        API_OK(sluice_mttkrp(store, 0, RANK, factors, output, ROWS * RANK, &options, &err), &err);
        /* Values are small integers and quarters, so every sum is exact. */
        CU_ASSERT_EQUAL(memcmp(output, expected, sizeof output), 0);
    }
    options.compute.precision = SLUICE_F32;
    API_OK(sluice_mttkrp(store, 0, RANK, factors, output, ROWS * RANK, &options, &err), &err);
    CU_ASSERT_EQUAL(memcmp(output, expected, sizeof output), 0);

    factors[1] = NULL;
    output[0] = 12345.0;
    API_FAILS(sluice_mttkrp(store, 0, RANK, factors, output, ROWS * RANK, NULL, &err),
              SLUICE_ERR_USAGE, &err, "NULL");
    factors[0] = a;
    factors[1] = b;
    api_clear(&err);
    API_FAILS(sluice_mttkrp(store, 3, RANK, factors, output, ROWS * RANK, NULL, &err),
              SLUICE_ERR_USAGE, &err, "mode");
    api_clear(&err);
    API_FAILS(sluice_mttkrp(store, 0, RANK, factors, output, ROWS * RANK - 1, NULL, &err),
              SLUICE_ERR_USAGE, &err, "output_count is 11");
    CU_ASSERT_EQUAL(output[0], 12345.0);
    sluice_store_close(store);
}

static int count_iterations(void *context, const struct sluice_iteration *iteration)
{
    unsigned *count = context;

    *count += 1;
    CU_ASSERT_EQUAL(iteration->iteration, *count);
    return 0;
}

/* Returns the value of the model at a nonzero, computed from copies of the factors. */
static double
model_value(const double *const *factors, const double *lambda, unsigned rank, unsigned x)
{
    double sum = 0.0;

    for (unsigned r = 0; r < rank; r++) {
        sum += lambda[r] * factors[0][nonzeros[x].i * rank + r] *
               factors[1][nonzeros[x].j * rank + r] * factors[2][nonzeros[x].k * rank + r];
    }
    return sum;
}

static void factorizes(void)
{
    enum { RANK = 2 };
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options = {.struct_bytes = sizeof options};
    struct sluice_model_info info;
    struct sluice_store *store;
    struct sluice_model *model = NULL;
    double *copies[3], lambda[RANK];
    char path[512], folder[512], file[600];
    unsigned count = 0;
    FILE *saved;

    store = small_store(path, sizeof path);
    options.compute.deterministic = 1;
    options.iteration = count_iterations;
    options.run.context = &count;
    options.seed = 3;
    API_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    info = api_info(model);
    CU_ASSERT_EQUAL(info.order, 3);
    CU_ASSERT_EQUAL(info.rank, RANK);
    CU_ASSERT_EQUAL(info.iterations, count);
    CU_ASSERT_EQUAL(info.stop_reason, SLUICE_STOP_TOLERANCE);
    CU_ASSERT_TRUE(info.fit > 0.8 && info.fit <= 1.0);
    CU_ASSERT_EQUAL(info.dims[2], TUBES);
    API_OK(sluice_model_get_weights(model, lambda, RANK, &err), &err);
    API_REFUSED(sluice_model_get_weights(model, lambda, RANK - 1, &err), SLUICE_ERR_USAGE, &err,
                "1 numbers is too small for 2 weights");
    for (unsigned n = 0; n < 3; n++) {
        copies[n] = calloc(info.dims[n] * RANK, sizeof(double));
        api_factor(model, n, copies[n], info.dims[n] * RANK);
    }
    API_REFUSED(sluice_model_get_factor(model, 0, copies[0], ROWS * RANK - 1, &err),
                SLUICE_ERR_USAGE, &err, "4 x 2");
    API_REFUSED(sluice_model_get_factor(model, 3, copies[0], ROWS * RANK, &err), SLUICE_ERR_USAGE,
                &err, "mode 3");
    /* The value 100 dominates the norm, so the first component is it. */
    CU_ASSERT_DOUBLE_EQUAL(model_value((const double *const *)copies, lambda, RANK, 5), 100.0, 1.0);
    CU_ASSERT_TRUE(lambda[0] >= lambda[1]);
    for (unsigned n = 0; n < 3; n++) {
        free(copies[n]);
    }
    snprintf(folder, sizeof folder, "%s/model", slc_test_folder());
    API_OK(sluice_model_save(model, SLUICE_MODEL_NPY, folder, &err), &err);
    snprintf(file, sizeof file, "%s/mode-3.npy", folder);
    saved = fopen(file, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(saved);
    fclose(saved);
    sluice_model_destroy(model);
    sluice_model_destroy(NULL);
    sluice_store_close(store);
    sluice_store_close(NULL);
}

static int compare_affinity(void *context, const struct sluice_iteration *iteration)
{
    cpu_set_t now;

    (void)iteration;
    CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof now, &now), 0);
    CU_ASSERT_TRUE(CPU_EQUAL(&now, (const cpu_set_t *)context));
    return 0;
}

static void pinning_leaves_the_caller_alone(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store;
    struct sluice_model *model = NULL;
    cpu_set_t before;
    char path[512];

    CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof before, &before), 0);
    store = small_store(path, sizeof path);
    options.compute.pin = SLUICE_PIN_ALWAYS;
    options.iterations = 3;
    options.iteration = compare_affinity;
    options.run.context = &before;
    API_OK(sluice_cpd(store, 2, &options, &model, &err), &err);
    CU_ASSERT_EQUAL(compare_affinity(&before, NULL), 0);
    options.compute.pin = (enum sluice_pin)3;
    API_FAILS(sluice_cpd(store, 2, &options, &model, &err), SLUICE_ERR_USAGE, &err, "pin 3");
    sluice_model_destroy(model);
    sluice_store_close(store);
}

static void plans_and_budgets(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options = {.struct_bytes = sizeof options};
    struct sluice_plan plan = {.struct_bytes = sizeof plan};
    struct sluice_store *store;
    struct sluice_model *model = NULL;
    char path[512], said[1600];

    store = small_store(path, sizeof path);
    API_OK(sluice_cpd_plan(store, 2, NULL, &plan, &err), &err);
    CU_ASSERT_TRUE(plan.minimum_bytes <= plan.total_bytes);
    CU_ASSERT_TRUE(plan.total_bytes <= plan.budget_bytes);
    CU_ASSERT_EQUAL(plan.passes, 3);
    options.run.memory_bytes = 1 << 20;
    plan.minimum_bytes = 0;
    API_FAILS(sluice_cpd_plan(store, 2, &options, &plan, &err), SLUICE_ERR_BUDGET, &err,
              "MiB of memory or more");
    CU_ASSERT_STRING_EQUAL(err.field, "memory_bytes");
    (void)sluice_error_format(&err, said, sizeof said);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "the budget is 1.0 MiB (memory_bytes)"));
    CU_ASSERT_TRUE(plan.minimum_bytes > (1 << 20));
    api_clear(&err);
    API_FAILS(sluice_cpd(store, 2, &options, &model, &err), SLUICE_ERR_BUDGET, &err,
              "MiB of memory or more");
    CU_ASSERT_PTR_NULL(model);
    sluice_store_close(store);
}

static void structs_have_versions(void)
{
    struct {
        struct sluice_cpd_options known;
        uint64_t newer;
    } longer;
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_plan plan = {.struct_bytes = sizeof plan};
    struct sluice_store_info info = {.struct_bytes = 16, .nnz = 99};
    struct sluice_store *store;
    char path[512];

    store = small_store(path, sizeof path);

    /* A shorter struct of an older program leaves the other members at their defaults. */
    memset(&longer, 0xff, sizeof longer);
    longer.known.struct_bytes = 16;
    longer.known.run.memory_bytes = 0;
    API_OK(sluice_cpd_plan(store, 2, &longer.known, &plan, &err), &err);
    /* A longer struct of a newer program is accepted if the unknown members are unset. */
    memset(&longer, 0, sizeof longer);
    longer.known.struct_bytes = sizeof longer;
    API_OK(sluice_cpd_plan(store, 2, &longer.known, &plan, &err), &err);
    longer.newer = 1;
    API_REFUSED(sluice_cpd_plan(store, 2, &longer.known, &plan, &err), SLUICE_ERR_UNSUPPORTED, &err,
                "newer version");
    longer.known.struct_bytes = 0;
    API_FAILS(sluice_cpd_plan(store, 2, &longer.known, &plan, &err), SLUICE_ERR_USAGE, &err,
              "struct_bytes");

    /* Reports are also filled only up to the size that the program knows. */
    API_OK(sluice_store_get_info(store, &info, NULL), NULL);
    CU_ASSERT_EQUAL(info.order, 3);
    CU_ASSERT_EQUAL(info.nnz, 99);
    CU_ASSERT_EQUAL(info.struct_bytes, 16);
    sluice_store_close(store);
}

static void checks_and_exports(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_export_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store;
    char path[512], output[512], line[128];
    uint64_t findings = 7, lines = 0;
    unsigned found = 0;
    FILE *file;

    store = small_store(path, sizeof path);
    sluice_store_close(store);
    API_OK(sluice_check(path, NULL, &findings, &err), &err);
    CU_ASSERT_EQUAL(findings, 0);

    snprintf(output, sizeof output, "%s/back.tns", slc_test_folder());
    API_OK(sluice_export(path, output, &options, &lines, &err), &err);
    CU_ASSERT_EQUAL(lines, NNZ);
    file = fopen(output, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned i, j, k;
        double value;

        if (sscanf(line, "%u %u %u %lf", &i, &j, &k, &value) == 4) {
            for (unsigned x = 0; x < NNZ; x++) {
                found += nonzeros[x].i + 1 == i && nonzeros[x].j + 1 == j &&
                         nonzeros[x].k + 1 == k && nonzeros[x].value == value;
            }
        }
    }
    fclose(file);
    CU_ASSERT_EQUAL(found, NNZ);
}

static void generates(void)
{
    static const uint64_t dims[3] = {50, 60, 70};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_generate_options options = {.struct_bytes = sizeof options};
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_store *store = NULL;
    char path[512];

    snprintf(path, sizeof path, "%s/random.slc", slc_test_folder());
    options.seed = 9;
    API_OK(sluice_generate(path, 3, dims, 5000, &options, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    CU_ASSERT_EQUAL(info.nnz, 5000);
    sluice_store_close(store);
    API_FAILS(sluice_generate(path, 17, dims, 5000, NULL, &err), SLUICE_ERR_USAGE, &err, "modes");
}

static void errors_leave_everything_alone(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = NULL;
    uint64_t bytes = 5;
    char message[256];

    CU_ASSERT_EQUAL(sluice_store_open("/nonexistent.slc", &store, NULL),
                    sluice_store_open("/nonexistent.slc", &store, &err));
    CU_ASSERT_NOT_EQUAL(err.status, SLUICE_OK);
    CU_ASSERT_PTR_NULL(store);
    CU_ASSERT_TRUE(sluice_error_format(&err, message, sizeof message) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "nonexistent"));
    CU_ASSERT_STRING_EQUAL(sluice_status_name(SLUICE_OK), "ok");
    CU_ASSERT_STRING_EQUAL(sluice_version(), SLUICE_VERSION);
    (void)snprintf(message, sizeof message, "%d.%d.%d", SLUICE_VERSION_MAJOR, SLUICE_VERSION_MINOR,
                   SLUICE_VERSION_PATCH);
    CU_ASSERT_STRING_EQUAL(SLUICE_VERSION, message);
    CU_ASSERT_EQUAL(sluice_parse_size("2MiB", &bytes, NULL), SLUICE_OK);
    CU_ASSERT_EQUAL(bytes, 2 << 20);
    CU_ASSERT_EQUAL(sluice_parse_size("two", &bytes, NULL), SLUICE_ERR_USAGE);
    CU_ASSERT_EQUAL(sluice_parse_size(NULL, &bytes, NULL), SLUICE_ERR_USAGE);
    CU_ASSERT_EQUAL(bytes, 2 << 20);
}

/* A generated store, with indices relabelled by frequency or not. */
static struct sluice_store *
skewed_store(const char *folder, enum sluice_relabel relabel, uint32_t *relabelled_modes)
{
    static const uint64_t dims[] = {300, 200, 100};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_generate_options options = {.struct_bytes = sizeof options};
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_store *store = NULL;
    char path[512];

    snprintf(path, sizeof path, "%s/skewed-%d.slc", folder, (int)relabel);
    options.distribution = SLUICE_DIST_ZIPF_SHUFFLED;
    options.zipf_exponent = 1.2;
    options.run.threads = 1;
    options.output.relabel = relabel;
    API_OK(sluice_generate(path, 3, dims, 60000, &options, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    *relabelled_modes = info.relabelled_modes;
    return store;
}

static void check_close(const double *a, const double *b, size_t count, double tolerance)
{
    double largest = 0.0, error = 0.0;

    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(a[i]));
        error = fmax(error, fabs(a[i] - b[i]));
    }
    CU_ASSERT(error <= tolerance * largest);
}

/* Inputs and outputs of calls use the indices of the text, even if the store relabels them. */
static void relabelled_modes_do_not_show(void)
{
    enum { SKEWED_RANK = 4, SKEWED_ROWS = 300 };
    static double values[SKEWED_ROWS * SKEWED_RANK];
    static double out[2][SKEWED_ROWS * SKEWED_RANK];
    const double *factors[] = {values, values, values};
    const char *folder = slc_test_folder();
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *stores[2];
    struct sluice_cpd_options options = {.struct_bytes = sizeof options};
    struct sluice_model *models[2] = {NULL, NULL};
    uint32_t modes[2];

    for (size_t i = 0; i < SLC_COUNT(values); i++) {
        values[i] = cos((double)i);
    }
    options.iterations = 3;
    for (unsigned s = 0; s < 2; s++) {
        stores[s] = skewed_store(folder, s == 0 ? SLUICE_RELABEL_NONE : SLUICE_RELABEL_FREQUENCY,
                                 &modes[s]);
        API_OK(sluice_cpd(stores[s], SKEWED_RANK, &options, &models[s], &err), &err);
    }
    CU_ASSERT_EQUAL(modes[0], 0);
    CU_ASSERT_EQUAL(modes[1], 7);
    for (uint32_t mode = 0; mode < 3; mode++) {
        size_t count = api_info(models[0]).dims[mode] * SKEWED_RANK;

        for (unsigned s = 0; s < 2; s++) {
            API_OK(sluice_mttkrp(stores[s], mode, SKEWED_RANK, factors, out[s], SLC_COUNT(out[s]),
                                 NULL, &err),
                   &err);
        }
        check_close(out[0], out[1], count, 1e-12);
        api_factor(models[0], mode, out[0], count);
        api_factor(models[1], mode, out[1], count);
        check_close(out[0], out[1], count, 1e-10);
    }
    for (unsigned s = 0; s < 2; s++) {
        sluice_model_destroy(models[s]);
        sluice_store_close(stores[s]);
    }
}

SLC_SUITE(api)
{
    static const struct slc_test tests[] = {
        {"text becomes a store with its properties", converts_and_describes},
        {"impossible requests are rejected before work begins", refuses_before_it_works},
        {"MTTKRP on arrays of the caller", multiplies},
        {"CPD, its accessors and its files", factorizes},
        {"pinning leaves the caller alone", pinning_leaves_the_caller_alone},
        {"plans and budgets", plans_and_budgets},
        {"structs of older and newer programs", structs_have_versions},
        {"check and export", checks_and_exports},
        {"generate", generates},
        {"errors leave everything alone", errors_leave_everything_alone},
        {"relabelled modes do not show", relabelled_modes_do_not_show},
    };

    return slc_test_main("api", tests, SLC_COUNT(tests), argc, argv);
}
