/* Counting rows and splitting them into partitions: counts agree with a naive histogram and have
 * the required resolution; partitions are full, whole rows or pieces of one row, the same for any
 * number of threads; modes of size 1 and 2^62, hot rows, one nonzero and none. */
#include "base/error/fault.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "convert/layout/sorted_cuts.h"
#include "faulty_files.h"
#include "make_store.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned team_sizes[] = {1, 2, 5};

static const char *write_store(const struct slc_made_tensor *tensor)
{
    static char path[4096];
    static unsigned number;
    struct slc_error err = SLC_ERROR_INIT;

    (void)snprintf(path, sizeof path, "%s/x%u.slc", slc_test_folder(), number++);
    SLC_ASSERT_OK(slc_made_store_write(tensor, NULL, path, SLC_CODEC_PACKED, 16384, &err), &err);
    return path;
}

static int compare_rows(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Row of every nonzero, ascending. */
static uint64_t *sorted_rows(const struct slc_made_tensor *tensor, unsigned mode)
{
    uint64_t *rows = malloc((tensor->nnz + 1) * sizeof *rows);

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        slc_key_decode(&tensor->keys, slc_key_join(tensor->key_lo[i], tensor->key_hi[i]), coords);
        rows[i] = coords[mode];
    }
    qsort(rows, tensor->nnz, sizeof *rows, compare_rows);
    return rows;
}

/* Number of sorted rows in first .. last. */
static uint64_t naive_count(const uint64_t *rows, uint64_t nnz, uint64_t first, uint64_t last)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < nnz; i++) {
        count += rows[i] >= first && rows[i] <= last;
    }
    return count;
}

static void check_counts(const struct slc_row_counts *counts,
                         const uint64_t *rows,
                         const struct slc_layout_info *info,
                         uint64_t run_nnz)
{
    uint64_t next = 0, total = 0;

    for (uint64_t i = 0; i < counts->count; i++) {
        const struct slc_row_run *run = &counts->runs[i];
        uint64_t last = run->first_row + run->rows - 1;

        CU_ASSERT_FATAL(run->first_row >= next && run->rows > 0 && run->nnz > 0);
        CU_ASSERT_EQUAL(run->nnz, naive_count(rows, info->nnz, run->first_row, last));
        CU_ASSERT(run->nnz <= run_nnz || run->rows == 1);
        next = last + 1;
        total += run->nnz;
    }
    CU_ASSERT_EQUAL(total, info->nnz);
}

static void check_cuts(const struct slc_sorted_cuts *cuts,
                       const uint64_t *rows,
                       uint64_t nnz,
                       uint64_t part_nnz)
{
    uint64_t total = 0, row_nnz = 0;

    for (uint64_t i = 0; i < cuts->count; i++) {
        const struct slc_sorted_part *part = &cuts->parts[i];
        const struct slc_sorted_part *before = i > 0 ? part - 1 : NULL;

        CU_ASSERT_FATAL(part->nnz > 0 && part->nnz <= part_nnz);
        if (part->continued) {
            CU_ASSERT_FATAL(before != NULL && part->first_row == before->last_row &&
                            part->first_row == part->last_row &&
                            before->first_row == before->last_row);
            row_nnz += part->nnz;
        } else {
            CU_ASSERT(before == NULL || part->first_row > before->last_row);
            row_nnz = part->nnz;
        }
        if (i + 1 == cuts->count || !cuts->parts[i + 1].continued) {
            CU_ASSERT_EQUAL(row_nnz, naive_count(rows, nnz, part->first_row, part->last_row));
        }
        total += part->nnz;
    }
    CU_ASSERT_EQUAL(total, nnz);
    CU_ASSERT((cuts->count + 1) * sizeof *cuts->parts <=
              (3 * (nnz / part_nnz) + 2) * sizeof *cuts->parts);
}

