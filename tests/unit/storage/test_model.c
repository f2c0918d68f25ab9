/* Models on disk: folders of .npy are read back, text forms keep every bit in any locale and have
 * the form that SPLATT and the Tensor Toolbox read, wrong folders are rejected with the file
 * name. */
#include "faulty_files.h"
#include "forge_file.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "base/random.h"
#include "storage/model/model.h"
#include "storage/model/npy.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ORDER = 3, RANK = 4 };

static const uint64_t dims[ORDER] = {5, 1, 12000};

/* A model with its parts. */
struct sample {
    struct slc_matrix factors[ORDER];
    double lambda[RANK];
    struct slc_model_view view;
};

static void make_sample(struct sample *sample, enum slc_value_type type)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(sample, 0, sizeof *sample);
    sample->view.order = ORDER;
    sample->view.rank = RANK;
    sample->view.lambda = sample->lambda;
    for (unsigned mode = 0; mode < ORDER; mode++) {
        SLC_ASSERT_OK(slc_matrix_create(&sample->factors[mode], type, dims[mode], RANK, &err),
                      &err);
        for (uint64_t row = 0; row < dims[mode]; row++) {
            for (uint32_t col = 0; col < RANK; col++) {
                slc_matrix_set(&sample->factors[mode], row, col,
                               slc_random_normal(slc_test_seed(), mode, row * RANK + col));
            }
        }
        sample->view.factors[mode] = &sample->factors[mode];
    }
    slc_matrix_set(&sample->factors[0], 0, 0, 5e-324);
    slc_matrix_set(&sample->factors[0], 1, 0, type == SLC_F32 ? -(double)FLT_MAX : -DBL_MAX);
    slc_matrix_set(&sample->factors[0], 2, 0, -0.0);
    for (unsigned r = 0; r < RANK; r++) {
        sample->lambda[r] = 1.0 / (r + 3.0);
    }
}

static void destroy_sample(struct sample *sample)
{
    for (unsigned mode = 0; mode < ORDER; mode++) {
        slc_matrix_destroy(&sample->factors[mode]);
    }
}

static void npy_folder(void)
{
    for (unsigned type = SLC_F32; type <= SLC_F64; type++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_matrix read[ORDER];
        struct sample sample;
        double lambda[RANK];
        uint32_t rank = 0;
        uint64_t wrong = 0;
        bool found = false;
        char folder[300];

        make_sample(&sample, (enum slc_value_type)type);
        snprintf(folder, sizeof folder, "%s/model", slc_test_folder());
        for (unsigned time = 0; time < 2; time++) { /* the second model replaces the first */
            SLC_ASSERT_OK(
                slc_model_write(slc_quick_files(), SLC_MODEL_NPY, folder, &sample.view, &err),
                &err);
        }
        SLC_ASSERT_OK(slc_model_read(NULL, folder, (enum slc_value_type)type, ORDER, dims,
                                     SLC_MAX_ORDER, &rank, read, &err),
                      &err);
        CU_ASSERT_EQUAL(rank, RANK);
        for (unsigned mode = 0; mode < ORDER; mode++) {
            for (uint64_t row = 0; row < dims[mode]; row++) {
                for (uint32_t col = 0; col < RANK; col++) {
                    wrong += slc_bits_f64(slc_matrix_get(&read[mode], row, col)) !=
                             slc_bits_f64(slc_matrix_get(&sample.factors[mode], row, col));
                }
            }
            slc_matrix_destroy(&read[mode]);
        }
        CU_ASSERT_EQUAL(wrong, 0);
        SLC_ASSERT_OK(slc_model_read_lambda(NULL, folder, RANK, lambda, &found, &err), &err);
        CU_ASSERT(found);
        CU_ASSERT_EQUAL(memcmp(lambda, sample.lambda, sizeof lambda), 0);
        destroy_sample(&sample);
    }
}

