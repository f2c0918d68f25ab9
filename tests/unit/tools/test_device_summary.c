/* The summary of `bench device` over a record made by hand. Two tensors of order 2 at rank 16 in
 * f64: a row of a factor has 128 bytes. The lists below derive the expected figures. "a + b ms" are
 * the times of modes 1 and 2.
 *
 * a.slc has mode sizes 8 x 8192 and 1e6 nonzeros, so its factors have 1 KiB and 1 MiB.
 *  - Ceiling: rows of 128 bytes are read at 800 GB/s in 1 KiB, at 600 in 64 KiB and at 200 in 16
 *    MiB. 1 MiB is half way from 2^16 to 2^24 bytes in the logarithm: 400 GB/s. The harmonic mean
 *    of both modes is 2 / (1/800 + 1/400) = 1600/3 GB/s.
 *  - sluice: 2 + 6 = 8 ms; slowest over fastest mode: 6/2 = 3; rate: 2e6 nonzeros / 8 ms = 0.25
 *    Gnnz/s. With 2 x 16 operations per nonzero, this is 8 GFLOP/s. With 128 + 128 + 4 bytes per
 *    nonzero, it is 65 GB/s, and the fraction of the ceiling is 65 / (1600/3) = 0.121875.
 *  - sluice with copies: 4 + 12 = 16 ms, which is 0.125 Gnnz/s, 8/16 = 0.5 of the rate in memory.
 *    Copies take 1 + 3 ms, kernels 2 + 6 ms, and the time in which either runs is 2.5 + 7.5 ms. The
 *    overlap, relative to the copies, is (4 + 8 - 10) / 4 = 0.5.
 *  - blco: 6 + 10 = 16 ms; ratio to sluice: 2; lowest ratio of a mode: min(6/2, 10/6) = 5/3. Both
 *    modes share a form, which is built in 32 ms, the time of 32/16 = 2 MTTKRPs in all modes. 272
 *    bytes per nonzero at 0.125 Gnnz/s are 34 GB/s.
 *  - genten-c: 3 + 4 = 7 ms to build the permutations of two modes. Mode 2 has no time, so there is
 *    no sum.
 *  - sluice on 2 devices: 1 + 3 = 4 ms; scaling: 8/4 = 2. The devices take 1 + 3 and 0.5 + 2.5 ms;
 *    their spread is (4 - 3) / 7.
 *  - amped: 5 + 7 = 12 ms. On 2 devices it takes 2 + 3 ms, and 0.5 + 0.5 ms to exchange rows;
 *    scaling: 12/6 = 2; ratio to sluice: 5/8. The devices take 2 + 3 and 1 + 3 ms; their spread is
 *    (5 - 4) / 9. Each mode has a form that is built in 9 ms, together 18 ms.
 *
 * b.slc has mode sizes 8 x 8. sluice takes 1 + 1 ms and blco 8 + 8 ms: the ratio is 8. The mean
 * ratio of blco over both tensors is sqrt(2 x 8) = 4, and its lowest ratio of a mode is 5/3. */
#include "slc_test.h"
#include "tools/bench/device/device_summary.h"

#include <math.h>
#include <string.h>