/* Counts and splits all modes with several targets and teams. */
static void check_tensor(const struct slc_made_tensor *tensor)
{
    static const uint64_t targets[] = {1, 7, 100, 1000, UINT64_C(1) << 20};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_store store = {0};

    SLC_ASSERT_OK(slc_store_open(slc_quick_files(), write_store(tensor), &store, &err), &err);
    for (unsigned mode = 0; mode < tensor->order; mode++) {
        uint64_t *rows = sorted_rows(tensor, mode);

        for (size_t t = 0; t < SLC_COUNT(targets); t++) {
            struct slc_row_counts first = {0};

            for (size_t w = 0; w < SLC_COUNT(team_sizes); w++) {
                struct slc_tile_scan_options scan = {.files = store.files,
                                                     .reader = store.reader,
                                                     .workers = team_sizes[w],
                                                     .mode = mode};
                struct slc_row_counts counts = {0};
                struct slc_sorted_cuts cuts = {0};

                SLC_ASSERT_OK(slc_row_count(&scan, targets[t], &counts, &err), &err);
                if (w == 0) {
                    check_counts(&counts, rows, slc_reader_info(store.reader), targets[t]);
                    SLC_ASSERT_OK(slc_sorted_cut(&counts, targets[t], &cuts, &err), &err);
                    check_cuts(&cuts, rows, tensor->nnz, targets[t]);
                    slc_sorted_cuts_destroy(&cuts);
                    first = counts;
                    continue;
                }
                CU_ASSERT_EQUAL_FATAL(counts.count, first.count);
                CU_ASSERT(memcmp(counts.runs, first.runs, counts.count * sizeof *counts.runs) == 0);
                slc_row_counts_destroy(&counts);
            }
            slc_row_counts_destroy(&first);
        }
        free(rows);
    }
    slc_store_close(&store);
}

static void test_shapes(void)
{
    static const struct {
        unsigned order;
        uint64_t dims[SLC_MAX_ORDER];
        uint64_t nnz;
    } shapes[] = {
        {1, {1}, 1},
        {1, {5}, 0},
        {1, {100000}, 2000},
        {2, {1, 3000}, 2000},
        {3, {UINT64_C(1) << 62, 3, 2}, 1500},
        {3, {70000, 65536, 65537}, 2000},
        {6, {3, 4, 5, 6, 7, 1}, 1800},
    };

    for (size_t i = 0; i < SLC_COUNT(shapes); i++) {
        struct slc_made_tensor tensor;

        slc_made_tensor_create(&tensor, shapes[i].order, shapes[i].dims, shapes[i].nnz,
                               SLC_MADE_COUNTS, slc_test_seed() + i);
        check_tensor(&tensor);
        slc_made_tensor_destroy(&tensor);
    }
}

/* Most nonzeros in three adjacent rows of a very large mode: every level is needed. */
static void test_hot_rows(void)
{
    static const uint64_t hot[] = {(UINT64_C(1) << 45) + 17, (UINT64_C(1) << 45) + 18,
                                   (UINT64_C(1) << 45) + 300};
    const uint64_t dims[] = {UINT64_C(1) << 50, 4000};
    struct slc_made_tensor tensor;
    uint64_t kept = 0;

    slc_made_tensor_create(&tensor, 2, dims, 1500, SLC_MADE_COUNTS, slc_test_seed());
    for (uint64_t i = 0; i < tensor.nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];
        slc_u128 key;

        slc_key_decode(&tensor.keys, slc_key_join(tensor.key_lo[i], tensor.key_hi[i]), coords);
        coords[0] = i % 5 == 0 ? coords[0] : hot[i % 3];
        key = slc_key_encode(&tensor.keys, coords);
        tensor.key_lo[i] = (uint64_t)key;
        tensor.key_hi[i] = (uint64_t)(key >> 64);
    }
    /* Insertion sort: keys have at most 64 bits here; equal ones are dropped. */
    for (uint64_t i = 1; i < tensor.nnz; i++) {
        uint64_t key = tensor.key_lo[i], j = i;

        for (; j > 0 && tensor.key_lo[j - 1] > key; j--) {
            tensor.key_lo[j] = tensor.key_lo[j - 1];
        }
        tensor.key_lo[j] = key;
    }
    for (uint64_t i = 0; i < tensor.nnz; i++) {
        if (kept == 0 || tensor.key_lo[i] != tensor.key_lo[kept - 1]) {
            tensor.key_lo[kept] = tensor.key_lo[i];
            tensor.key_hi[kept++] = 0;
        }
    }
    tensor.nnz = kept;
    check_tensor(&tensor);
    slc_made_tensor_destroy(&tensor);
}

