/* Products of a tensor in memory through the public API: only sluice/sluice.h and the shared
 * library, against the store that sluice_ttv writes, in the form of text. */
#include "api_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDER = 3, CELLS = 30 * 20 * 40 };

static const uint64_t dims[ORDER] = {30, 20, 40};
static char home[256];
static struct sluice_store *store;
static struct sluice_error err = SLUICE_ERROR_INIT;

/* Makes the store of all tests. */
static void prepare(void)
{
    struct sluice_generate_options options = {.struct_bytes = sizeof options};
    char path[300];

    if (store != NULL) {
        return;
    }
    (void)snprintf(home, sizeof home, "%s", slc_test_folder());
    (void)snprintf(path, sizeof path, "%s/t.slc", home);
    options.seed = 5;
    API_OK(sluice_generate(path, ORDER, dims, 3000, &options, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
}

/* The number of a cell of the modes other than `mode`. */
static uint64_t cell_of(uint32_t mode, const uint64_t *coords)
{
    uint64_t cell = 0;

    for (uint32_t n = 0; n < ORDER; n++) {
        cell = n != mode ? cell * dims[n] + coords[n] : cell;
    }
    return cell;
}

/* Sums by sluice_ttv, in an array of all cells. */
static void streamed(uint32_t mode, const double *vector, double *cells)
{
    const double *vectors[ORDER] = {NULL};
    struct sluice_ttv_options options = {.struct_bytes = sizeof options,
                                         .output = {.overwrite = 1}};
    struct sluice_export_options text = {.struct_bytes = sizeof text, .overwrite = 1};
    char path[300], list[300], line[256];
    uint64_t lines;

    (void)snprintf(path, sizeof path, "%s/y.slc", home);
    (void)snprintf(list, sizeof list, "%s/y.tns", home);
    vectors[mode] = vector;
    API_OK(sluice_ttv(store, vectors, path, &options, NULL, &err), &err);
    API_OK(sluice_export(path, list, &text, &lines, &err), &err);
    FILE *file = fopen(list, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    memset(cells, 0, CELLS * sizeof *cells);
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t coords[ORDER] = {0};
        char *at = line;

        for (uint32_t n = 0; n < ORDER; n++) {
            coords[n] = n != mode ? strtoull(at, &at, 10) - 1 : 0;
        }
        cells[cell_of(mode, coords)] = strtod(at, NULL);
    }
    CU_ASSERT_EQUAL(fclose(file), 0);
}

static void multiplies(void)
{
    double *cells = malloc(CELLS * sizeof *cells);

    prepare();
    for (uint32_t mode = 0; mode < ORDER; mode++) {
        struct sluice_ttv_operator_options options = {.struct_bytes = sizeof options};
        struct sluice_ttv_operator_info info;
        struct sluice_ttv_operator *ttv = NULL;
        uint64_t *indices[ORDER] = {NULL};

        options.run.threads = 1 + mode;
        API_OK(sluice_ttv_create(store, mode, &options, &ttv, &err), &err);
        FRESH(info);
        API_OK(sluice_ttv_get_info(ttv, &info, &err), &err);
        CU_ASSERT(info.order == ORDER && info.mode == mode && info.nnz == 3000);
        CU_ASSERT(memcmp(info.dims, dims, sizeof dims) == 0 && info.used <= dims[mode]);
        CU_ASSERT(info.memory_bytes > info.nnz * 6 && info.fibers <= 3000);
        for (uint32_t n = 0; n < ORDER; n++) {
            indices[n] = malloc(info.fibers * sizeof(uint64_t));
            if (n != mode) {
                API_OK(sluice_ttv_get_indices(ttv, n, indices[n], info.fibers, &err), &err);
            }
        }
        for (unsigned phase = 0; phase < 2; phase++) {
            double vector[40], *sums = malloc(info.fibers * sizeof *sums);

            for (uint64_t i = 0; i < dims[mode]; i++) {
                vector[i] = 2 + sin((double)i + phase);
            }
            streamed(mode, vector, cells);
            API_OK(sluice_ttv_multiply(ttv, vector, dims[mode], sums, info.fibers, &err), &err);
            for (uint64_t f = 0; f < info.fibers; f++) {
                uint64_t coords[ORDER] = {0};

                for (uint32_t n = 0; n < ORDER; n++) {
                    coords[n] = n != mode ? indices[n][f] : 0;
                }
                CU_ASSERT(fabs(sums[f] - cells[cell_of(mode, coords)]) <= 1e-12 * fabs(sums[f]));
            }
            free(sums);
        }
        for (uint32_t n = 0; n < ORDER; n++) {
            free(indices[n]);
        }
        sluice_ttv_destroy(ttv);
    }
    free(cells);
}

static void refuses(void)
{
    struct sluice_ttv_operator_options options = {.struct_bytes = 3};
    struct sluice_ttv_operator_info info = {.struct_bytes = 3};
    struct sluice_ttv_operator *ttv = NULL;
    double vector[40] = {0}, *sums = malloc(3000 * sizeof *sums);
    uint64_t indices[1];

    prepare();
    REFUSED(sluice_ttv_create(store, 3, NULL, &ttv, &err), SLUICE_ERR_USAGE, "modes 0 to 2");
    REFUSED(sluice_ttv_create(store, 0, &options, &ttv, &err), SLUICE_ERR_USAGE, "struct_bytes");
    FRESH(options);
    options.run.memory_bytes = 1 << 20;
    REFUSED(sluice_ttv_create(store, 0, &options, &ttv, &err), SLUICE_ERR_BUDGET, "MiB");
    CU_ASSERT_PTR_NULL(ttv);
    API_OK(sluice_ttv_create(store, 2, NULL, &ttv, &err), &err);
    REFUSED(sluice_ttv_get_info(ttv, &info, &err), SLUICE_ERR_USAGE, "struct_bytes");
    FRESH(info);
    API_OK(sluice_ttv_get_info(ttv, &info, &err), &err);
    REFUSED(sluice_ttv_get_indices(ttv, 0, indices, 1, &err), SLUICE_ERR_USAGE, "count is 1");
    uint64_t *all = malloc(info.fibers * sizeof *all);
    REFUSED(sluice_ttv_get_indices(ttv, 2, all, info.fibers, &err), SLUICE_ERR_USAGE,
            "mode 2 is not a remaining mode");
    free(all);
    REFUSED(sluice_ttv_multiply(ttv, vector, 39, sums, info.fibers, &err), SLUICE_ERR_USAGE,
            "vector_count is 39, but there are 40");
    REFUSED(sluice_ttv_multiply(ttv, vector, 40, sums, info.fibers - 1, &err), SLUICE_ERR_USAGE,
            "sum_count is");
    vector[7] = NAN;
    REFUSED(sluice_ttv_multiply(ttv, vector, 40, sums, info.fibers, &err), SLUICE_ERR_INPUT,
            "number 8 of the vector");
    for (unsigned i = 0; i < 40; i++) {
        vector[i] = 1e308;
    }
    REFUSED(sluice_ttv_multiply(ttv, vector, 40, sums, info.fibers, &err), SLUICE_ERR_INPUT,
            "beyond the range of f64");
    sluice_ttv_destroy(ttv);
    sluice_ttv_destroy(NULL);
    free(sums);
}

static void missing_arguments(void)
{
    struct sluice_ttv_operator_info info;
    struct sluice_ttv_operator *ttv = NULL;
    double number = 0;
    uint64_t index = 0;

    prepare();
    API_OK(sluice_ttv_create(store, 0, NULL, &ttv, &err), &err);
    FRESH(info);
    REFUSED(sluice_ttv_create(NULL, 0, NULL, &ttv, &err), SLUICE_ERR_USAGE, "store is NULL");
    REFUSED(sluice_ttv_create(store, 0, NULL, NULL, &err), SLUICE_ERR_USAGE, "ret_ttv is NULL");
    REFUSED(sluice_ttv_get_info(NULL, &info, &err), SLUICE_ERR_USAGE, "ttv is NULL");
    REFUSED(sluice_ttv_get_info(ttv, NULL, &err), SLUICE_ERR_USAGE, "info is NULL");
    REFUSED(sluice_ttv_get_indices(NULL, 1, &index, 1, &err), SLUICE_ERR_USAGE, "ttv is NULL");
    REFUSED(sluice_ttv_get_indices(ttv, 1, NULL, 1, &err), SLUICE_ERR_USAGE, "indices is NULL");
    REFUSED(sluice_ttv_multiply(NULL, &number, 1, &number, 1, &err), SLUICE_ERR_USAGE,
            "ttv is NULL");
    REFUSED(sluice_ttv_multiply(ttv, NULL, 1, &number, 1, &err), SLUICE_ERR_USAGE,
            "vector is NULL");
    REFUSED(sluice_ttv_multiply(ttv, &number, 1, NULL, 1, &err), SLUICE_ERR_USAGE, "sums is NULL");
    sluice_ttv_destroy(ttv);
}

static const struct slc_test tests[] = {
    {"multiplies by vectors", multiplies},
    {"refuses what is impossible", refuses},
    {"missing arguments", missing_arguments},
};

SLC_SUITE(ttv_operator)
{
    const int code = slc_test_main("api ttv operator", tests, SLC_COUNT(tests), argc, argv);
    sluice_store_close(store);
    return code;
}
