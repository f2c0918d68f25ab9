/* The bands of a factor's columns against plain minima and maxima: fewer, as many and more rows
 * than bands, factors of several pieces, selected columns, and errors. */
#include "report/factors/factor_rows.h"

#include "base/memory/memory.h"
#include "base/random.h"
#include "slc_test.h"
#include "storage/model/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BANDS_MAX = 100 };

static char path[300];

static double entry(uint64_t row, uint32_t col)
{
    return slc_random_normal(slc_test_seed(), col, row);
}

static void write_factor(uint64_t length, uint32_t rank)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix factor;

    (void)snprintf(path, sizeof path, "%s/mode-1.npy", slc_test_folder());
    SLC_ASSERT_OK(slc_matrix_create(&factor, SLC_F64, length, rank, &err), &err);
    for (uint64_t i = 0; i < length; i++) {
        for (uint32_t c = 0; c < rank; c++) {
            slc_matrix_set(&factor, i, c, entry(i, c));
        }
    }
    SLC_ASSERT_OK(slc_npy_write(NULL, path, &factor, &err), &err);
    slc_matrix_destroy(&factor);
}

/* A factor in memory, of either type, has the same bands as the same numbers in a file. */
static void compare_in_memory(const struct slc_column_bands *of_file, const struct slc_band *known)
{
    static struct slc_band found[2 * BANDS_MAX];
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_column_bands wanted = *of_file;
    const uint64_t count = (uint64_t)slc_column_bands_count(of_file) * of_file->column_count;
    struct slc_matrix factor;

    wanted.factor.path = NULL;
    wanted.factor.matrix = &factor;
    for (int type = 0; type < 2; type++) {
        bool equal = true;

        SLC_ASSERT_OK(slc_matrix_create(&factor, type == 0 ? SLC_F64 : SLC_F32,
                                        wanted.factor.length, wanted.factor.rank, &err),
                      &err);
        for (uint64_t i = 0; i < wanted.factor.length; i++) {
            for (uint32_t c = 0; c < wanted.factor.rank; c++) {
                slc_matrix_set(&factor, i, c, entry(i, c));
            }
        }
        SLC_ASSERT_OK(slc_column_bands_find(&wanted, found, &err), &err);
        for (uint64_t k = 0; k < count; k++) {
            equal = equal &&
                    found[k].low == (type == 0 ? known[k].low : (double)(float)known[k].low) &&
                    found[k].high == (type == 0 ? known[k].high : (double)(float)known[k].high);
        }
        CU_ASSERT(equal);
        slc_matrix_destroy(&factor);
    }
}

/* Checks that row `row` belongs to band row * count / length, rounded down. */
static void compare(uint64_t length, uint32_t rank, uint32_t bands)
{
    static struct slc_band found[2 * BANDS_MAX];
    struct slc_error err = SLC_ERROR_INIT;
    const uint32_t columns[2] = {rank - 1, 0};
    const struct slc_column_bands wanted = {.factor.path = path,
                                            .factor.length = length,
                                            .factor.rank = rank,
                                            .columns = columns,
                                            .column_count = 2,
                                            .bands = bands};
    const uint32_t count = slc_column_bands_count(&wanted);
    bool equal = true;

    write_factor(length, rank);
    CU_ASSERT(count == (length < bands ? length : bands));
    SLC_ASSERT_OK(slc_column_bands_find(&wanted, found, &err), &err);
    for (uint32_t c = 0; c < 2; c++) {
        struct slc_band plain[BANDS_MAX];

        for (uint32_t k = 0; k < count; k++) {
            plain[k] = (struct slc_band){INFINITY, -INFINITY};
        }
        for (uint64_t i = 0; i < length; i++) {
            struct slc_band *band = &plain[i * count / length];

            band->low = fmin(band->low, entry(i, columns[c]));
            band->high = fmax(band->high, entry(i, columns[c]));
        }
        for (uint32_t k = 0; k < count; k++) {
            equal = equal && plain[k].low == found[c * count + k].low &&
                    plain[k].high == found[c * count + k].high;
        }
    }
    CU_ASSERT(equal);
    compare_in_memory(&wanted, found);
}

static void against_plain(void)
{
    compare(1, 1, 1);
    compare(1, 2, 9);
    compare(99, 3, 100);
    compare(100, 3, 100);
    compare(101, 3, 100);
    compare(1000, 2, 1);
    compare(30011, 7, 64);
}

static void refused(void)
{
    struct slc_band found[4];
    struct slc_error err = SLC_ERROR_INIT;
    const uint32_t column = 0;
    struct slc_column_bands wanted = {.factor.path = path,
                                      .factor.length = 6,
                                      .factor.rank = 2,
                                      .columns = &column,
                                      .column_count = 1,
                                      .bands = 4};

    write_factor(5, 2);
    CU_ASSERT(slc_column_bands_find(&wanted, found, &err) == SLC_ERR_INPUT);
    CU_ASSERT_STRING_EQUAL(err.file, path);
}

SLC_SUITE(column_bands)
{
    static const struct slc_test tests[] = {{"as plain loops", against_plain},
                                            {"refused", refused}};

    return slc_test_main("column_bands", tests, SLC_COUNT(tests), argc, argv);
}
