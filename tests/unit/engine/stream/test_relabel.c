/* Rows of relabelled modes: each moves to its permuted place, in both directions, in f32 and f64
 * with padding unchanged; other modes are unchanged; a fault moves no row. */
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "engine/stream/relabel.h"
#include "storage/manifest/labels.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 1013, COLS = 5 };

/* The parts of a store needed for moving rows: mode 1 has a permutation. */
static void make_store(struct slc_store *store, char *folder, uint32_t *expected)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_labels labels;

    *store = (struct slc_store){.files = slc_files_system(), .path = folder};
    store->manifest.order = 2;
    store->manifest.dims[0] = ROWS;
    store->manifest.dims[1] = ROWS;
    SLC_ASSERT_OK(slc_labels_create(&labels, ROWS, &err), &err);
    for (uint32_t i = 0; i < ROWS; i++) {
        labels.label[i] = i;
    }
    for (uint32_t i = ROWS - 1; i > 0; i--) {
        uint32_t other = (uint32_t)slc_random_below(slc_test_seed(), 0, i, i + 1);
        uint32_t held = labels.label[i];

        labels.label[i] = labels.label[other];
        labels.label[other] = held;
    }
    memcpy(expected, labels.label, ROWS * sizeof *expected);
    SLC_ASSERT_OK(
        slc_labels_write(&labels, store->files, folder, 1, &store->manifest.permutations[0], &err),
        &err);
    store->manifest.permutation_count = 1;
    slc_labels_destroy(&labels);
}

static void fill(struct slc_matrix *matrix, enum slc_value_type type)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(matrix, type, ROWS, COLS, &err), &err);
    for (uint64_t i = 0; i < ROWS; i++) {
        for (uint32_t r = 0; r < COLS; r++) {
            slc_matrix_set(matrix, i, r, (double)(i * COLS + r));
        }
    }
}

/* Row i holds the initial contents of row from[i] (NULL: i). */
static uint64_t count_wrong(const struct slc_matrix *matrix, const uint32_t *from)
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < ROWS; i++) {
        uint64_t row = from != NULL ? from[i] : i;

        for (uint32_t r = 0; r < matrix->pitch; r++) {
            wrong += slc_matrix_get(matrix, i, r) != (r < COLS ? (double)(row * COLS + r) : 0.0);
        }
    }
    return wrong;
}

static void both_ways(void)
{
    static const enum slc_value_type types[] = {SLC_F32, SLC_F64};
    char folder[256];
    uint32_t labels[ROWS];
    struct slc_store store;

    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    make_store(&store, folder, labels);
    for (size_t t = 0; t < SLC_COUNT(types); t++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_matrix matrix;

        fill(&matrix, types[t]);
        SLC_ASSERT_OK(slc_relabel_rows(&store, 0, SLC_ROWS_OF_STORE, &matrix, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&matrix, NULL), 0);
        SLC_ASSERT_OK(slc_relabel_rows(&store, 1, SLC_ROWS_OF_INPUT, &matrix, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&matrix, labels), 0);
        SLC_ASSERT_OK(slc_relabel_rows(&store, 1, SLC_ROWS_OF_STORE, &matrix, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&matrix, NULL), 0);
        slc_matrix_destroy(&matrix);
    }
}

static void plans(void)
{
    struct slc_layout_info info = {.order = 3, .dims = {5000000, 3000000, 7000000}};

    CU_ASSERT_EQUAL(slc_relabel_memory_bytes(&info), 0);
    info.relabelled_modes = 1 << 1;
    CU_ASSERT_EQUAL(slc_relabel_memory_bytes(&info), slc_labels_memory_bytes(3000000));
    info.relabelled_modes |= 1 << 0;
    CU_ASSERT_EQUAL(slc_relabel_memory_bytes(&info), slc_labels_memory_bytes(5000000));
}

static void faults(void)
{
    char folder[256], path[300];
    uint32_t labels[ROWS];
    struct slc_store store;
    struct slc_matrix matrix;
    struct slc_error err = SLC_ERROR_INIT;

    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    make_store(&store, folder, labels);
    fill(&matrix, SLC_F64);
    for (uint64_t k = 1;; k++) {
        enum slc_status status;

        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_relabel_rows(&store, 1, SLC_ROWS_OF_INPUT, &matrix, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, &err);
            break;
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_EQUAL(count_wrong(&matrix, NULL), 0);
    }
    snprintf(path, sizeof path, "%s/perm-2.bin", folder);
    CU_ASSERT_EQUAL(truncate(path, 100), 0);
    SLC_ASSERT_FAILS(slc_relabel_rows(&store, 1, SLC_ROWS_OF_STORE, &matrix, &err), SLC_ERR_DAMAGED,
                     &err, "bytes");
    CU_ASSERT_PTR_NOT_NULL(strstr(err.file, "perm-2.bin"));
    CU_ASSERT_EQUAL(count_wrong(&matrix, labels), 0);
    slc_matrix_destroy(&matrix);
}

static const struct slc_test tests[] = {
    {"rows go where the permutation says, both ways", both_ways},
    {"memory for plans", plans},
    {"faults leave rows where they were", faults},
};

SLC_SUITE(relabel)
{
    return slc_test_main("relabel", tests, SLC_COUNT(tests), argc, argv);
}
