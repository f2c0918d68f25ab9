/* Products with vectors and with a matrix through the public API: only sluice/sluice.h and the
 * shared library, against sums over a list of nonzeros. */
#include "api_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 3, TUBES = 5, NNZ = 7, CELLS = ROWS * COLUMNS * TUBES, PARTS = 3 };

static const uint64_t dims[3] = {ROWS, COLUMNS, TUBES};
static const char text[] = "1 1 1 2\n2 3 5 -2\n4 2 2 0.25\n3 3 3 8\n1 2 4 3\n4 1 5 1e2\n2 2 1 7\n";
static const struct {
    unsigned at[3];
    double value;
} nonzeros[NNZ] = {{{0, 0, 0}, 2.0}, {{1, 2, 4}, -2.0},  {{3, 1, 1}, 0.25}, {{2, 2, 2}, 8.0},
                   {{0, 1, 3}, 3.0}, {{3, 0, 4}, 100.0}, {{1, 1, 0}, 7.0}};

/* One folder for all tests: slc_test_folder creates a new one at each call. */
static const char *home(void)
{
    static char folder[256];

    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s", slc_test_folder());
    }
    return folder;
}

/* Converts the text above and opens the store. */
static struct sluice_store *small_store(enum sluice_relabel relabel)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = NULL;
    char input[512], path[512];
    FILE *file;

    snprintf(input, sizeof input, "%s/small.tns", home());
    snprintf(path, sizeof path, "%s/small.slc", home());
    file = fopen(input, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(text, 1, sizeof text - 1, file), sizeof text - 1);
    CU_ASSERT_EQUAL(fclose(file), 0);
    options.output.overwrite = 1;
    options.output.relabel = relabel;
    API_OK(sluice_convert(input, path, &options, NULL, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    return store;
}

static void fill(double *numbers, size_t count, double phase)
{
    for (size_t i = 0; i < count; i++) {
        numbers[i] = cos(phase + (double)i);
    }
}

/* The position of nonzero x in a dense array of the modes without a vector. */
static size_t place_of(unsigned x, const double *const *vectors)
{
    size_t place = 0;

    for (unsigned n = 0; n < 3; n++) {
        place = vectors[n] == NULL ? place * dims[n] + nonzeros[x].at[n] : place;
    }
    return place;
}

/* Compares the text of a store with dense sums; indices of the remaining modes are 1-based. */
static void check_store(const char *path, const double *const *vectors, const double *want)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    char output[512], line[256];
    double found[CELLS] = {0};
    uint64_t lines = 0;
    FILE *file;

    snprintf(output, sizeof output, "%s/result.tns", home());
    (void)remove(output);
    API_OK(sluice_export(path, output, NULL, &lines, &err), &err);
    file = fopen(output, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    while (fgets(line, sizeof line, file) != NULL) {
        size_t place = 0;
        char *at = line;

        for (unsigned n = 0; n < 3; n++) {
            place = vectors[n] == NULL ? place * dims[n] + strtoul(at, &at, 10) - 1 : place;
        }
        CU_ASSERT_FATAL(place < CELLS);
        found[place] = strtod(at, NULL);
    }
    CU_ASSERT_EQUAL(fclose(file), 0);
    for (unsigned i = 0; i < CELLS; i++) {
        CU_ASSERT_DOUBLE_EQUAL(found[i], want[i], 1e-12);
    }
}

/* The product with vectors of a set of modes, by list and by the library. */
static void check_ttv(const struct sluice_store *store,
                      unsigned modes,
                      const struct sluice_ttv_options *options)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_ttv_report report = {.struct_bytes = sizeof report};
    double numbers[3][TUBES], want[CELLS] = {0};
    const double *vectors[3] = {NULL};
    char path[512];

    snprintf(path, sizeof path, "%s/product.slc", home());
    for (unsigned n = 0; n < 3; n++) {
        fill(numbers[n], dims[n], n);
        vectors[n] = (modes >> n & 1) != 0 ? numbers[n] : NULL;
    }
    for (unsigned x = 0; x < NNZ; x++) {
        double product = nonzeros[x].value;

        for (unsigned n = 0; n < 3; n++) {
            product *= vectors[n] != NULL ? vectors[n][nonzeros[x].at[n]] : 1;
        }
        want[place_of(x, vectors)] += product;
    }
    API_OK(sluice_ttv(store, vectors, modes == 7 ? NULL : path, options, &report, &err), &err);
    CU_ASSERT(report.bytes_read > 0);
    if (modes == 7) {
        CU_ASSERT_EQUAL(report.order, 0);
        CU_ASSERT_DOUBLE_EQUAL(report.number, want[0], 1e-12);
    } else {
        unsigned k = 0;

        for (unsigned n = 0; n < 3; n++) {
            CU_ASSERT(vectors[n] != NULL || report.dims[k++] == dims[n]);
        }
        CU_ASSERT_EQUAL(report.order, k);
        CU_ASSERT(report.nnz > 0 && report.nnz <= NNZ && report.store_bytes > 0);
        check_store(path, vectors, want);
    }
}