static const char *const made =
    "{'ceilings': ["
    " {'ceiling': 'read', 'working_bytes': 1048576, 'gb_per_s': 9000},"
    " {'ceiling': 'rows', 'row_bytes': 128, 'working_bytes': 16777216, 'gb_per_s': 200},"
    " {'ceiling': 'rows', 'row_bytes': 128, 'working_bytes': 1024, 'gb_per_s': 800},"
    " {'ceiling': 'rows', 'row_bytes': 128, 'working_bytes': 65536, 'gb_per_s': 600},"
    " {'ceiling': 'rows', 'row_bytes': 512, 'working_bytes': 1024, 'gb_per_s': 7000}],"
    "'rows': ["
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 1, 'kernel': 'sluice', 'median_ms': 2, 'whole_ms': 4, 'copied_bytes': 100,"
    "  'copy_ms': 1, 'kernel_ms': 2, 'busy_ms': 2.5, 'form_bytes_per_nnz': 4},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 1, 'kernel': 'blco', 'median_ms': 6, 'whole_ms': 7, 'build_ms': 32,"
    "  'form': 'blco', 'form_bytes_per_nnz': 16},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 1, 'kernel': 'genten-c', 'median_ms': 12, 'form': 'permutation-1',"
    "  'build_ms': 3},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 2, 'kernel': 'sluice', 'median_ms': 6, 'whole_ms': 12, 'copied_bytes': 0,"
    "  'copy_ms': 3, 'kernel_ms': 6, 'busy_ms': 7.5, 'form_bytes_per_nnz': 4},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 2, 'kernel': 'blco', 'median_ms': 10, 'whole_ms': 11, 'build_ms': 32,"
    "  'form': 'blco', 'form_bytes_per_nnz': 16},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 2, 'kernel': 'genten-c', 'note': 'refused'},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 1, 'kernel': 'sluice', 'split': 'nnz', 'devices': 2, 'median_ms': 1,"
    "  'device_ms': [1, 0.5]},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 2, 'kernel': 'sluice', 'split': 'nnz', 'devices': 2, 'median_ms': 3,"
    "  'device_ms': [3, 2.5]},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 1, 'kernel': 'amped', 'median_ms': 5, 'form': 'partitions-1',"
    "  'build_ms': 9},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 2, 'kernel': 'amped', 'median_ms': 7, 'form': 'partitions-2',"
    "  'build_ms': 9},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 1, 'kernel': 'amped', 'devices': 2, 'median_ms': 2, 'exchange_ms': 0.5,"
    "  'device_ms': [2, 1]},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8192], 'nnz': 1000000,"
    "  'mode': 2, 'kernel': 'amped', 'devices': 2, 'median_ms': 3, 'exchange_ms': 0.5,"
    "  'device_ms': [3, 3]},"
    " {'tensor': 'a.slc', 'precision': 'f64', 'rank': 1, 'mode': 1, 'kernel': 'sptv',"
    "  'median_ms': 1, 'moved_bytes': 8},"
    " {'tensor': 'b.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8], 'nnz': 60, 'mode': 1,"
    "  'kernel': 'sluice', 'median_ms': 1},"
    " {'tensor': 'b.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8], 'nnz': 60, 'mode': 2,"
    "  'kernel': 'sluice', 'median_ms': 1},"
    " {'tensor': 'b.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8], 'nnz': 60, 'mode': 1,"
    "  'kernel': 'blco', 'median_ms': 8},"
    " {'tensor': 'b.slc', 'precision': 'f64', 'rank': 16, 'dims': [8, 8], 'nnz': 60, 'mode': 2,"
    "  'kernel': 'blco', 'median_ms': 8}]}";

static json_t *parse_record(void)
{
    char text[8192];
    json_error_t error;
    json_t *record;

    CU_ASSERT_FATAL(strlen(made) < sizeof text);
    for (size_t i = 0; i <= strlen(made); i++) {
        text[i] = made[i];
        if (text[i] == '\'') {
            text[i] = '"';
        }
    }
    record = json_loads(text, 0, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(record);
    return record;
}

/* Returns the object of a list that has these members; NULL: any value. */
static const json_t *
find(const json_t *record, const char *list, const char *tensor, const char *kernel, bool devices)
{
    size_t i;
    const json_t *row;

    json_array_foreach(json_object_get(record, list), i, row)
    {
        const char *in = json_string_value(json_object_get(row, "tensor"));

        if ((tensor == NULL || (in != NULL && strcmp(in, tensor) == 0)) &&
            strcmp(json_string_value(json_object_get(row, "kernel")), kernel) == 0 &&
            (json_object_get(row, "devices") != NULL) == devices) {
            return row;
        }
    }
    return NULL;
}

static void expect(const json_t *row, const char *name, double wanted)
{
    const json_t *member = json_object_get(row, name);

    if (!json_is_number(member) ||
        !(fabs(json_number_value(member) - wanted) <= 1e-12 * fabs(wanted))) {
        printf("# %s is %g, not %g\n", name, json_number_value(member), wanted);
        CU_FAIL("another figure");
    }
}

static void expect_null(const json_t *row, const char *name)
{
    CU_ASSERT(json_is_null(json_object_get(row, name)));
}

static void one_tensor(void)
{
    json_t *record = parse_record();
    const json_t *row;

    device_summary_add(record);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(record, "summary")), 8);
    row = find(record, "summary", "a.slc", "sluice", false);
    expect(row, "modes", 2);
    expect(row, "all_modes_ms", 8);
    expect(row, "ratio", 1);
    expect(row, "slowest_over_fastest", 3);
    expect(row, "gnnz_per_s", 0.25);
    expect(row, "gflop_per_s", 8);
    expect(row, "model_gb_per_s", 65);
    expect(row, "ceiling_gb_per_s", 1600.0 / 3);
    expect(row, "ceiling_share", 0.121875);
    expect(row, "overall_gnnz_per_s", 0.125);
    expect(row, "overall_share", 0.5);
    expect(row, "overlap_share", 0.5);
    expect(row, "form_bytes_per_nnz", 4);
    expect_null(row, "build_ms");
    expect_null(row, "build_iterations");
    CU_ASSERT_PTR_NULL(json_object_get(row, "scaling"));

    row = find(record, "summary", "a.slc", "blco", false);
    expect(row, "ratio", 2);
    expect(row, "lowest_mode_ratio", 5.0 / 3);
    expect(row, "build_ms", 32);
    expect(row, "build_iterations", 2);
    expect(row, "model_gb_per_s", 34);
    CU_ASSERT_PTR_NULL(json_object_get(row, "overall_share"));

    row = find(record, "summary", "a.slc", "genten-c", false);
    expect(row, "modes", 1);
    expect(row, "lowest_mode_ratio", 6);
    expect(row, "build_ms", 3);
    expect_null(row, "all_modes_ms");
    expect_null(row, "ratio");
    expect_null(row, "slowest_over_fastest");
    expect_null(row, "model_gb_per_s");
    json_decref(record);
}

