/* Slices, permutations and transforms: parsing, and stores whose nonzeros equal those selected by a
 * loop over the generated ones; after any fault no files are left, and the next run succeeds. */
#include "base/error/fault.h"
#include "convert/ingest/convert.h"
#include "convert/reshape/reshape.h"
#include "convert/reshape/store_push.h"
#include "faulty_files.h"
#include "make_store.h"
#include "slc_test.h"
#include "storage/manifest/names.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ORDER = 3 };

static const uint64_t dims[ORDER] = {7, 90, 30};

/* The parsed ranges as "first-last" from 0, or the error message. */
static const char *ranges_of(const char *text)
{
    static char told[512];
    struct slc_ranges ranges;
    struct slc_error err = SLC_ERROR_INIT;
    size_t used = 0;

    told[0] = '\0';
    if (slc_ranges_parse(text, &ranges, &err) != SLC_OK) {
        CU_ASSERT_EQUAL(err.status, SLC_ERR_USAGE);
        (void)snprintf(told, sizeof told, "refused: %.480s", err.message);
    }
    for (unsigned i = 0; err.status == SLC_OK && i < ranges.count; i++) {
        used += (size_t)snprintf(told + used, sizeof told - used, "%s%" PRIu64 "-%" PRIu64,
                                 i > 0 ? " " : "", ranges.range[i].first, ranges.range[i].last);
    }
    return told;
}

static void test_ranges(void)
{
    static const struct {
        const char *text;
        const char *ranges;
    } known[] = {
        {"5", "4-4"},
        {"1..3", "0-2"},
        {"..3", "0-2"},
        {"3..", "2-18446744073709551615"},
        {"..", "0-18446744073709551615"},
        {"7,5,6", "4-6"},
        {"1..3,2..9,11", "0-8 10-10"},
        {"1..9,2..3", "0-8"},
        {"5..,2,9..12", "1-1 4-18446744073709551615"},
        {"18446744073709551615", "18446744073709551614-18446744073709551614"},
    };
    static const char *const refused[] = {"",
                                          "0",
                                          "1..0",
                                          "5..3",
                                          "1,,2",
                                          ",1",
                                          "1,",
                                          "1.2",
                                          "1...",
                                          "a",
                                          "-1",
                                          "1 ",
                                          "..,.",
                                          "3..x",
                                          "0x10",
                                          "1..2..3",
                                          "18446744073709551616",
                                          "+1"};
    char many[4 * SLC_RANGES_MAX + 8] = "";

    for (size_t i = 0; i < SLC_COUNT(known); i++) {
        CU_ASSERT_STRING_EQUAL(ranges_of(known[i].text), known[i].ranges);
    }
    for (size_t i = 0; i < SLC_COUNT(refused); i++) {
        CU_ASSERT(strncmp(ranges_of(refused[i]), "refused: indices '", 18) == 0);
    }
    for (unsigned i = 0; i < SLC_RANGES_MAX; i++) {
        (void)strcat(many, i == 0 ? "9" : ",9");
    }
    CU_ASSERT_STRING_EQUAL(ranges_of(many), "8-8");
    (void)strcat(many, ",9");
    CU_ASSERT_PTR_NOT_NULL(strstr(ranges_of(many), "at most 256 ranges"));
}

static double transformed(const char *const *steps, unsigned count, double value)
{
    struct slc_transforms transforms = {.count = 0};
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned i = 0; i < count; i++) {
        SLC_ASSERT_OK(slc_transforms_add(&transforms, steps[i], &err), &err);
    }
    return slc_transforms_apply(&transforms, value);
}

#define TRANSFORMED(value, ...)                                                                    \
    transformed((const char *const[]){__VA_ARGS__},                                                \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), value)

