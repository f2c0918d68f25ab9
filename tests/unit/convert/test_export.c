/* Numbers as text, and stores back to text: every bit of every value, with any memory. */
#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "builder_fixture.h"
#include "convert/export/export.h"
#include "convert/number/format.h"
#include "faulty_files.h"
#include "make_store.h"
#include "slc_test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *text_of(double value)
{
    static char text[64];

    memset(text, '#', sizeof text);
    text[slc_format_f64(text, value)] = 0;
    return text;
}

static void test_known_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } known[] = {
        {0.0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-17, "-17"},
        {0.1, "0.1"},
        {-0.25, "-0.25"},
        {1234.5678, "1234.5678"},
        {0.0001, "0.0001"},
        {1.5e-5, "1.5e-5"},
        {9007199254740991.0, "9007199254740991"},
        {9007199254740994.0, "9007199254740994"},
        {1e22, "1e22"},
        {1e23, "1e23"},
        {5e-324, "5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {-1.7976931348623157e308, "-1.7976931348623157e308"},
        {9.5, "9.5"},
        {2e-44, "2e-44"},
    };
    size_t i;

    for (i = 0; i < SLC_COUNT(known); i++) {
        CU_ASSERT_STRING_EQUAL(text_of(known[i].value), known[i].text);
    }
    CU_ASSERT_STRING_EQUAL(text_of(INFINITY), "inf");
    CU_ASSERT_STRING_EQUAL(text_of(-INFINITY), "-inf");
    CU_ASSERT_STRING_EQUAL(text_of(NAN) + (signbit(NAN) ? 1 : 0), "nan");
}

/* Significant digits of a text, without leading and trailing zeros. */
static int significant(const char *text)
{
    char digits[64] = "";
    int count = 0;
    int first = 0;

    for (; *text != 0 && *text != 'e'; text++) {
        if (*text >= '0' && *text <= '9') {
            digits[count++] = *text;
        }
    }
    while (count > 0 && digits[count - 1] == '0') {
        count--;
    }
    while (first < count && digits[first] == '0') {
        first++;
    }
    return count - first;
}