static void test_target(void)
{
    CU_ASSERT_EQUAL(slc_sorted_part_nnz(0), 8192);
    CU_ASSERT_EQUAL(slc_sorted_part_nnz(64 * 10000), 10000);
    CU_ASSERT_EQUAL(slc_sorted_part_nnz(UINT64_C(1) << 40), 1 << 20);
    CU_ASSERT(slc_sorted_cuts_memory_bytes(0) > 0);
}

/* Compares partitions with greedy partitions that were computed by hand. */
static void test_greedy(void)
{
    struct slc_row_run runs[] = {{0, 4, 6},   {4, 4, 4},  {8, 4, 1},
                                 {12, 1, 25}, {20, 1, 9}, {21, 5, 1}};
    const struct slc_sorted_part expected[] = {{0, 7, 10, false},  {8, 11, 1, false},
                                               {12, 12, 9, false}, {12, 12, 9, true},
                                               {12, 12, 7, true},  {20, 25, 10, false}};
    const struct slc_row_counts counts = {runs, SLC_COUNT(runs), 1};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_sorted_cuts cuts = {0};

    SLC_ASSERT_OK(slc_sorted_cut(&counts, 10, &cuts, &err), &err);
    CU_ASSERT_EQUAL_FATAL(cuts.count, SLC_COUNT(expected));
    CU_ASSERT_EQUAL(cuts.split_rows, 1);
    for (size_t i = 0; i < SLC_COUNT(expected); i++) {
        CU_ASSERT_EQUAL(cuts.parts[i].first_row, expected[i].first_row);
        CU_ASSERT_EQUAL(cuts.parts[i].last_row, expected[i].last_row);
        CU_ASSERT_EQUAL(cuts.parts[i].nnz, expected[i].nnz);
        CU_ASSERT_EQUAL(cuts.parts[i].continued, expected[i].continued);
    }
    slc_sorted_cuts_destroy(&cuts);
}

static void test_faults(void)
{
    const uint64_t dims[] = {200000, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_store store = {0};
    struct slc_tile_scan_options scan = {.workers = 2};

    slc_made_tensor_create(&tensor, 2, dims, 3000, SLC_MADE_COUNTS, slc_test_seed());
    SLC_ASSERT_OK(slc_store_open(slc_quick_files(), write_store(&tensor), &store, &err), &err);
    scan.files = store.files;
    scan.reader = store.reader;
    for (uint64_t k = 1;; k++) {
        struct slc_row_counts counts = {0};
        struct slc_sorted_cuts cuts = {0};
        enum slc_status status;

        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_row_count(&scan, 2, &counts, &err);
        if (status == SLC_OK) {
            status = slc_sorted_cut(&counts, 2, &cuts, &err);
        }
        slc_row_counts_destroy(&counts);
        slc_sorted_cuts_destroy(&cuts);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, &err);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
    slc_store_close(&store);
    slc_made_tensor_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"runs and partitions of random tensors", test_shapes},
    {"hot rows in a long mode", test_hot_rows},
    {"nonzeros of a partition", test_target},
    {"partitions are filled in order", test_greedy},
    {"failing memory", test_faults},
};

SLC_SUITE(sorted_cuts)
{
    return slc_test_main("sorted_cuts", tests, SLC_COUNT(tests), argc, argv);
}
