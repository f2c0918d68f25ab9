/* Conversion from end to end: decisions, errors and their positions, and a content sum from an
 * independent reader that proves that the store holds exactly the nonzeros of the text. */
#include "base/error/fault.h"
#include "base/hash.h"
#include "base/key.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "convert/ingest/convert.h"
#include "convert/ingest/text/text.h"
#include "slc_test.h"
#include "storage/manifest/store.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char text_path[256];
static char output_path[256];
static const uint64_t mib = UINT64_C(1) << 20;

static void write_input(const char *text, size_t bytes)
{
    const char *folder = slc_test_folder();
    FILE *file;

    snprintf(text_path, sizeof text_path, "%s/in.tns", folder);
    snprintf(output_path, sizeof output_path, "%s/out.slc", folder);
    file = fopen(text_path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(text, 1, bytes, file), bytes);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

static struct slc_convert_options make_options(void)
{
    return (struct slc_convert_options){.input = text_path,
                                        .output = output_path,
                                        .index_base = -1,
                                        .codec = SLC_CODEC_PACKED,
                                        .memory_bytes = 512 * mib,
                                        .threads = 2};
}

static void check_nothing_left(void)
{
    char part[300];
    struct stat info;

    snprintf(part, sizeof part, "%s.part", output_path);
    CU_ASSERT(stat(output_path, &info) != 0);
    CU_ASSERT(stat(part, &info) != 0);
}

/* Nonzeros of a small tensor, 0-based, and the expected sums of a store of them. */
struct entries {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    size_t count;
    const uint64_t (*coords)[3];
    const double *values;
};

static uint64_t content_sum(const struct entries *e)
{
    struct slc_key_layout layout;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t sum = 0;

    SLC_ASSERT_OK(slc_key_layout_init(&layout, e->order, e->dims, &err), &err);
    for (size_t i = 0; i < e->count; i++) {
        slc_u128 key = slc_key_encode(&layout, e->coords[i]);

        sum += slc_content_term((uint64_t)key, (uint64_t)(key >> 64), slc_bits_f64(e->values[i]));
    }
    return sum;
}

static void check_store(const struct entries *e)
{
    struct slc_manifest manifest;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_manifest_read(slc_files_system(), output_path, &manifest, &err), &err);
    CU_ASSERT_EQUAL_FATAL(err.status, SLC_OK);
    CU_ASSERT_EQUAL(manifest.order, e->order);
    for (unsigned m = 0; m < e->order; m++) {
        CU_ASSERT_EQUAL(manifest.dims[m], e->dims[m]);
    }
    CU_ASSERT_EQUAL(manifest.nnz, e->count);
    CU_ASSERT_EQUAL(manifest.content_sum, content_sum(e));
}

static const uint64_t small_coords[][3] = {{0, 1, 2}, {3, 0, 0}, {1, 1, 1}, {2, 2, 5}};
static const double small_values[] = {1.5, -2, 1e-3, 7};
static const struct entries small_tensor = {3, {4, 3, 6}, 4, small_coords, small_values};

