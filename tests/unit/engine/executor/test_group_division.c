/* Division of work between devices: every block and every row once, blocks in an order that keeps
 * all devices busy, units of rows that do not depend on the number of devices. */
#include "cpu_groups_fixture.h"
#include "engine/executor/group_division.h"

#include "base/error/fault.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t dims[] = {60, 3, 5000};

/* Every block occurs once in the order, and blocks of a partition are contiguous and ascending. */
static void check_order(const struct slc_reader *reader, const struct slc_group_division *division)
{
    bool *seen = calloc(division->block_count + 1, sizeof *seen);
    uint64_t nnz[SLC_MAX_DEVICES] = {0};

    CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
    CU_ASSERT_EQUAL(division->block_count, slc_reader_info(reader)->block_count);
    for (uint64_t i = 0; i < division->block_count; i++) {
        const uint64_t block = division->order[i];
        struct slc_block_entry entry;

        CU_ASSERT_TRUE_FATAL(block < division->block_count);
        CU_ASSERT_FALSE(seen[block]);
        seen[block] = true;
        CU_ASSERT_TRUE_FATAL(division->owner[block] < division->devices);
        slc_reader_entry(reader, block, &entry);
        nnz[division->owner[block]] += entry.nnz;
        if (slc_reader_info(reader)->partition_count > 0) {
            struct slc_partition partition;

            slc_reader_partition(reader, entry.partition, &partition);
            CU_ASSERT(block == partition.first_block ||
                      (i > 0 && division->order[i - 1] == block - 1));
            CU_ASSERT_EQUAL(division->owner[block], division->owner[partition.first_block]);
        }
    }
    CU_ASSERT_EQUAL(memcmp(nnz, division->nnz, division->devices * sizeof *nnz), 0);
    free(seen);
}

/* At any point of the order no device is ahead by more than the work of a partition. */
static void check_pace(const struct slc_reader *reader, const struct slc_group_division *division)
{
    uint64_t done[SLC_MAX_DEVICES] = {0};
    uint64_t largest = 0, nnz = slc_reader_info(reader)->nnz;

    for (uint64_t i = 0; i < division->block_count; i++) {
        struct slc_block_entry entry;
        struct slc_partition partition = {0};

        slc_reader_entry(reader, division->order[i], &entry);
        if (slc_reader_info(reader)->partition_count > 0) {
            slc_reader_partition(reader, entry.partition, &partition);
        }
        largest = partition.nnz > largest ? partition.nnz : largest;
        largest = entry.nnz > largest ? entry.nnz : largest;
    }
    for (uint64_t i = 0, sum = 0; i < division->block_count; i++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, division->order[i], &entry);
        done[division->owner[division->order[i]]] += entry.nnz;
        sum += entry.nnz;
        for (unsigned d = 0; d < division->devices; d++) {
            const double want = (double)sum / (double)nnz * (double)division->nnz[d];
            const double ahead = (double)done[d] - want;

            CU_ASSERT(ahead <= 2.0 * (double)largest && ahead >= -2.0 * (double)largest);
        }
    }
}

/* Units are short and cover all rows once; ordinals number them by rows. */
static void
check_units(const struct slc_group_division *division, uint64_t rows, uint64_t unit_rows)
{
    struct slc_row_span *by_rows = calloc(division->unit_count + 1, sizeof *by_rows);
    uint64_t units = 0, row = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(by_rows);
    for (unsigned d = 0; d < division->devices; d++) {
        CU_ASSERT_PTR_EQUAL(division->pieces[d].ranges, division->units + units);
        units += division->pieces[d].count;
    }
    CU_ASSERT_EQUAL_FATAL(units, division->unit_count);
    for (uint64_t u = 0; u < units; u++) {
        CU_ASSERT_TRUE_FATAL(division->ordinal[u] < units);
        by_rows[division->ordinal[u]] = division->units[u];
    }
    for (uint64_t u = 0; u < units; u++) {
        CU_ASSERT_EQUAL(by_rows[u].first, row);
        CU_ASSERT(by_rows[u].end > row && by_rows[u].end - row <= unit_rows);
        row = by_rows[u].end;
    }
    CU_ASSERT_EQUAL(row, rows);
    free(by_rows);
}

static void check_shares(const struct slc_reader *reader,
                         enum slc_split split,
                         unsigned devices,
                         uint64_t rows,
                         uint64_t unit_rows)
{
    struct slc_group_division division;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(
        slc_group_division_create(reader, split, devices, rows, unit_rows, &division, &err), &err);
    check_order(reader, &division);
    check_pace(reader, &division);
    check_units(&division, rows, unit_rows);
    CU_ASSERT(division.unit_count <= slc_group_units_max(reader, devices, rows, unit_rows));
    slc_group_division_destroy(&division);
}

/* Equal shares of blocks: each device has about the same number of rows, also of a small mode. */
static void check_even_rows(const struct slc_reader *reader, uint64_t rows)
{
    struct slc_group_division division;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_group_division_create(reader, SLC_SPLIT_NNZ, 4, rows,
                                            slc_group_unit_rows(128, rows), &division, &err),
                  &err);
    for (unsigned d = 0; d < 4; d++) {
        uint64_t owned = 0;

        for (uint64_t i = 0; i < division.pieces[d].count; i++) {
            owned += division.pieces[d].ranges[i].end - division.pieces[d].ranges[i].first;
        }
        CU_ASSERT(owned > rows / 8 && owned < rows / 2);
    }
    slc_group_division_destroy(&division);
}

