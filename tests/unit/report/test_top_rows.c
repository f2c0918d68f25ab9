/* The top rows of a factor equal those of a full sort: any shape, any number of rows, ties, signs,
 * both storage orders, and factors of several pieces. */
#include "report/factors/factor_rows.h"

#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "slc_test.h"
#include "storage/model/npy.h"
#include "storage/model/npy_header.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[300];
static bool signed_values; /* whether `compare` sorts by value instead of magnitude */

static int compare(const void *a, const void *b)
{
    const struct slc_top_row *x = a;
    const struct slc_top_row *y = b;
    const double u = signed_values ? x->value : fabs(x->value);
    const double v = signed_values ? y->value : fabs(y->value);

    if (u != v) {
        return u > v ? -1 : 1;
    }
    return x->row < y->row ? -1 : 1;
}

/* Values with many ties, and of both signs. */
static double entry(uint64_t row, uint32_t col)
{
    const double number = slc_random_normal(slc_test_seed(), col, row);

    return col % 2 == 0 ? number : round(2 * number);
}

static void write_matrix(uint64_t rows, uint32_t cols)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix matrix;

    SLC_ASSERT_OK(slc_matrix_create(&matrix, SLC_F64, rows, cols, &err), &err);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < cols; r++) {
            slc_matrix_set(&matrix, i, r, entry(i, r));
        }
    }
    SLC_ASSERT_OK(slc_npy_write(NULL, path, &matrix, &err), &err);
    slc_matrix_destroy(&matrix);
}

/* Writes the matrix column-major, as no writer of sluice does. */
static void write_fortran(uint64_t rows, uint32_t cols)
{
    const struct slc_npy_header header = {.kind = 'f',
                                          .item_bytes = 8,
                                          .fortran_order = true,
                                          .dimensions = 2,
                                          .shape = {rows, cols}};
    uint8_t head[SLC_NPY_STORED_BYTES];
    FILE *out = fopen(path, "wb");

    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    slc_npy_header_store(&header, head);
    CU_ASSERT_EQUAL(fwrite(head, 1, sizeof head, out), sizeof head);
    for (uint32_t r = 0; r < cols; r++) {
        for (uint64_t i = 0; i < rows; i++) {
            uint8_t bytes[8];

            slc_store_f64(bytes, entry(i, r));
            CU_ASSERT_EQUAL_FATAL(fwrite(bytes, 1, 8, out), 8);
        }
    }
    CU_ASSERT_EQUAL(fclose(out), 0);
}

static void check_against_sort(uint64_t rows, uint32_t cols, uint64_t wanted_rows, bool by_signed)
{
    const uint32_t columns[2] = {cols - 1, 0};
    const struct slc_top_rows_query wanted = {.factor.path = path,
                                              .factor.length = rows,
                                              .factor.rank = cols,
                                              .columns = columns,
                                              .column_count = 2,
                                              .rows = wanted_rows,
                                              .by_signed = by_signed};
    const uint64_t count = slc_top_rows_count(&wanted);
    struct slc_top_row *found = slc_calloc(2 * count, sizeof *found);
    struct slc_top_row *all = slc_calloc(rows, sizeof *all);
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t wrong = 0;

    CU_ASSERT_EQUAL(count, wanted_rows < rows ? wanted_rows : rows);
    SLC_ASSERT_OK(slc_top_rows_find(&wanted, found, &err), &err);
    for (unsigned c = 0; c < 2; c++) {
        for (uint64_t i = 0; i < rows; i++) {
            all[i] = (struct slc_top_row){.row = i, .value = entry(i, columns[c])};
        }
        signed_values = by_signed;
        qsort(all, rows, sizeof *all, compare);
        for (uint64_t k = 0; k < count; k++) {
            wrong += found[c * count + k].row != all[k].row ||
                     slc_bits_f64(found[c * count + k].value) != slc_bits_f64(all[k].value);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    slc_free(found);
    slc_free(all);
}

static void against_sort(void)
{
    static const uint64_t lengths[] = {1, 2, 7, 1000, 40000};
    static const uint64_t wanted[] = {1, 2, 10, 999, 1000, 5000};

    (void)snprintf(path, sizeof path, "%s/mode-1.npy", slc_test_folder());
    for (size_t l = 0; l < SLC_COUNT(lengths); l++) {
        for (unsigned form = 0; form < 4; form++) {
            const uint32_t cols = form % 2 == 0 ? 3 : 8;

            (form < 2 ? write_matrix : write_fortran)(lengths[l], cols);
            for (size_t w = 0; w < SLC_COUNT(wanted); w++) {
                check_against_sort(lengths[l], cols, wanted[w], w % 2 == 0);
            }
        }
    }
}

/* The wrong file, numbers that are not finite, allocations that fail. */
static void refused(void)
{
    static const uint32_t columns[] = {0};
    struct slc_top_rows_query wanted = {.factor.path = path,
                                        .factor.length = 5,
                                        .factor.rank = 3,
                                        .columns = columns,
                                        .column_count = 1,
                                        .rows = 2};
    struct slc_top_row found[2];
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status = SLC_ERR_MEMORY;
    double values[5] = {1, 2, (double)NAN, 3, 4};

    (void)snprintf(path, sizeof path, "%s/mode-1.npy", slc_test_folder());
    SLC_ASSERT_FAILS(slc_top_rows_find(&wanted, found, &err), SLC_ERR_IO, &err, "opening");
    slc_error_clear(&err);
    write_matrix(6, 3);
    SLC_ASSERT_FAILS(slc_top_rows_find(&wanted, found, &err), SLC_ERR_INPUT, &err,
                     "6 x 3, but 5 x 3");
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, path, values, 5, &err), &err);
    wanted.factor.rank = 1;
    SLC_ASSERT_FAILS(slc_top_rows_find(&wanted, found, &err), SLC_ERR_INPUT, &err, "number 3");
    CU_ASSERT_STRING_EQUAL(err.file, path);
    wanted.factor.length = 6;
    wanted.factor.rank = 3;
    write_matrix(6, 3);
    for (uint64_t k = 1; status == SLC_ERR_MEMORY; k++) {
        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_top_rows_find(&wanted, found, &err);
    }
    CU_ASSERT(slc_fault_seen(SLC_FAULT_ALLOCATION) > 0);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    SLC_ASSERT_OK(status, &err);
}

SLC_SUITE(top_rows)
{
    static const struct slc_test tests[] = {{"as a full sort", against_sort}, {"refused", refused}};

    return slc_test_main("top_rows", tests, SLC_COUNT(tests), argc, argv);
}