static int fewest_digits(double value)
{
    char text[64];
    int digits;

    for (digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    return digits;
}

static void test_random_numbers(void)
{
    uint64_t seed = slc_test_seed();
    uint64_t wrong = 0, longer = 0, large = 0, i;

    for (i = 0; i < 200000; i++) {
        uint64_t bits = slc_random_u64(seed, 0, i);
        double value = i % 3 == 0   ? slc_load_f64(&bits)
                       : i % 3 == 1 ? slc_random_normal(seed, 1, i)
                                    : (double)(int64_t)(bits >> 40) / 1000;
        const char *text;

        if (!isfinite(value)) {
            continue;
        }
        text = text_of(value);
        large += strlen(text) > SLC_FORMAT_F64_BYTES;
        wrong += strtod(text, NULL) != value;
        longer += i % 20 < 3 && significant(text) > fewest_digits(value);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(longer, 0);
    CU_ASSERT_EQUAL(large, 0);
    /* Every power of two: its rounding interval is asymmetric. */
    for (i = 1; i < 2047; i++) {
        uint64_t bits = i << 52;
        double value = slc_load_f64(&bits);

        wrong += strtod(text_of(value), NULL) != value;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void test_integers(void)
{
    char text[32];
    char want[32];
    unsigned shift, i;

    for (shift = 0; shift < 64; shift++) {
        for (i = 0; i < 40; i++) {
            uint64_t value = (UINT64_C(1) << shift) - 20 + i;
            unsigned length = slc_format_u64(text, value);

            text[length] = 0;
            snprintf(want, sizeof want, "%" PRIu64, value);
            CU_ASSERT_STRING_EQUAL(text, want);
        }
    }
    for (i = 0; i < 20; i++) {
        uint64_t value = (uint64_t)pow(10, i);

        text[slc_format_u64(text, value - 1)] = 0;
        snprintf(want, sizeof want, "%" PRIu64, value - 1);
        CU_ASSERT_STRING_EQUAL(text, want);
    }
}

struct text {
    char *data;
    uint64_t bytes;
};

static struct text load(const char *path)
{
    struct text text = {NULL, 0};
    void *data = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(
        slc_file_load(slc_files_system(), path, UINT64_C(1) << 32, &data, &text.bytes, &err), &err);
    text.data = data;
    return text;
}

/* Reads the rows back and compares with the tensor, in key order. */
static void check_text(const struct text *text, const struct slc_made_tensor *tensor, unsigned base)
{
    char *at = text->data;
    uint64_t wrong = 0, i;
    unsigned m;

    for (i = 0; i < tensor->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];
        uint64_t want[SLC_MAX_ORDER];
        double value;

        slc_key_decode(&tensor->keys, (slc_u128)tensor->key_hi[i] << 64 | tensor->key_lo[i], want);
        for (m = 0; m < tensor->order; m++) {
            coords[m] = strtoull(at, &at, 10);
            wrong += coords[m] != want[m] + base;
        }
        value = strtod(at, &at);
        wrong += memcmp(&value, &tensor->values[i], 8) != 0 || *at != '\n';
        at++;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(at, text->data + text->bytes);
}

static const char *store_path(void)
{
    static char path[700];

    snprintf(path, sizeof path, "%s/x.slc", test_folder());
    return path;
}

static const char *text_path(void)
{
    static char path[700];

    snprintf(path, sizeof path, "%s/x.tns", test_folder());
    return path;
}

static bool temporary_exists(void)
{
    char path[720];

    snprintf(path, sizeof path, "%s.tmp", text_path());
    return exists(path);
}

static void test_round_trip(void)
{
    static const struct {
        unsigned order;
        uint64_t dims[SLC_MAX_ORDER];
        uint64_t nnz;
    } shapes[] = {
        {3, {1000, 50, 3000}, 200000},
        {1, {100000}, 500},
        {2, {UINT64_C(1) << 62, UINT64_C(1) << 62}, 3000},
        {16, {3, 4, 5, 6, 7, 8, 9, 10, 3, 4, 5, 6, 7, 1, 2, 3}, 5000},
        {3, {1, 1, 1}, 1},
        {3, {10, 10, 10}, 0},
    };
    size_t s;

    for (s = 0; s < SLC_COUNT(shapes); s++) {
        struct slc_made_tensor tensor;
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_export_options options = {
            .store = store_path(), .output = text_path(), .overwrite = true};
        struct text first = {NULL, 0};
        unsigned threads;

        slc_made_tensor_create(&tensor, shapes[s].order, shapes[s].dims, shapes[s].nnz,
                               (enum slc_made_values)(s % SLC_MADE_VALUES), slc_test_seed());
        SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, store_path(),
                                           SLC_CODEC_PACKED + (unsigned)s % 3, 65536, &err),
                      &err);
        for (threads = 1; threads <= 3; threads++) {
            struct text text;
            struct slc_export_report report = {.nnz = 99};

            options.threads = threads;
            options.index_base = 1;
            /* One run has buffers that are too small for the text of a tile. */
            options.memory_bytes = threads == 2 ? slc_memory_resident() + (8 << 20) : 0;
            SLC_ASSERT_OK(slc_export_tns(&options, &report, &err), &err);
            CU_ASSERT_EQUAL(report.nnz, tensor.nnz);
            text = load(text_path());
            if (threads == 1) {
                check_text(&text, &tensor, 1);
                first = text;
            } else {
                CU_ASSERT_EQUAL(text.bytes, first.bytes);
                CU_ASSERT_EQUAL(memcmp(text.data, first.data, first.bytes), 0);
                slc_free(text.data);
            }
        }
        slc_free(first.data);
        CU_ASSERT_FALSE(temporary_exists());
        SLC_ASSERT_OK(slc_folder_remove(slc_files_system(), store_path(), &err), &err);
        slc_made_tensor_destroy(&tensor);
    }
}

static void test_refusals_and_faults(void)
{
    static const uint64_t dims[] = {1000, 50, 3000};
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN,  SLC_FAULTY_READ,
                                                 SLC_FAULTY_WRITE, SLC_FAULTY_SYNC,
                                                 SLC_FAULTY_STAT,  SLC_FAULTY_RENAME};
    struct slc_made_tensor tensor;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_export_options options = {
        .store = store_path(), .output = text_path(), .threads = 2};
    struct slc_export_report report;
    uint64_t k;
    size_t i;

    slc_made_tensor_create(&tensor, 3, dims, 70000, SLC_MADE_DOUBLES, 1);
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, store_path(), SLC_CODEC_PACKED, 65536, &err),
                  &err);
    remove(text_path());
    SLC_ASSERT_OK(slc_export_tns(&options, &report, &err), &err);
    SLC_ASSERT_FAILS(slc_export_tns(&options, &report, &err), SLC_ERR_IO, &err, "exists");
    options.overwrite = true;
    options.memory_bytes = 1000;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_export_tns(&options, &report, &err), SLC_ERR_BUDGET, &err, "memory");
    options.memory_bytes = 0;
    remove(text_path());
    for (i = 0; i < SLC_COUNT(kinds); i++) {
        for (k = 1;; k++) {
            struct slc_faulty faulty;
            enum slc_status status;

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            options.files = &faulty.table;
            slc_error_clear(&err);
            status = slc_export_tns(&options, &report, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_FALSE(temporary_exists());
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            if (status == SLC_OK) { /* harmless: the file is opened again when it is read */
                struct text text = load(text_path());

                CU_ASSERT(kinds[i] == SLC_FAULTY_OPEN || kinds[i] == SLC_FAULTY_READ ||
                          kinds[i] == SLC_FAULTY_STAT);
                check_text(&text, &tensor, 0);
                slc_free(text.data);
            } else {
                CU_ASSERT_EQUAL(status, SLC_ERR_IO);
            }
            remove(text_path());
        }
    }
    options.files = NULL;
    for (k = 1;; k++) {
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        slc_error_clear(&err);
        status = slc_export_tns(&options, &report, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, &err);
            break;
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_FALSE(temporary_exists());
    }
    SLC_ASSERT_OK(slc_folder_remove(slc_files_system(), store_path(), &err), &err);
    slc_made_tensor_destroy(&tensor);
}