static void devices(void)
{
    json_t *record = parse_record();
    const json_t *row;

    device_summary_add(record);
    row = find(record, "summary", "a.slc", "sluice", true);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(row, "split")), "nnz");
    expect(row, "all_modes_ms", 4);
    expect(row, "ratio", 0.5);
    expect(row, "scaling", 2);
    expect(row, "device_spread", 1.0 / 7);
    row = find(record, "summary", "a.slc", "amped", true);
    expect(row, "ratio", 0.625);
    expect(row, "scaling", 2);
    expect(row, "device_spread", 1.0 / 9);
    row = find(record, "summary", "a.slc", "amped", false);
    expect(row, "build_ms", 18);
    CU_ASSERT_PTR_NULL(json_object_get(row, "scaling"));
    json_decref(record);
}

static void means(void)
{
    json_t *record = parse_record();
    const json_t *row;

    device_summary_add(record);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(record, "summary_means")), 6);
    row = find(record, "summary_means", NULL, "blco", false);
    expect(row, "tensors", 2);
    expect(row, "ratio", 4);
    expect(row, "lowest_mode_ratio", 5.0 / 3);
    row = find(record, "summary_means", NULL, "genten-c", false);
    expect(row, "tensors", 0);
    expect_null(row, "ratio");
    json_decref(record);
}

static void without(void)
{
    json_t *record = parse_record();
    const json_t *row;

    /* The record has no ceilings, and times of copies and kernels without their union. */
    json_array_clear(json_object_get(record, "ceilings"));
    json_object_del(json_array_get(json_object_get(record, "rows"), 0), "busy_ms");
    device_summary_add(record);
    row = find(record, "summary", "a.slc", "sluice", false);
    expect(row, "model_gb_per_s", 65);
    expect_null(row, "ceiling_gb_per_s");
    expect_null(row, "ceiling_share");
    expect_null(row, "overlap_share");
    json_decref(record);
    /* A record without MTTKRPs has no summary. */
    record = json_object();
    device_summary_add(record);
    CU_ASSERT_EQUAL(json_object_size(record), 0);
    json_decref(record);
}

static void ceilings(void)
{
    json_t *record = parse_record();
    const json_t *list = json_object_get(record, "ceilings");

    CU_ASSERT_DOUBLE_EQUAL(device_rows_ceiling(list, 128, 512), 800, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(device_rows_ceiling(list, 128, 8192), 700, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(device_rows_ceiling(list, 128, 65536), 600, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(device_rows_ceiling(list, 128, 1e12), 200, 1e-9);
    /* The nearest row size by ratio: 256 is equally far from both, 260 nearer to 512. */
    CU_ASSERT_DOUBLE_EQUAL(device_rows_ceiling(list, 64, 1024), 800, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(device_rows_ceiling(list, 260, 1024), 7000, 1e-9);
    CU_ASSERT(isnan(device_rows_ceiling(NULL, 128, 1024)));
    /* 3 modes, rank 32, f32: 2 rows of 128 bytes, sums of 256 and a nonzero of 6. */
    CU_ASSERT_DOUBLE_EQUAL(device_model_bytes(3, 32, 4, 6), 518, 0);
    CU_ASSERT_DOUBLE_EQUAL(device_model_flop(3, 32), 96, 0);
    json_decref(record);
}

SLC_SUITE(device_summary)
{
    static const struct slc_test tests[] = {
        {"times, ratios, rates and streaming of a tensor", one_tensor},
        {"scaling and spread of devices", devices},
        {"means over tensors", means},
        {"missing rows yield null", without},
        {"the ceiling is interpolated", ceilings},
    };

    return slc_test_main("device summary", tests, SLC_COUNT(tests), argc, argv);
}