static void test_transforms(void)
{
    static const char *const refused[] = {
        "",          "log",       "LOG1P",       "scale",    "scale=", "scale=0",
        "scale=nan", "scale=inf", "scale=1e999", "scale=2x", "log1p ", "sqrt"};
    struct slc_transforms transforms = {.count = 0};
    struct slc_transforms other = {.count = 0};
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_EQUAL(TRANSFORMED(1.5, "log1p"), log1p(1.5));
    CU_ASSERT_EQUAL(TRANSFORMED(1e-20, "log1p"), 1e-20);
    CU_ASSERT_EQUAL(TRANSFORMED(-3, "abs", "log1p"), log1p(3));
    CU_ASSERT_EQUAL(TRANSFORMED(-3, "binarize"), 1);
    CU_ASSERT_EQUAL(TRANSFORMED(-3, "scale=-0.5", "scale=4"), 6);
    CU_ASSERT_EQUAL(TRANSFORMED(5e-324, "scale=0.1", "binarize"), 0); /* underflows to 0 */
    CU_ASSERT_FALSE(isfinite(TRANSFORMED(-1, "log1p")));
    CU_ASSERT_FALSE(isfinite(TRANSFORMED(-2, "log1p", "binarize")));
    CU_ASSERT_FALSE(isfinite(TRANSFORMED(1e300, "scale=1e300", "abs")));
    for (size_t i = 0; i < SLC_COUNT(refused); i++) {
        SLC_ASSERT_FAILS(slc_transforms_add(&transforms, refused[i], &err), SLC_ERR_USAGE, &err,
                         "transform");
        slc_error_clear(&err);
        CU_ASSERT_EQUAL(transforms.count, 0);
    }
    SLC_ASSERT_OK(slc_transforms_add(&transforms, "scale=2", &err), &err);
    SLC_ASSERT_OK(slc_transforms_add(&other, "scale=3", &err), &err);
    CU_ASSERT_NOT_EQUAL(slc_transforms_hash(&transforms), slc_transforms_hash(&other));
    {
        char told[24] = "log1p";

        slc_transforms_format(&transforms, told, sizeof told);
        CU_ASSERT_STRING_EQUAL(told, "log1p,scale=2");
        slc_transforms_format(&other, told, sizeof told);
        CU_ASSERT_STRING_EQUAL(told, "log1p,scale=2,..");
    }
    for (unsigned i = 1; i < SLC_TRANSFORMS_MAX; i++) {
        SLC_ASSERT_OK(slc_transforms_add(&transforms, "abs", &err), &err);
    }
    SLC_ASSERT_FAILS(slc_transforms_add(&transforms, "abs", &err), SLC_ERR_USAGE, &err, "at most");
}

struct fixture {
    struct slc_faulty faulty;
    char store[4096], output[4096];
    struct slc_made_tensor tensor;
};

enum { NAMED = 80 }; /* number of named indices: the first of the 90 indices of mode 1 */

/* Names and titles next to the store. */
static void add_names(const struct fixture *f)
{
    static struct slc_manifest manifest;
    struct slc_names_writer *writer = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_manifest_read(NULL, f->store, &manifest, &err), &err);
    SLC_ASSERT_OK(slc_names_writer_open(NULL, f->store, 1, &writer, &err), &err);
    for (unsigned i = 0; i < NAMED; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "name %u", i);
        SLC_ASSERT_OK(slc_names_writer_add(writer, name, strlen(name), &err), &err);
    }
    manifest.names_count = 1;
    SLC_ASSERT_OK(slc_names_writer_finish(writer, &manifest.names[0], &err), &err);
    for (unsigned n = 0; n < ORDER; n++) {
        (void)snprintf(manifest.titles[n], sizeof manifest.titles[n], "title %u", n);
    }
    SLC_ASSERT_OK(slc_manifest_write(NULL, f->store, &manifest, &err), &err);
}