static void skipped_and_missing(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix read[ORDER];
    struct sample sample;
    double lambda[RANK];
    uint64_t other[ORDER];
    uint32_t rank = RANK;
    bool found = true;
    char folder[300];
    char path[320];

    make_sample(&sample, SLC_F64);
    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    SLC_ASSERT_OK(slc_model_write(slc_quick_files(), SLC_MODEL_NPY, folder, &sample.view, &err),
                  &err);
    snprintf(path, sizeof path, "%s/mode-2.npy", folder);
    CU_ASSERT_EQUAL(unlink(path), 0);
    SLC_ASSERT_OK(slc_model_read(NULL, folder, SLC_F64, ORDER, dims, 1, &rank, read, &err), &err);
    CU_ASSERT_PTR_NULL(read[1].buffer.data);
    CU_ASSERT_EQUAL(read[2].rows, dims[2]);
    for (unsigned mode = 0; mode < ORDER; mode++) {
        slc_matrix_destroy(&read[mode]);
    }
    SLC_ASSERT_FAILS(
        slc_model_read(NULL, folder, SLC_F64, ORDER, dims, SLC_MAX_ORDER, &rank, read, &err),
        SLC_ERR_IO, &err, "opening");
    CU_ASSERT_STRING_EQUAL(err.file, path);
    for (unsigned mode = 0; mode < ORDER; mode++) {
        slc_matrix_destroy(&read[mode]);
    }
    slc_error_clear(&err);
    rank = RANK + 1;
    SLC_ASSERT_FAILS(slc_model_read(NULL, folder, SLC_F64, ORDER, dims, 1, &rank, read, &err),
                     SLC_ERR_INPUT, &err, "5 x 4, but 5 x 5");
    slc_error_clear(&err);
    rank = 0;
    memcpy(other, dims, sizeof other);
    other[2]++;
    SLC_ASSERT_FAILS(slc_model_read(NULL, folder, SLC_F64, ORDER, other, 1, &rank, read, &err),
                     SLC_ERR_INPUT, &err, "12000 x 4, but 12001 x 4");
    for (unsigned mode = 0; mode < ORDER; mode++) {
        slc_matrix_destroy(&read[mode]);
    }
    slc_error_clear(&err);
    snprintf(path, sizeof path, "%s/lambda.npy", folder);
    SLC_ASSERT_FAILS(slc_model_read_lambda(NULL, folder, RANK + 1, lambda, &found, &err),
                     SLC_ERR_INPUT, &err, "4 x 1, but 5 x 1");
    CU_ASSERT_FALSE(found);
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(unlink(path), 0);
    SLC_ASSERT_OK(slc_model_read_lambda(NULL, folder, RANK, lambda, &found, &err), &err);
    CU_ASSERT_FALSE(found);
    destroy_sample(&sample);
}

/* A rank beyond the limit is refused before it reaches a kernel. */
static void rank_limit(void)
{
    const uint64_t one = 1;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix wide;
    struct slc_matrix read[1];
    uint32_t rank = 0;
    char folder[300];
    char path[320];

    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    snprintf(path, sizeof path, "%s/mode-1.npy", folder);
    SLC_ASSERT_OK(slc_matrix_create(&wide, SLC_F64, 1, SLC_MAX_RANK + 1, &err), &err);
    SLC_ASSERT_OK(slc_npy_write(slc_quick_files(), path, &wide, &err), &err);
    SLC_ASSERT_FAILS(
        slc_model_read(NULL, folder, SLC_F64, 1, &one, SLC_MAX_ORDER, &rank, read, &err),
        SLC_ERR_INPUT, &err, "4097");
    slc_matrix_destroy(&read[0]);
    slc_matrix_destroy(&wide);
}

/* Reads `rows` lines of `cols` numbers and compares them bit for bit. */
static uint64_t compare_rows(FILE *file, const struct slc_matrix *factor)
{
    uint64_t wrong = 0;

    for (uint64_t row = 0; row < factor->rows; row++) {
        char line[512] = "";
        char *at = line;

        wrong += fgets(line, sizeof line, file) == NULL || strchr(line, ',') != NULL;
        for (uint32_t col = 0; col < factor->cols; col++) {
            double value = strtod(at, &at);

            wrong += slc_bits_f64(value) != slc_bits_f64(slc_matrix_get(factor, row, col));
        }
        wrong += strcmp(at, "\n") != 0;
    }
    return wrong;
}

static void splatt_text(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sample sample;
    char stem[300];
    char path[320];
    char line[100];
    FILE *file;

    make_sample(&sample, SLC_F64);
    snprintf(stem, sizeof stem, "%s/out_", slc_test_folder());
    SLC_ASSERT_OK(slc_model_write(slc_quick_files(), SLC_MODEL_SPLATT, stem, &sample.view, &err),
                  &err);
    for (unsigned mode = 0; mode < ORDER; mode++) {
        snprintf(path, sizeof path, "%smode%u.mat", stem, mode + 1);
        file = fopen(path, "r");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        CU_ASSERT_EQUAL(compare_rows(file, &sample.factors[mode]), 0);
        CU_ASSERT_EQUAL(fgetc(file), EOF);
        (void)fclose(file);
    }
    snprintf(path, sizeof path, "%slambda.mat", stem);
    file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (unsigned r = 0; r < RANK; r++) {
        CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
        CU_ASSERT_EQUAL(strtod(line, NULL), sample.lambda[r]);
    }
    CU_ASSERT_EQUAL(fgetc(file), EOF);
    (void)fclose(file);
    destroy_sample(&sample);
}