static void multiplies_by_vectors(void)
{
    for (unsigned relabel = 0; relabel < 2; relabel++) {
        struct sluice_store *store = small_store((enum sluice_relabel)relabel);
        struct sluice_ttv_options options = {.struct_bytes = sizeof options};

        options.output.overwrite = 1;
        for (unsigned modes = 1; modes < 8; modes++) {
            options.compute.io = modes % 2 != 0 ? SLUICE_IO_PREAD : SLUICE_IO_MMAP;
            options.compute.schedule = (enum sluice_schedule)(modes % 3);
            options.run.threads = 1 + modes % 4;
            check_ttv(store, modes, &options);
        }
        sluice_store_close(store);
    }
}

/* Impossible products are errors and leave no files. */
static void refuses_vectors(void)
{
    atomic_int stop = 1;
    const double bad[ROWS] = {1, NAN, 1, 1}, good[ROWS] = {1, 1, 1, 1};
    const double *vectors[3] = {NULL};
    struct sluice_ttv_report report = {.struct_bytes = sizeof report, .nnz = 99};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_ttv_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = small_store(SLUICE_RELABEL_NONE), *other = NULL;
    char path[512];

    snprintf(path, sizeof path, "%s/refused.slc", home());
    REFUSED(sluice_ttv(store, vectors, path, NULL, &report, &err), SLUICE_ERR_USAGE,
            "no mode has a vector");
    vectors[0] = bad;
    REFUSED(sluice_ttv(store, vectors, path, NULL, &report, &err), SLUICE_ERR_INPUT,
            "number 2 of the vector");
    vectors[0] = good;
    REFUSED(sluice_ttv(store, vectors, NULL, NULL, &report, &err), SLUICE_ERR_USAGE,
            "needs an output store");
    REFUSED(sluice_ttv(store, vectors, NULL, NULL, NULL, &err), SLUICE_ERR_USAGE,
            "output and report are both NULL");
    options.output.codec = (enum sluice_codec)9;
    REFUSED(sluice_ttv(store, vectors, path, &options, &report, &err), SLUICE_ERR_USAGE, "codec 9");
    options.output.codec = SLUICE_CODEC_LZ4;
    options.run.stop = &stop;
    REFUSED(sluice_ttv(store, vectors, path, &options, &report, &err), SLUICE_ERR_INTERRUPTED, "");
    options.run.stop = NULL;
    options.run.memory_bytes = 1 << 20;
    REFUSED(sluice_ttv(store, vectors, path, &options, &report, &err), SLUICE_ERR_BUDGET,
            "MiB of memory or more");
    CU_ASSERT_EQUAL(report.nnz, 99);
    CU_ASSERT_NOT_EQUAL(sluice_store_open(path, &other, NULL), SLUICE_OK);
    options.struct_bytes = 3;
    REFUSED(sluice_ttv(store, vectors, path, &options, &report, &err), SLUICE_ERR_USAGE,
            "struct_bytes");
    sluice_store_close(store);
}

/* The numbers of a .npy file, of `width` bytes each; returns their count. */
static size_t read_npy(const char *folder, const char *name, size_t width, void *numbers)
{
    unsigned char head[10];
    char path[600];
    size_t count;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fread(head, 1, sizeof head, file), sizeof head);
    CU_ASSERT_EQUAL(fseek(file, head[8] | head[9] << 8, SEEK_CUR), 0);
    count = fread(numbers, width, CELLS, file);
    CU_ASSERT_EQUAL(fclose(file), 0);
    return count;
}

/* Compares every row of the result with a sum over the list. */
static void check_ttm(const char *folder, unsigned mode, uint32_t columns, const double *matrix)
{
    int64_t coords[CELLS] = {0};
    double rows[CELLS] = {0}, magnitude = 0, total = 0;
    const size_t fibers = read_npy(folder, "coords.npy", sizeof *coords, coords) / 2;
    unsigned found = 0;

    CU_ASSERT_EQUAL(read_npy(folder, "rows.npy", sizeof *rows, rows), fibers * columns);
    for (size_t f = 0; f < fibers; f++) {
        for (uint32_t r = 0; r < columns; r++) {
            double want = 0;

            for (unsigned x = 0; x < NNZ; x++) {
                const unsigned *at = nonzeros[x].at;

                if (at[mode == 0 ? 1 : 0] == coords[2 * f] &&
                    at[mode == 2 ? 1 : 2] == coords[2 * f + 1]) {
                    want += nonzeros[x].value * matrix[at[mode] * columns + r];
                    found += r == 0;
                }
            }
            CU_ASSERT_DOUBLE_EQUAL(rows[f * columns + r], want, 1e-12);
            total += want;
            magnitude += fabs(want);
        }
    }
    CU_ASSERT_EQUAL(found, NNZ);
    CU_ASSERT(fabs(total) <= magnitude);
}

