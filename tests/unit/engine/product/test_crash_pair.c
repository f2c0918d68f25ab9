/* The two files of a product through every crash: never files of two results together, never a
 * partial file; both exist after success, without other files. */
#include "crash_try.h"
#include "slc_test.h"

#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "engine/product/npy_pair.h"
#include "storage/model/npy_header.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FIBERS = 700, MODES = 2, COLS = 3 };

static const char folder[] = "/run/product";

/* A result whose numbers are all derived from one. */
struct result {
    int64_t number;
    bool replaces;
};

static enum slc_status
write_result(int64_t number, const struct slc_files *files, struct slc_error *err)
{
    const struct slc_npy_pair_options options = {.files = files,
                                                 .folder = folder,
                                                 .modes = MODES,
                                                 .cols = COLS,
                                                 .type = SLC_F64,
                                                 .buffer_bytes = SLC_PAGE_BYTES,
                                                 .coord_buffers = 2,
                                                 .row_buffers = 2};
    struct slc_npy_pair *pair = NULL;
    enum slc_status status = slc_npy_pair_create(&options, &pair, err);

    for (uint64_t f = 0; f < FIBERS && status == SLC_OK; f++) {
        const int64_t coords[MODES] = {number, (int64_t)f};
        const double row[COLS] = {(double)number, (double)f, 1};

        status = slc_npy_pair_write_coords(pair, f, 1, coords, err);
        if (status == SLC_OK) {
            status = slc_npy_pair_write_rows(pair, f, 1, row, sizeof row, err);
        }
    }
    if (status == SLC_OK) {
        status = slc_npy_pair_finish(pair, FIBERS, err);
    }
    if (status == SLC_OK) {
        status = slc_npy_pair_publish(pair, err);
    }
    slc_npy_pair_destroy(pair);
    return status;
}

static enum slc_status run(void *context, const struct slc_files *files, struct slc_error *err)
{
    const struct result *result = context;

    return write_result(result->number, files, err);
}

static void prepare(void *context, const struct slc_files *files)
{
    const struct result *result = context;
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_EQUAL(files->make_folder(files->self, "/run"), 0);
    if (result->replaces) {
        SLC_ASSERT_OK(write_result(result->number - 1, files, &err), &err);
    }
}

/* The number of the file's result; 0: missing; -1: incomplete. */
static int64_t number_of(const struct slc_files *files, const char *path, bool coords)
{
    const uint64_t row_bytes = (coords ? MODES : COLS) * sizeof(int64_t);
    struct slc_error err = SLC_ERROR_INIT;
    int64_t number = -1;
    void *data = NULL;
    uint64_t bytes = 0;

    if (slc_file_load(files, path, UINT64_MAX, &data, &bytes, &err) != SLC_OK) {
        return err.system_errno == ENOENT ? 0 : -1;
    }
    if (bytes == SLC_NPY_STORED_BYTES + FIBERS * row_bytes && memcmp(data, "\x93NUMPY", 6) == 0) {
        const uint8_t *first = (const uint8_t *)data + SLC_NPY_STORED_BYTES;

        number = 0;
        for (uint64_t f = 0; f < FIBERS && number >= 0; f++) {
            int64_t cells[2];
            double values[2];

            memcpy(cells, first + f * row_bytes, sizeof cells);
            memcpy(values, first + f * row_bytes, sizeof values);
            if (!coords) {
                cells[0] = (int64_t)values[0];
                cells[1] = (int64_t)values[1];
            }
            number = (f == 0 || cells[0] == number) && cells[1] == (int64_t)f ? cells[0] : -1;
        }
    }
    slc_free(data);
    return number;
}

static const char *
look(void *context, const struct slc_files *files, const struct slc_crash_moment *moment)
{
    const struct result *result = context;
    const int64_t coords = number_of(files, "/run/product/" SLC_PAIR_COORDS, true);
    const int64_t rows = number_of(files, "/run/product/" SLC_PAIR_ROWS, false);

    if (coords < 0 || rows < 0) {
        return "half a file";
    }
    if (coords != 0 && rows != 0 && coords != rows) {
        return "one file of each result";
    }
    return moment->done && (coords != result->number || rows != result->number)
               ? "what was said to be done is not there"
               : NULL;
}

static void sweep(bool replaces)
{
    const uint64_t more = slc_test_full() ? 32 : 1;
    const struct slc_crash_try_bounds bounds = {
        .states = {.seed = slc_test_seed(),
                   .all = more * (slc_test_quick() ? 16 : 256),
                   .extremes = more * (slc_test_quick() ? 4 : 24),
                   .samples = more * (slc_test_quick() ? 1 : 8)},
        .again = more * (slc_test_quick() ? 1 : 6),
        .continued = slc_test_quick() ? 2 : 8};
    struct result result = {.number = 4, .replaces = replaces};
    const struct slc_crash_operation operation = {
        .name = replaces ? "a product that replaces another" : "a product",
        .context = &result,
        .prepare = prepare,
        .run = run,
        .look = look};
    struct slc_crash_report report = {.bad = 0};
    struct slc_recorded *disk = slc_crash_record(&operation, 0);

    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    slc_crash_try(disk, &operation, &bounds, &report);
    slc_crash_report_print(&report, operation.name, &bounds);
    slc_recorded_destroy(disk);
    CU_ASSERT_EQUAL(report.bad, 0);
    /* If there is an earlier product, the name of its folder is on the drive before sync 1. */
    CU_ASSERT_EQUAL(slc_crash_needless(&operation, &bounds), replaces ? 1 : 0);
}

static void test_product(void)
{
    sweep(false);
}

static void test_replaced(void)
{
    sweep(true);
}

static const struct slc_test tests[] = {
    {"a product", test_product},
    {"a product that replaces another", test_replaced},
};

SLC_SUITE(crash_pair)
{
    return slc_test_main("crash_pair", tests, SLC_COUNT(tests), argc, argv);
}