static void everything_is_given_once(void)
{
    static const unsigned counts[] = {1, 2, 3, 5, 64};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_layouts layouts;
    struct devices_store made;
    struct slc_store store;

    devices_store_create(&made, "shares", 3, dims, 30000, 700);
    SLC_ASSERT_OK(slc_store_open(NULL, made.path, &store, &err), &err);
    SLC_ASSERT_OK(slc_layouts_open(&store, SLC_LAYOUTS_SORTED, 7, UINT64_MAX, &layouts, &err),
                  &err);
    for (size_t c = 0; c < SLC_COUNT(counts); c++) {
        for (unsigned n = 0; n < 3; n++) {
            check_shares(layouts.reader[0], SLC_SPLIT_NNZ, counts[c], dims[n], 32);
            check_shares(layouts.reader[1 + n], SLC_SPLIT_PARTITIONS, counts[c], dims[n], 32);
            check_shares(layouts.reader[1 + n], SLC_SPLIT_PARTITIONS, counts[c], dims[n], 4096);
        }
    }
    check_even_rows(layouts.reader[0], 600);
    slc_layouts_close(&layouts);
    slc_store_close(&store);
    devices_store_destroy(&made);
}

/* Checks that the units are the same for one device and for four. */
static void compare_units(const struct slc_reader *reader, enum slc_split split, uint64_t rows)
{
    struct slc_group_division one, four;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_group_division_create(reader, split, 1, rows, 64, &one, &err), &err);
    SLC_ASSERT_OK(slc_group_division_create(reader, split, 4, rows, 64, &four, &err), &err);
    CU_ASSERT_EQUAL_FATAL(one.unit_count, four.unit_count);
    for (uint64_t u = 0; u < four.unit_count; u++) {
        const struct slc_row_span *same = &one.units[four.ordinal[u]];

        CU_ASSERT(same->first == four.units[u].first && same->end == four.units[u].end);
    }
    slc_group_division_destroy(&four);
    slc_group_division_destroy(&one);
}

/* Units, the granularity of sums, do not depend on their owners. */
static void units_follow_from_the_layout(void)
{
    struct slc_group_division one;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_layouts layouts;
    struct devices_store made;
    struct slc_store store;
    uint64_t k;

    devices_store_create(&made, "units", 3, dims, 20000, 900);
    SLC_ASSERT_OK(slc_store_open(NULL, made.path, &store, &err), &err);
    SLC_ASSERT_OK(slc_layouts_open(&store, SLC_LAYOUTS_SORTED, 4, UINT64_MAX, &layouts, &err),
                  &err);
    compare_units(layouts.reader[1], SLC_SPLIT_PARTITIONS, dims[2]);
    compare_units(layouts.reader[0], SLC_SPLIT_NNZ, dims[2]);
    compare_units(layouts.reader[0], SLC_SPLIT_NNZ, dims[1]);
    SLC_ASSERT_FAILS(slc_group_division_create(layouts.reader[0], SLC_SPLIT_PARTITIONS, 2, dims[2],
                                               64, &one, &err),
                     SLC_ERR_USAGE, &err, "no partitions");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(
        slc_group_division_create(layouts.reader[0], SLC_SPLIT_NNZ, 65, dims[2], 64, &one, &err),
        SLC_ERR_USAGE, &err, "65 devices");
    for (k = 1;; k++) {
        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        if (slc_group_division_create(layouts.reader[1], SLC_SPLIT_PARTITIONS, 2, dims[2], 64, &one,
                                      &err) == SLC_OK) {
            break;
        }
        CU_ASSERT_EQUAL(err.status, SLC_ERR_MEMORY);
        CU_ASSERT_PTR_NULL(one.owner);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT(k > 5);
    slc_group_division_destroy(&one);
    slc_layouts_close(&layouts);
    slc_store_close(&store);
    devices_store_destroy(&made);
}

static void names_and_sizes(void)
{
    enum slc_split split = SLC_SPLIT_PARTITIONS;

    CU_ASSERT(slc_split_parse("nnz", &split) && split == SLC_SPLIT_NNZ);
    CU_ASSERT(slc_split_parse(slc_split_name(SLC_SPLIT_PARTITIONS), &split));
    CU_ASSERT_FALSE(slc_split_parse("rows", &split));
    CU_ASSERT_EQUAL(slc_group_unit_rows(128, UINT64_C(1) << 30), 2048);
    CU_ASSERT_EQUAL(slc_group_unit_rows(128, 100000), 384);
    CU_ASSERT_EQUAL(slc_group_unit_rows(128, 1000), 64);
    CU_ASSERT_EQUAL(slc_group_unit_rows(UINT64_C(1) << 20, UINT64_C(1) << 30), 32);
    CU_ASSERT_EQUAL(slc_group_unit_rows(UINT64_C(1) << 20, 1), 32);
}

static const struct slc_test tests[] = {
    {"every block and row is assigned once", everything_is_given_once},
    {"units follow from the layout", units_follow_from_the_layout},
    {"names and sizes", names_and_sizes},
};

SLC_SUITE(group_division)
{
    return slc_test_main("engine group division", tests, SLC_COUNT(tests), argc, argv);
}