static void every_dialect(void)
{
    static const struct {
        const char *text;
        enum slc_dialect dialect;
        const char *reason;
    } cases[] = {
        {"1 2 3 1.5\n4 1 1 -2\n2 2 2 1e-3\n3 3 6 7\n", SLC_DIALECT_TNS, "convention of the tns"},
        {"0 1 2 1.5\n3 0 0 -2\n1 1 1 1e-3\n2 2 5 7\n", SLC_DIALECT_TNS,
         "index 0 occurs in mode 1, first in line 1"},
        {"3\n4 3 6\n1 2 3 1.5\n4 1 1 -2\n2 2 2 1e-3\n3 3 6 7", SLC_DIALECT_PARTI,
         "equals the size"},
        {"# extended FROSTT format\n3 4\n4 3 6\n1 2 3 1.5\n4 1 1 -2\n2 2 2 1e-3\n3 3 6 7\n",
         SLC_DIALECT_FROSTT_EXT, "rule of the frostt-ext format"},
        {"sptensor\n3\n4 3 6\n4\n1 2 3 1.5\n4 1 1 -2\n2 2 2 1e-3\n3 3 6 7\n",
         SLC_DIALECT_TENSORTOOLBOX, "an index equals the size of mode 1, first in line 6"},
        {"sptensor\r\n3\r\n4 3 6\r\n4\r\n0 1 2 1.5\r\n3 0 0 -2\r\n1 1 1 1e-3\r\n2 2 5 7\r\n",
         SLC_DIALECT_GENTEN, "index 0 occurs in mode 1, first in line 5"},
        {"sptensor indices-start-at-one\n3\n4 3 6\n4\n1 2 3 1.5\n4 1 1 -2\n2 2 2 1e-3\n3 3 6 7\n",
         SLC_DIALECT_GENTEN, "stated by the header"},
        {"3\n4 3 6\n4\n0 1 2 1.5\n3 0 0 -2\n1 1 1 1e-3\n2 2 5 7\n", SLC_DIALECT_GENTEN,
         "index 0 occurs"},
        {"%%MatrixMarket tensor coordinate real general\n%\n4 3 6 4\n1 2 3 1.5\n4 1 1 -2\n2 2 2 "
         "1e-3\n3 3 6 7\n",
         SLC_DIALECT_TACO, "rule of the taco format"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_convert_options options = make_options();
        struct slc_convert_report report;
        struct slc_error err = SLC_ERROR_INIT;

        write_input(cases[i].text, strlen(cases[i].text));
        options.input = text_path;
        SLC_ASSERT_OK(slc_convert(&options, &report, &err), &err);
        check_store(&small_tensor);
        CU_ASSERT_EQUAL(report.dialect, cases[i].dialect);
        CU_ASSERT_EQUAL(report.base_assumed, strstr(report.base_reason, "convention") != NULL);
        if (!strstr(report.base_reason, cases[i].reason)) {
            printf("# case %zu: %s\n", i, report.base_reason);
            CU_FAIL("reason for the index base");
        }
        CU_ASSERT_EQUAL(report.build.entries, 4);
    }
}

static void matrix_market(void)
{
    static const uint64_t coords[][3] = {{1, 0}, {0, 1}, {2, 2}, {2, 1}, {1, 2}};
    static const double ones[] = {1, 1, 1, 1, 1};
    static const double skew[] = {4, -4, -0.5, 0.5};
    static const uint64_t skew_coords[][3] = {{1, 0}, {0, 1}, {2, 1}, {1, 2}};
    static const char symmetric[] = "%%MatrixMarket matrix coordinate pattern symmetric\n"
                                    "3 3 3\n2 1\n3 3\n% c\n3 2\n";
    static const char skewed[] = "%%MatrixMarket matrix coordinate real skew-symmetric\n"
                                 "3 3 2\n2 1 4\n3 2 -0.5\n";
    struct slc_convert_options options = make_options();
    struct slc_convert_report report;
    struct slc_error err = SLC_ERROR_INIT;

    write_input(symmetric, sizeof symmetric - 1);
    SLC_ASSERT_OK(slc_convert(&options, &report, &err), &err);
    check_store(&(struct entries){2, {3, 3}, 5, coords, ones});
    write_input(skewed, sizeof skewed - 1);
    SLC_ASSERT_OK(slc_convert(&options, &report, &err), &err);
    check_store(&(struct entries){2, {3, 3}, 4, skew_coords, skew});
}

struct fault_case {
    const char *text;
    int index_base;
    unsigned dims_order;
    uint64_t dims[3];
    enum slc_status status;
    uint64_t line, column; /* position of the error; 0: none */
    const char *part;
};

static const struct fault_case faults[] = {
    {"1 1 1\n0 1 1\n", 1, 0, {0}, SLC_ERR_INPUT, 2, 1, "index 0 of mode 1, but indices start at 1"},
    {"1 1 1\n2 0 1\n", 1, 0, {0}, SLC_ERR_INPUT, 2, 3, "index 0 of mode 2"},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 0 5\n",
     -1,
     0,
     {0},
     SLC_ERR_INPUT,
     3,
     3,
     "index 0 of mode 2"},
    {"1 1 1\n3 1 1\n",
     -1,
     2,
     {2, 2},
     SLC_ERR_INPUT,
     2,
     1,
     "index 3 of mode 1 is beyond the declared mode size 2"},
    {"1 1 1\n# c\n1  2 1\n", 0, 2, {2, 2}, SLC_ERR_INPUT, 3, 4, "index 2 of mode 2 is beyond"},
    {"1 1 1\n2 1 1\n0 0 1\n", -1, 2, {2, 2}, SLC_ERR_INPUT, 2, 1, "because line 3 has an index 0"},
    {"2\n2 2\n1 1 1\n2 3 1\n", -1, 0, {0}, SLC_ERR_INPUT, 4, 3, "index 3 of mode 2"},
    {"sptensor\n2\n5 5\n2\n1 1 1\n2 3 1\n", -1, 0, {0}, SLC_ERR_INPUT, 0, 0, "give the index base"},
    {"sptensor\n2\n5 5\n3\n1 1 1\n2 3 1\n",
     -1,
     0,
     {0},
     SLC_ERR_INPUT,
     0,
     0,
     "declares 3 entries, found 2"},
    {"sptensor\n2\n5 5\n1\n1 1 1\n2 3 1\n",
     -1,
     0,
     {0},
     SLC_ERR_INPUT,
     0,
     0,
     "declares 1 entries, found 2"},
    {"", -1, 0, {0}, SLC_ERR_INPUT, 0, 0, "no entries and no mode sizes"},
    {"# nothing\n\n", -1, 0, {0}, SLC_ERR_INPUT, 0, 0, "no entries and no mode sizes"},
    {"1 1 1\n", -1, 3, {2, 2, 2}, SLC_ERR_USAGE, 0, 0, "3 mode sizes are given"},
    {"1 1 1\n1 1 x\n", -1, 0, {0}, SLC_ERR_INPUT, 2, 5, "found 'x'"},
    {"\xef\xbb\xbf"
     "1 x 1\n",
     -1,
     0,
     {0},
     SLC_ERR_INPUT,
     1,
     3,
     "found 'x'"},
    {"\xef\xbb\xbf"
     "1 3 1\n",
     -1,
     2,
     {2, 2},
     SLC_ERR_INPUT,
     1,
     3,
     "index 3 of mode 2"},
    {"\xef\xbb\xbf"
     "3 1 1\n",
     -1,
     2,
     {2, 2},
     SLC_ERR_INPUT,
     1,
     1,
     "index 3 of mode 1"},
    {"1 1 1\n1 1\n", -1, 0, {0}, SLC_ERR_INPUT, 2, 4, "found 2 fields"},
    {"0 4611686018427387904 1\n", -1, 0, {0}, SLC_ERR_INPUT, 1, 3, "beyond"},
    {"4611686018427387904 1 1\n", 0, 0, {0}, SLC_ERR_INPUT, 1, 1, "too large"},
    {"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 5\n",
     -1,
     0,
     {0},
     SLC_ERR_INPUT,
     3,
     3,
     "above the diagonal"},
    {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 5\n",
     -1,
     0,
     {0},
     SLC_ERR_INPUT,
     3,
     3,
     "on the diagonal"},
    {"%%MatrixMarket matrix array real general\n2 2\n1\n",
     -1,
     0,
     {0},
     SLC_ERR_UNSUPPORTED,
     1,
     23,
     "array"},
    {"3\n4000000000000000000 4000000000000000000 4000000000000000000\n",
     -1,
     0,
     {0},
     SLC_ERR_UNSUPPORTED,
     0,
     0,
     "bits"},
    {"4000000000000000000 4000000000000000000 4000000000000000000 1\n",
     -1,
     0,
     {0},
     SLC_ERR_UNSUPPORTED,
     0,
     0,
     "bits"},
};