/* A pipe, like a device, is written in place: a rename would replace it. */
static void test_named_pipe(void)
{
    static const uint64_t dims[] = {10, 10};
    struct slc_made_tensor tensor;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_export_options options = {
        .store = store_path(), .output = text_path(), .threads = 2};
    char text[64] = "";
    struct stat info;
    struct slc_export_report report;
    int overwrite, fd;

    slc_made_tensor_create(&tensor, 2, dims, 1, SLC_MADE_DOUBLES, 1);
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, store_path(), SLC_CODEC_PACKED, 65536, &err),
                  &err);
    remove(text_path());
    CU_ASSERT_EQUAL_FATAL(mkfifo(text_path(), 0600), 0);
    /* Open the pipe for reading and writing, so that neither end waits for the other. */
    fd = open(text_path(), O_RDWR);
    CU_ASSERT_FATAL(fd >= 0);
    for (overwrite = 0; overwrite <= 1; overwrite++) {
        options.overwrite = overwrite != 0;
        SLC_ASSERT_OK(slc_export_tns(&options, &report, &err), &err);
        CU_ASSERT(read(fd, text, sizeof text) > 5);
        CU_ASSERT_PTR_NOT_NULL(strchr(text, '\n'));
        CU_ASSERT_EQUAL(stat(text_path(), &info), 0);
        CU_ASSERT(S_ISFIFO(info.st_mode));
        CU_ASSERT_FALSE(temporary_exists());
    }
    close(fd);
    remove(text_path());
    SLC_ASSERT_OK(slc_folder_remove(slc_files_system(), store_path(), NULL), NULL);
    slc_made_tensor_destroy(&tensor);
}

static void test_damage_is_named(void)
{
    static const uint64_t dims[] = {1000, 50, 3000};
    struct slc_made_tensor tensor;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_export_options options = {
        .store = store_path(), .output = text_path(), .threads = 2, .overwrite = true};
    char path[720];
    struct slc_export_report report;
    FILE *file;

    slc_made_tensor_create(&tensor, 3, dims, 70000, SLC_MADE_DOUBLES, 1);
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, store_path(), SLC_CODEC_PACKED, 65536, &err),
                  &err);
    remove(text_path());
    snprintf(path, sizeof path, "%s/blco.blk", store_path());
    file = fopen(path, "r+");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fseek(file, 4096 + 5000, SEEK_SET);
    fputs("flip", file);
    fclose(file);
    SLC_ASSERT_FAILS(slc_export_tns(&options, &report, &err), SLC_ERR_DAMAGED, &err, "");
    CU_ASSERT_EQUAL(err.block, 0);
    CU_ASSERT_FALSE(exists(text_path()));
    CU_ASSERT_FALSE(temporary_exists());
    SLC_ASSERT_OK(slc_folder_remove(slc_files_system(), store_path(), NULL), NULL);
    slc_made_tensor_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"known numbers", test_known_numbers},
    {"random numbers are shortest and exact", test_random_numbers},
    {"integers", test_integers},
    {"stores round-trip", test_round_trip},
    {"refusals and faults", test_refusals_and_faults},
    {"named pipe", test_named_pipe},
    {"damage is named", test_damage_is_named},
};

SLC_SUITE(export)
{
    return slc_test_main("export", tests, SLC_COUNT(tests), argc, argv);
}