static void make_fixture(struct fixture *f)
{
    const char *folder = slc_test_folder();
    struct slc_error err = SLC_ERROR_INIT;

    (void)snprintf(f->store, sizeof f->store, "%s/x.slc", folder);
    (void)snprintf(f->output, sizeof f->output, "%s/y.slc", folder);
    slc_made_tensor_create(&f->tensor, ORDER, dims, 5000, SLC_MADE_DOUBLES, slc_test_seed());
    f->tensor.tile_nnz = 700;
    SLC_ASSERT_OK(slc_made_store_write(&f->tensor, NULL, f->store, SLC_CODEC_PACKED, 4096, &err),
                  &err);
    add_names(f);
    slc_faulty_init(&f->faulty);
}

/* The names of all indices of all modes of the store at `path` are those of the old store's
 * indices (numbers as below). Its modes are modes[k], or unchanged if modes is NULL. */
static void check_names(const char *path, const unsigned *modes, int64_t numbers[ORDER][90])
{
    static struct slc_manifest manifest;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t wrong = 0, last = 0;

    SLC_ASSERT_OK(slc_manifest_read(NULL, path, &manifest, &err), &err);
    for (int i = 0; i < NAMED; i++) {
        last = numbers[1][i] >= 0 ? (uint64_t)numbers[1][i] + 1 : last;
    }
    for (unsigned k = 0; k < ORDER; k++) {
        const unsigned mode = modes != NULL ? modes[k] : k;
        const struct slc_store_names *listed = slc_manifest_names(&manifest, k);
        struct slc_names *names = NULL;
        char want[16];

        (void)snprintf(want, sizeof want, "title %u", mode);
        CU_ASSERT_STRING_EQUAL(manifest.titles[k], want);
        CU_ASSERT_EQUAL(listed != NULL, mode == 1 && last > 0);
        if (listed == NULL || mode != 1) {
            continue;
        }
        SLC_ASSERT_OK(slc_names_verify(NULL, path, listed, &err), &err);
        SLC_ASSERT_OK(slc_names_open(NULL, path, listed, &names, &err), &err);
        CU_ASSERT_EQUAL(slc_names_count(names), last);
        for (int i = 0; i < NAMED; i++) {
            const char *name = NULL;
            size_t bytes = 0;

            (void)snprintf(want, sizeof want, "name %d", i);
            if (numbers[1][i] >= 0) {
                SLC_ASSERT_OK(slc_names_get(names, (uint64_t)numbers[1][i], &name, &bytes, &err),
                              &err);
                wrong += name == NULL || strcmp(name, want) != 0;
            }
        }
        slc_names_close(names);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static struct slc_reshape_options options_of(const struct fixture *f)
{
    return (struct slc_reshape_options){.files = &f->faulty.table,
                                        .store = f->store,
                                        .output = f->output,
                                        .verb = "slice",
                                        .codec = SLC_CODEC_PACKED,
                                        .memory_bytes = UINT64_C(1) << 32,
                                        .overwrite = true,
                                        .threads = 2};
}

/* A dense tensor, the reference. */
struct dense {
    uint64_t dims[ORDER];
    double values[7 * 90 * 30];
};

static double *cell(struct dense *dense, const uint64_t *at)
{
    return &dense->values[(at[0] * dense->dims[1] + at[1]) * dense->dims[2] + at[2]];
}

static enum slc_status
fill(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct dense *dense = context;

    (void)worker;
    (void)err;
    for (uint32_t i = 0; i < rows->count; i++) {
        const uint64_t at[ORDER] = {rows->coords[0][i], rows->coords[1][i], rows->coords[2][i]};

        *cell(dense, at) += rows->values[i];
    }
    return SLC_OK;
}

static void read_dense(const char *path, struct dense *dense)
{
    struct slc_store_push push = {.info = NULL};
    struct slc_error err = SLC_ERROR_INIT;

    memset(dense, 0, sizeof *dense);
    SLC_ASSERT_OK(slc_store_push_open(&push, NULL, path, UINT64_MAX / 4, &err), &err);
    CU_ASSERT_EQUAL_FATAL(push.info->order, ORDER);
    memcpy(dense->dims, push.info->dims, sizeof dense->dims);
    CU_ASSERT_FATAL(dense->dims[0] * dense->dims[1] * dense->dims[2] <= SLC_COUNT(dense->values));
    SLC_ASSERT_OK(slc_store_push_scan(&push, 1, NULL, fill, dense, &err), &err);
    slc_store_push_close(&push);
}

/* Reshapes, and compares with a loop over all cells. numbers[n][i]: the new index of index i of
 * mode n, or -1. */
static void
compare(struct fixture *f, const struct slc_reshape_options *options, int64_t numbers[ORDER][90])
{
    static struct dense old, new;
    struct slc_reshape_report report;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t at[ORDER], wrong = 0, found = 0;

    SLC_ASSERT_OK(slc_reshape(options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.nnz, f->tensor.nnz);
    read_dense(f->store, &old);
    read_dense(f->output, &new);
    CU_ASSERT_EQUAL(memcmp(report.dims, new.dims, sizeof new.dims), 0);
    for (at[0] = 0; at[0] < dims[0]; at[0]++) {
        for (at[1] = 0; at[1] < dims[1]; at[1]++) {
            for (at[2] = 0; at[2] < dims[2]; at[2]++) {
                uint64_t to[ORDER];
                bool left = true;

                for (unsigned k = 0; k < ORDER; k++) {
                    const unsigned mode = options->mode_count > 0 ? options->modes[k] : k;
                    const int64_t number = numbers[mode][at[mode]];

                    left = left && number >= 0;
                    to[k] = (uint64_t)number;
                }
                wrong += left && *cell(&new, to) != *cell(&old, at);
                found += left && *cell(&old, at) != 0;
            }
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(report.build.summary.nnz, found);
    check_names(f->output, options->mode_count > 0 ? options->modes : NULL, numbers);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&f->faulty), 0);
}

static void test_stores(void)
{
    static struct slc_ranges ranges[SLC_MAX_ORDER];
    struct slc_error err = SLC_ERROR_INIT;
    int64_t numbers[ORDER][90];
    struct slc_reshape_options options;
    struct fixture f;

    make_fixture(&f);
    options = options_of(&f);
    for (unsigned n = 0; n < ORDER; n++) {
        for (int64_t i = 0; i < 90; i++) {
            numbers[n][i] = i;
        }
    }
    for (unsigned turn = 0; turn < 6; turn++) {
        options.mode_count = ORDER;
        options.modes[0] = turn / 2;
        options.modes[1] = (turn / 2 + 1 + turn % 2) % 3;
        options.modes[2] = (turn / 2 + 2 - turn % 2) % 3;
        compare(&f, &options, numbers);
    }
    SLC_ASSERT_OK(slc_ranges_parse("3..5,80..,1", &ranges[1], &err), &err);
    SLC_ASSERT_OK(slc_ranges_parse("30", &ranges[2], &err), &err);
    options.ranges = ranges;
    for (int64_t i = 0; i < 90; i++) {
        numbers[1][i] = i == 0 ? 0 : i >= 2 && i < 5 ? i - 1 : i >= 79 ? i - 75 : -1;
        numbers[2][i] = i == 29 ? 0 : -1;
    }
    compare(&f, &options, numbers);
    options.keep_indices = true;
    for (int64_t i = 0; i < 90; i++) {
        numbers[1][i] = numbers[1][i] < 0 ? -1 : i;
        numbers[2][i] = numbers[2][i] < 0 ? -1 : i;
    }
    compare(&f, &options, numbers);
    /* No remaining index has a name. */
    SLC_ASSERT_OK(slc_ranges_parse("81..", &ranges[1], &err), &err);
    for (int64_t i = 0; i < 90; i++) {
        numbers[1][i] = i < NAMED ? -1 : i - NAMED;
        numbers[2][i] = i == 29 ? 0 : -1;
    }
    options.keep_indices = false;
    compare(&f, &options, numbers);
    slc_made_tensor_destroy(&f.tensor);
}

/* Names and titles survive an append, and new indices have none. */
static void test_append(void)
{
    struct slc_convert_options append = {.append = true,
                                         .index_base = -1,
                                         .codec = SLC_CODEC_PACKED,
                                         .memory_bytes = UINT64_C(1) << 32,
                                         .threads = 2};
    static struct slc_convert_report report;
    struct slc_error err = SLC_ERROR_INIT;
    int64_t numbers[ORDER][90];
    struct fixture f;
    char text[5000];
    FILE *file;

    make_fixture(&f);
    for (int64_t i = 0; i < 90; i++) {
        numbers[0][i] = numbers[1][i] = numbers[2][i] = i;
    }
    (void)snprintf(text, sizeof text, "%s.tns", f.store);
    file = fopen(text, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT(fputs("8 95 1 2\n1 1 1 3\n", file) >= 0);
    CU_ASSERT_EQUAL(fclose(file), 0);
    append.files = &f.faulty.table;
    append.input = text;
    append.output = f.store;
    SLC_ASSERT_OK(slc_convert(&append, &report, &err), &err);
    CU_ASSERT(report.dims[0] == 8 && report.dims[1] == 95 && report.dims[2] == dims[2]);
    check_names(f.store, NULL, numbers);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&f.faulty), 0);
    slc_made_tensor_destroy(&f.tensor);
}

/* The k-th operation of each kind, and the k-th allocation, fails. */
static void test_faults(void)
{
    static const struct {
        enum slc_faulty_kind kind;
        int error;
    } kinds[] = {{SLC_FAULTY_OPEN, EMFILE},   {SLC_FAULTY_READ, EIO},  {SLC_FAULTY_WRITE, ENOSPC},
                 {SLC_FAULTY_SYNC, EIO},      {SLC_FAULTY_STAT, EIO},  {SLC_FAULTY_RENAME, EIO},
                 {SLC_FAULTY_FOLDER, EACCES}, {SLC_FAULTY_LOCK, EINTR}};
    struct slc_reshape_options options;
    struct slc_reshape_report report;
    struct fixture f;
    struct stat there;

    make_fixture(&f);
    options = options_of(&f);
    options.overwrite = false;
    for (size_t kind = 0; kind < SLC_COUNT(kinds); kind++) {
        for (uint64_t k = 1;; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            slc_faulty_fail(&f.faulty, kinds[kind].kind, k, kinds[kind].error);
            status = slc_reshape(&options, &report, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&f.faulty), 0);
            if (!slc_faulty_fired(&f.faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT(status == SLC_OK || status == SLC_ERR_IO || status == SLC_ERR_NOSPACE);
            if (status != SLC_OK && stat(f.output, &there) == 0) {
                /* The store already had its final name when the last operation failed. */
                CU_ASSERT(kinds[kind].kind == SLC_FAULTY_SYNC);
            }
            slc_faulty_fail(&f.faulty, kinds[kind].kind, 0, 0);
            (void)!slc_folder_remove(slc_files_system(), f.output, &err);
        }
        {
            struct slc_error err = SLC_ERROR_INIT;

            SLC_ASSERT_OK(slc_folder_remove(slc_files_system(), f.output, &err), &err);
        }
    }
    slc_made_tensor_destroy(&f.tensor);
}

static const struct slc_test tests[] = {
    {"ranges", test_ranges}, {"transforms", test_transforms},
    {"stores", test_stores}, {"names outlive an append", test_append},
    {"faults", test_faults},
};

SLC_SUITE(reshape)
{
    return slc_test_main("convert_reshape", tests, SLC_COUNT(tests), argc, argv);
}