static void refused(void)
{
    for (size_t i = 0; i < SLC_COUNT(faults); i++) {
        struct slc_convert_options options = make_options();
        struct slc_convert_report report;
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t line = faults[i].line ? faults[i].line : SLC_NOWHERE;
        uint64_t column = faults[i].column ? faults[i].column : SLC_NOWHERE;

        write_input(faults[i].text, strlen(faults[i].text));
        options.index_base = faults[i].index_base;
        options.dims_order = faults[i].dims_order;
        memcpy(options.dims, faults[i].dims, sizeof faults[i].dims);
        SLC_ASSERT_FAILS(slc_convert(&options, &report, &err), faults[i].status, &err,
                         faults[i].part);
        if (err.line != line || err.column != column ||
            (err.status != SLC_ERR_USAGE && strcmp(err.file, text_path) != 0)) {
            printf("# case %zu: %s:%ju:%ju\n", i, err.file, (uintmax_t)err.line,
                   (uintmax_t)err.column);
            CU_FAIL("place of a fault");
        }
        check_nothing_left();
    }
}

/* A scan makes the same decisions and errors as a conversion, and leaves no files. */
static void scanned(void)
{
    static const char good[] = "# c\n4 1 1 -2\n1 2 3 1.5\n";
    static const char bad[] = "1 2 3 1.5\n4 1 x -2\n";
    struct slc_convert_options options = make_options();
    struct slc_convert_report report;
    struct slc_error err = SLC_ERROR_INIT;

    options.output = NULL;
    write_input(good, sizeof good - 1);
    SLC_ASSERT_OK(slc_convert_scan(&options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.order, 3);
    CU_ASSERT_EQUAL(report.dims[0], 4);
    CU_ASSERT_EQUAL(report.lines, 3);
    CU_ASSERT_EQUAL(report.text_bytes, sizeof good - 1);
    write_input(bad, sizeof bad - 1);
    SLC_ASSERT_FAILS(slc_convert_scan(&options, &report, &err), SLC_ERR_INPUT, &err,
                     "expected an index of mode 3");
    CU_ASSERT_EQUAL(err.line, 2);
    CU_ASSERT_EQUAL(err.column, 5);
    check_nothing_left();
}

static void empty_tensors(void)
{
    static const char *const texts[] = {"", "# nothing\n", "3\n4 5 6\n", "sptensor\n3\n4 5 6\n0\n"};

    for (size_t i = 0; i < SLC_COUNT(texts); i++) {
        struct slc_convert_options options = make_options();
        struct slc_convert_report report;
        struct slc_error err = SLC_ERROR_INIT;

        write_input(texts[i], strlen(texts[i]));
        options.dims_order = i < 2 ? 3 : 0;
        memcpy(options.dims, (uint64_t[]){4, 5, 6}, 3 * sizeof(uint64_t));
        SLC_ASSERT_OK(slc_convert(&options, &report, &err), &err);
        check_store(&(struct entries){3, {4, 5, 6}, 0, NULL, NULL});
        CU_ASSERT_TRUE(report.dims_declared);
    }
}

enum { LARGE_ROWS = 400000 };

static uint64_t (*large_coords)[3];
static double *large_values;
static char *large_text;
static size_t large_bytes;
static size_t *large_lines; /* start of each row */

/* About 9 MiB: distinct coordinates in random order, with some comments. */
static void make_large(unsigned base)
{
    uint64_t seed = slc_test_seed();

    large_coords = malloc(LARGE_ROWS * sizeof *large_coords);
    large_values = malloc(LARGE_ROWS * sizeof *large_values);
    large_lines = malloc(LARGE_ROWS * sizeof *large_lines);
    large_text = malloc(LARGE_ROWS * 64);
    CU_ASSERT_FATAL(large_coords && large_values && large_text && large_lines);
    large_bytes = 0;
    for (uint64_t i = 0; i < LARGE_ROWS; i++) {
        uint64_t id = i * 7919 % LARGE_ROWS;

        large_coords[i][0] = id % 1000;
        large_coords[i][1] = id / 1000;
        large_coords[i][2] = slc_random_below(seed, 1, id, 100000);
        large_values[i] = slc_random_f64(seed, 2, i) + 0.001;
        if (i % 1000 == 17) {
            large_bytes += (size_t)sprintf(large_text + large_bytes, "# comment\n");
        }
        large_lines[i] = large_bytes;
        large_bytes +=
            (size_t)sprintf(large_text + large_bytes, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %.17g\n",
                            large_coords[i][0] + base, large_coords[i][1] + base,
                            large_coords[i][2] + base, large_values[i]);
    }
}

static void free_large(void)
{
    free(large_coords);
    free(large_values);
    free(large_lines);
    free(large_text);
}

static void large_inputs(void)
{
    for (unsigned base = 0; base < 2; base++) {
        make_large(base);
        write_input(large_text, large_bytes);
        for (unsigned threads = 1; threads <= 5; threads += 2) {
            struct slc_convert_options options = make_options();
            struct slc_convert_report report;
            struct slc_error err = SLC_ERROR_INIT;
            struct entries e = {
                3, {0}, LARGE_ROWS, (const uint64_t(*)[3])large_coords, large_values};

            options.threads = threads;
            options.overwrite = true;
            SLC_ASSERT_OK(slc_convert(&options, &report, &err), &err);
            CU_ASSERT_EQUAL(report.index_base, base);
            CU_ASSERT_EQUAL(report.lines, LARGE_ROWS + LARGE_ROWS / 1000);
            CU_ASSERT_EQUAL(report.text_bytes, large_bytes);
            CU_ASSERT_EQUAL(report.input_bytes, large_bytes);
            CU_ASSERT_EQUAL(report.workers, threads);
            CU_ASSERT_EQUAL(report.smallest[0], base);
            memcpy(e.dims, report.dims, sizeof e.dims);
            CU_ASSERT_EQUAL(e.dims[0], 1000);
            CU_ASSERT_EQUAL(e.dims[1], LARGE_ROWS / 1000);
            check_store(&e);
        }
        free_large();
    }
}

/* The first fault of the input is reported with its true line, for any threads. */
static void first_fault_wins(void)
{
    make_large(1);
    for (uint64_t trial = 0; trial < (slc_test_quick() ? 2 : 6); trial++) {
        uint64_t first_row = UINT64_MAX;
        char *text = malloc(large_bytes);

        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        memcpy(text, large_text, large_bytes);
        for (uint64_t k = 0; k < 5; k++) {
            uint64_t row = slc_random_below(slc_test_seed(), 10 + trial, k, LARGE_ROWS);

            /* Letters, a negative index or, if there is only one digit, an index 0. */
            text[large_lines[row]] = "x-0"[(trial + k) % 3];
            if (text[large_lines[row]] == '0') {
                text[large_lines[row] + 1] = ' ';
            }
            first_row = row < first_row ? row : first_row;
        }
        write_input(text, large_bytes);
        for (unsigned threads = 1; threads <= 4; threads++) {
            struct slc_convert_options options = make_options();
            struct slc_convert_report report;
            struct slc_error err = SLC_ERROR_INIT;

            options.threads = threads;
            options.index_base = 1;
            CU_ASSERT_EQUAL(slc_convert(&options, &report, &err), SLC_ERR_INPUT);
            CU_ASSERT_EQUAL(err.line, first_row + 1 + (first_row + 983) / 1000);
            check_nothing_left();
        }
        free(text);
    }
    free_large();
}

static void budgets(void)
{
    struct slc_convert_options options = make_options();
    struct slc_convert_report report;
    struct slc_error err = SLC_ERROR_INIT;
    const char *number;

    make_large(1);
    write_input(large_text, large_bytes);
    options.threads = 64;
    options.memory_bytes = 1 * mib;
    SLC_ASSERT_FAILS(slc_convert(&options, &report, &err), SLC_ERR_BUDGET, &err,
                     "MiB of memory or more");
    check_nothing_left();
    number = strstr(err.message, " needs ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(number);
    /* Allow 8 MiB more, because the process may have grown since it was measured. */
    options.memory_bytes = (strtoull(number + strlen(" needs "), NULL, 10) + 8) * mib;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_convert(&options, &report, &err), &err);
    CU_ASSERT(report.workers < 64);
    CU_ASSERT_EQUAL(report.build.summary.nnz, LARGE_ROWS);
    free_large();
}

/* Every allocation fails once, then every thread: an error each time, and no leftovers. */
static void failing_resources(void)
{
    static const char text[] = "1 2 3 1.5\n4 1 1 -2\n2 2 2 1e-3\n3 3 6 7\n";
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};

    for (size_t kind = 0; kind < SLC_COUNT(kinds); kind++) {
        enum slc_status status = SLC_ERR_MEMORY;
        uint64_t k;

        for (k = 1; status != SLC_OK && k < 5000; k++) {
            struct slc_convert_options options = make_options();
            struct slc_convert_report report;
            struct slc_error err = SLC_ERROR_INIT;

            write_input(text, sizeof text - 1);
            slc_fault_arm(kinds[kind], k);
            status = slc_convert(&options, &report, &err);
            slc_fault_arm(kinds[kind], 0);
            CU_ASSERT_EQUAL(status, err.status);
            if (status == SLC_OK) {
                check_store(&small_tensor);
            } else {
                CU_ASSERT(status == SLC_ERR_MEMORY || status == SLC_ERR_SYSTEM);
                check_nothing_left();
            }
        }
        CU_ASSERT_EQUAL(status, SLC_OK);
        printf("# %ju faults of kind %zu\n", (uintmax_t)k - 2, kind);
    }
}