static void multiplies_by_a_matrix(void)
{
    double matrix[TUBES * 3];
    char folder[512];

    snprintf(folder, sizeof folder, "%s/ttm", home());
    fill(matrix, SLC_COUNT(matrix), 0.5);
    for (unsigned i = 0; i < 6; i++) {
        struct sluice_store *store = small_store((enum sluice_relabel)(i % 2));
        struct sluice_ttm_report report = {.struct_bytes = sizeof report};
        struct sluice_error err = SLUICE_ERROR_INIT;
        struct sluice_ttm_options options = {.struct_bytes = sizeof options};

        options.run.threads = 1 + i;
        options.nonzeros = i > 2;
        API_OK(sluice_ttm(store, i % 3, 3, matrix, folder, &options, &report, &err), &err);
        check_ttm(folder, i % 3, 3, matrix);
        CU_ASSERT(report.fibers > 0 && report.fibers <= NNZ);
        CU_ASSERT(report.bytes_read > 0 && report.bytes_written > 0 && report.sorted <= 1);
        sluice_store_close(store);
    }
}

static void refuses_a_matrix(void)
{
    atomic_int stop = 1;
    const double matrix[TUBES] = {1, 2, 3, 4, 5}, beyond[COLUMNS] = {1, 1e39, 1};
    const double wide[COLUMNS * 2] = {1, 2, 3, 4, NAN, 6};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_ttm_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = small_store(SLUICE_RELABEL_NONE);
    char folder[512], inside[600];
    FILE *file;

    snprintf(folder, sizeof folder, "%s/refused", home());
    snprintf(inside, sizeof inside, "%s/small.slc/out", home());
    REFUSED(sluice_ttm(store, 3, 1, matrix, folder, NULL, NULL, &err), SLUICE_ERR_USAGE,
            "mode 4 does not exist");
    REFUSED(sluice_ttm(store, 1, 0, matrix, folder, NULL, NULL, &err), SLUICE_ERR_USAGE,
            "the rank is 0");
    REFUSED(sluice_ttm(store, 1, 1, matrix, inside, NULL, NULL, &err), SLUICE_ERR_USAGE,
            "is inside the folder of a store");
    options.compute.precision = SLUICE_F32;
    REFUSED(sluice_ttm(store, 1, 1, beyond, folder, &options, NULL, &err), SLUICE_ERR_INPUT,
            "number 2 of the vector, counting from 1, is 1e+39, beyond the range of f32");
    options.compute.precision = SLUICE_F64;
    REFUSED(sluice_ttm(store, 1, 2, wide, folder, &options, NULL, &err), SLUICE_ERR_INPUT,
            "row 3, column 1, counting from 1, is nan");
    options.run.stop = &stop;
    REFUSED(sluice_ttm(store, 2, 1, matrix, folder, &options, NULL, &err), SLUICE_ERR_INTERRUPTED,
            "");
    options.run.stop = NULL;
    options.run.memory_bytes = 1 << 20;
    REFUSED(sluice_ttm(store, 2, 1, matrix, folder, &options, NULL, &err), SLUICE_ERR_BUDGET,
            "MiB of memory or more");
    snprintf(inside, sizeof inside, "%s/rows.npy", folder);
    file = fopen(inside, "rb");
    CU_ASSERT_PTR_NULL(file);
    sluice_store_close(store);
}