static void ktensor_text(void)
{
    static const char *const head[] = {"ktensor\n", "3\n", "5 1 12000\n", "4\n"};
    struct slc_error err = SLC_ERROR_INIT;
    struct sample sample;
    char path[300];
    char line[200];
    char want[64];
    char *at = line;
    FILE *file;

    make_sample(&sample, SLC_F64);
    snprintf(path, sizeof path, "%s/model.ktensor", slc_test_folder());
    SLC_ASSERT_OK(slc_model_write(slc_quick_files(), SLC_MODEL_KTENSOR, path, &sample.view, &err),
                  &err);
    file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (size_t i = 0; i < SLC_COUNT(head); i++) {
        CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
        CU_ASSERT_STRING_EQUAL(line, head[i]);
    }
    CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
    for (unsigned r = 0; r < RANK; r++) {
        CU_ASSERT_EQUAL(strtod(at, &at), sample.lambda[r]);
    }
    CU_ASSERT_STRING_EQUAL(at, "\n");
    for (unsigned mode = 0; mode < ORDER; mode++) {
        CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
        CU_ASSERT_STRING_EQUAL(line, "matrix\n");
        CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
        CU_ASSERT_STRING_EQUAL(line, "2\n");
        CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
        snprintf(want, sizeof want, "%llu 4\n", (unsigned long long)dims[mode]);
        CU_ASSERT_STRING_EQUAL(line, want);
        CU_ASSERT_EQUAL(compare_rows(file, &sample.factors[mode]), 0);
    }
    CU_ASSERT_EQUAL(fgetc(file), EOF);
    (void)fclose(file);
    destroy_sample(&sample);
}

/* The same bytes in a locale with a decimal comma. */
static void any_locale(void)
{
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_forged plain;
    struct slc_forged comma;
    struct sample sample;
    const char *set = NULL;
    char path[300];

    make_sample(&sample, SLC_F64);
    snprintf(path, sizeof path, "%s/model.ktensor", slc_test_folder());
    SLC_ASSERT_OK(slc_model_write(slc_quick_files(), SLC_MODEL_KTENSOR, path, &sample.view, &err),
                  &err);
    slc_forged_load(&plain, path);
    for (size_t i = 0; i < SLC_COUNT(commas) && set == NULL; i++) {
        set = setlocale(LC_ALL, commas[i]);
    }
    if (set == NULL) {
        slc_test_skip("no locale with a decimal comma is installed");
    } else {
        SLC_ASSERT_OK(
            slc_model_write(slc_quick_files(), SLC_MODEL_KTENSOR, path, &sample.view, &err), &err);
        slc_forged_load(&comma, path);
        CU_ASSERT_EQUAL(plain.size, comma.size);
        CU_ASSERT(plain.size == comma.size && memcmp(plain.bytes, comma.bytes, plain.size) == 0);
        slc_forged_release(&comma);
        (void)setlocale(LC_ALL, "C");
    }
    slc_forged_release(&plain);
    destroy_sample(&sample);
}

static void faults(void)
{
    struct sample sample;
    struct slc_faulty faulty;

    make_sample(&sample, SLC_F64);
    slc_faulty_init(&faulty);
    for (unsigned form = SLC_MODEL_NPY; form <= SLC_MODEL_KTENSOR; form++) {
        char path[300];
        unsigned unharmed = 0;

        snprintf(path, sizeof path, "%s/m", slc_test_folder());
        for (uint64_t k = 1;; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EIO);
            status =
                slc_model_write(&faulty.table, (enum slc_model_form)form, path, &sample.view, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT(k > 5);
                break;
            }
            CU_ASSERT(status == SLC_ERR_IO || status == SLC_OK);
            unharmed += status == SLC_OK;
        }
        /* Failing to close the descriptor used only for the lock of each file is no error. */
        CU_ASSERT_EQUAL(unharmed, form == SLC_MODEL_KTENSOR ? 1 : sample.view.order + 1);
        for (uint64_t k = 1;; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            slc_fault_arm(SLC_FAULT_ALLOCATION, k);
            status = slc_model_write(slc_quick_files(), (enum slc_model_form)form, path,
                                     &sample.view, &err);
            if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    }
    destroy_sample(&sample);
}

static const struct slc_test tests[] = {
    {"a folder of .npy files comes back", npy_folder},
    {"a skipped mode, missing files, wrong shapes", skipped_and_missing},
    {"a rank beyond the limit", rank_limit},
    {"SPLATT's text carries every bit", splatt_text},
    {"ktensor text carries every bit", ktensor_text},
    {"the locale does not show", any_locale},
    {"every failing operation and allocation", faults},
};

SLC_SUITE(model)
{
    return slc_test_main("model", tests, SLC_COUNT(tests), argc, argv);
}