static unsigned times_told;

static void is_complete(void)
{
    char manifest[300];
    struct stat info;

    times_told++;
    snprintf(manifest, sizeof manifest, "%s.part/tensor.json", output_path);
    CU_ASSERT(stat(manifest, &info) == 0 && stat(output_path, &info) != 0);
}

/* The cleanup callback is called before the rename and, if a store is built twice, not for the
 * first. */
static void calls_cleanup_before_rename(void)
{
    static const enum slc_relabel ways[] = {SLC_RELABEL_NONE, SLC_RELABEL_FREQUENCY};

    make_large(1);
    write_input(large_text, large_bytes);
    for (unsigned i = 0; i < SLC_COUNT(ways); i++) {
        struct slc_convert_options options = make_options();
        struct slc_convert_report report;
        struct slc_error err = SLC_ERROR_INIT;

        options.relabel = ways[i];
        options.overwrite = true;
        options.publishing = is_complete;
        times_told = 0;
        SLC_ASSERT_OK(slc_convert(&options, &report, &err), &err);
        CU_ASSERT_EQUAL(times_told, 1);
        CU_ASSERT_EQUAL(slc_folder_remove(slc_files_system(), output_path, &err), SLC_OK);
    }
    free_large();
}

static void bad_options(void)
{
    struct slc_convert_options options = make_options();
    struct slc_convert_report report;
    struct slc_error err = SLC_ERROR_INIT;

    write_input("1 1\n", 4);
    options.index_base = 2;
    SLC_ASSERT_FAILS(slc_convert(&options, &report, &err), SLC_ERR_USAGE, &err, "index base 2");
    options = make_options();
    options.dims_order = 17;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_convert(&options, &report, &err), SLC_ERR_USAGE, &err, "17 mode sizes");
    options = make_options();
    options.dims_order = 1;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_convert(&options, &report, &err), SLC_ERR_USAGE, &err, "size 0 of mode 1");
    options = make_options();
    options.input = "/nonexistent/in.tns";
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_convert(&options, &report, &err), SLC_ERR_IO, &err, "cannot open");
    check_nothing_left();
}

static const struct slc_test tests[] = {
    {"every dialect yields the same tensor", every_dialect},
    {"Matrix Market symmetry and patterns", matrix_market},
    {"bad inputs are refused with their place", refused},
    {"a scan reads and refuses as a conversion", scanned},
    {"empty tensors", empty_tensors},
    {"large inputs, any number of threads", large_inputs},
    {"the first fault of the input wins", first_fault_wins},
    {"budgets", budgets},
    {"failing allocations and threads", failing_resources},
    {"cleanup callback before the rename", calls_cleanup_before_rename},
    {"bad options", bad_options},
};

SLC_SUITE(convert)
{
    return slc_test_main("convert", tests, SLC_COUNT(tests), argc, argv);
}