/* Replaces the store of small_store with one of another tensor of the same shape. */
static void replace_store(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    char input[512], path[512];
    FILE *file;

    snprintf(input, sizeof input, "%s/other.tns", home());
    snprintf(path, sizeof path, "%s/small.slc", home());
    file = fopen(input, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT(fprintf(file, "4 3 5 9\n1 1 1 -7\n2 2 2 4\n3 1 4 6\n") > 0);
    CU_ASSERT_EQUAL(fclose(file), 0);
    options.output.overwrite = 1;
    API_OK(sluice_convert(input, path, &options, NULL, &err), &err);
}

static void multiply_ones(const struct sluice_store *store, double output[ROWS])
{
    const double ones[TUBES] = {1, 1, 1, 1, 1};
    const double *const factors[3] = {NULL, ones, ones};
    struct sluice_error err = SLUICE_ERROR_INIT;

    API_OK(sluice_mttkrp(store, 0, 1, factors, output, ROWS, NULL, &err), &err);
}

/* An open store is the tensor that it was when it was opened. */
static void keeps_its_tensor(void)
{
    for (unsigned relabel = 0; relabel < 2; relabel++) {
        struct sluice_store *store = small_store((enum sluice_relabel)relabel), *now = NULL;
        struct sluice_error err = SLUICE_ERROR_INIT;
        struct sluice_ttv_options options = {.struct_bytes = sizeof options};
        double matrix[TUBES * 3], before[ROWS], after[ROWS];
        char path[512];

        multiply_ones(store, before);
        replace_store();
        multiply_ones(store, after);
        CU_ASSERT_EQUAL(memcmp(before, after, sizeof before), 0);
        options.output.overwrite = 1;
        for (unsigned modes = 1; modes < 8; modes++) {
            options.compute.io = (enum sluice_io)(modes % 4);
            check_ttv(store, modes, &options);
        }
        fill(matrix, SLC_COUNT(matrix), 0.5);
        snprintf(path, sizeof path, "%s/kept", home());
        API_OK(sluice_ttm(store, 1, 3, matrix, path, NULL, NULL, &err), &err);
        check_ttm(path, 1, 3, matrix);
        snprintf(path, sizeof path, "%s/small.slc", home());
        API_OK(sluice_store_open(path, &now, &err), &err);
        multiply_ones(now, after);
        CU_ASSERT_EQUAL(after[3], 9);
        sluice_store_close(now);
        sluice_store_close(store);
    }
}

/* Computes parts of a product with a vector in mode 2 and joins them; returns the path. */
static const char *
join_parts(const struct sluice_store *store, const double *const *vectors, const char *joined)
{
    static char path[512];
    static char names[PARTS][512];
    const char *paths[PARTS];
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_ttv_options options = {.struct_bytes = sizeof options, .parts = PARTS};
    struct sluice_join_options join = {.struct_bytes = sizeof join, .overwrite = 1};

    options.output.overwrite = 1;
    for (uint32_t p = 0; p < PARTS; p++) {
        snprintf(names[p], sizeof names[p], "%s/part%u.slc", home(), p);
        paths[PARTS - 1 - p] = names[p];
        options.part = p;
        API_OK(sluice_ttv(store, vectors, names[p], &options, NULL, &err), &err);
    }
    snprintf(path, sizeof path, "%s/%s", home(), joined);
    API_OK(sluice_join(PARTS, paths, path, &join, &err), &err);
    REFUSED(sluice_join(PARTS - 1, paths, path, &join, &err), SLUICE_ERR_INPUT, "part 1 of 3");
    return path;
}

static void computes_parts(void)
{
    static const double ones[TUBES] = {1, 1, 1, 1, 1};
    const double *const vectors[3] = {NULL, NULL, ones};
    const double *const factors[3] = {NULL, ones, ones};
    struct sluice_store *store = small_store(SLUICE_RELABEL_NONE);
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_mttkrp_options options = {.struct_bytes = sizeof options, .parts = PARTS};
    struct sluice_ttv_options wrong = {.struct_bytes = sizeof wrong, .part = 3, .parts = PARTS};
    double want[CELLS] = {0}, whole[ROWS], sum[ROWS] = {0};

    for (unsigned x = 0; x < NNZ; x++) {
        want[place_of(x, vectors)] += nonzeros[x].value;
    }
    check_store(join_parts(store, vectors, "joined.slc"), vectors, want);
    REFUSED(sluice_ttv(store, vectors, "x.slc", &wrong, NULL, &err), SLUICE_ERR_USAGE,
            "no part 4 of 3");
    multiply_ones(store, whole);
    for (options.part = 0; options.part < PARTS; options.part++) {
        double some[ROWS];

        API_OK(sluice_mttkrp(store, 0, 1, factors, some, ROWS, &options, &err), &err);
        for (unsigned i = 0; i < ROWS; i++) {
            CU_ASSERT(some[i] == 0 || sum[i] == 0);
            sum[i] += some[i];
        }
    }
    CU_ASSERT_EQUAL(memcmp(sum, whole, sizeof sum), 0);
    sluice_store_close(store);
}

SLC_SUITE(products)
{
    static const struct slc_test tests[] = {
        {"vectors in every set of modes", multiplies_by_vectors},
        {"vectors that are refused", refuses_vectors},
        {"a matrix in every mode", multiplies_by_a_matrix},
        {"matrices that are refused", refuses_a_matrix},
        {"a store that is replaced while it is open", keeps_its_tensor},
        {"parts", computes_parts},
    };

    return slc_test_main("api products", tests, SLC_COUNT(tests), argc, argv);
}
