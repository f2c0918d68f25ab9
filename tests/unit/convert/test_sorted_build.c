/* Builds of sorted layouts: the same bytes as an independent writer's, for any number of threads
 * and any memory; large modes, keys above 64 bits and tiles limited by extent; interrupted and
 * failing builds resume to the same bytes; damage is found. */
#include "base/error/fault.h"
#include "convert/layout/sorted_build.h"
#include "faulty_files.h"
#include "make_sorted.h"
#include "slc_test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define P2(n) (UINT64_C(1) << (n))

struct shape {
    const char *what;
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
};

/* A partition has at least 8,192 nonzeros. */
static const struct shape shapes[] = {
    {"one nonzero", 2, {5, 6}, 1},
    {"no nonzeros", 3, {5, 6, 7}, 0},
    {"a vector", 1, {60000}, 40000},
    {"short and long rows", 2, {3, 30000}, 50000},
    {"one row larger than memory", 3, {1, 4000, 3000}, 300000},
    {"four modes", 4, {50, 60, 700, 80}, 70000},
    {"tiles cut by extent", 2, {P2(36), 40}, 20000},
    {"long keys", 3, {P2(33), P2(33), 20}, 20000},
    {"six modes", 6, {2, 30, 4, 50, 6, 70}, 30000},
};

struct fixture {
    enum slc_layout_kind layout; /* kind of the layout to build */
    uint64_t block_bytes;
    struct slc_made_tensor tensor;
    struct slc_faulty faulty;
    struct slc_store store;
    char folder[4096];
    char expected[4224], built[4224];
};

static void open_fixture(struct fixture *f, const struct shape *shape)
{
    static unsigned number;
    struct slc_error err = SLC_ERROR_INIT;

    (void)snprintf(f->folder, sizeof f->folder, "%s/x%u.slc", slc_test_folder(), number++);
    (void)snprintf(f->expected, sizeof f->expected, "%s/expected", f->folder);
    (void)snprintf(f->built, sizeof f->built, "%s/built", f->folder);
    slc_made_tensor_create(&f->tensor, shape->order, shape->dims, shape->nnz, SLC_MADE_COUNTS,
                           slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(&f->tensor, NULL, f->folder, SLC_CODEC_PACKED, 40000, &err),
                  &err);
    slc_faulty_init(&f->faulty);
    f->layout = SLC_LAYOUT_SORTED;
    f->block_bytes = 0;
    SLC_ASSERT_OK(slc_store_open(&f->faulty.table, f->folder, &f->store, &err), &err);
}

static void close_fixture(struct fixture *f)
{
    slc_store_close(&f->store);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&f->faulty), 0);
    slc_made_tensor_destroy(&f->tensor);
}

static struct slc_sorted_options
options_of(const struct fixture *f, unsigned mode, unsigned workers)
{
    return (struct slc_sorted_options){.files = &f->faulty.table,
                                       .reader = f->store.reader,
                                       .layout = f->layout,
                                       .mode = mode,
                                       .path = f->built,
                                       .block_bytes = f->block_bytes,
                                       .workers = workers,
                                       .memory_bytes = P2(30)};
}

static void *load(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    void *data;

    CU_ASSERT_FATAL(file != NULL && fstat(fileno(file), &info) == 0);
    *bytes = (size_t)info.st_size;
    data = malloc(*bytes + 1);
    CU_ASSERT_FATAL(data != NULL && fread(data, 1, *bytes, file) == *bytes);
    (void)fclose(file);
    return data;
}

static bool same_files(const char *a, const char *b)
{
    size_t a_bytes, b_bytes;
    void *a_data = load(a, &a_bytes);
    void *b_data = load(b, &b_bytes);
    bool same = a_bytes == b_bytes && memcmp(a_data, b_data, a_bytes) == 0;

    free(a_data);
    free(b_data);
    return same;
}

static bool exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

static bool journal_exists(const struct fixture *f)
{
    char path[5000];

    (void)snprintf(path, sizeof path, "%s.journal", f->built);
    return exists(path);
}

/* The result of an independent writer; modes of at most 65,536 rows are counted row by row. */
static void write_expected(struct fixture *f, unsigned mode)
{
    struct slc_sorted_options options = options_of(f, mode, 1);
    struct slc_writer_summary summary;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_sorted_report report;
    struct slc_made_tensor rekeyed;
    struct slc_made_sorted sorted;

    (void)unlink(f->expected);
    if (f->layout == SLC_LAYOUT_FIBER) {
        SLC_ASSERT_OK(slc_made_fibers_write(&f->tensor, mode, f->expected, SLC_CODEC_PACKED,
                                            f->block_bytes, &summary, &err),
                      &err);
        return;
    }
    /* The expected file has the fiber run of the store. */
    options.path = f->expected;
    SLC_ASSERT_OK(slc_sorted_build(&options, &report, &err), &err);
    if (f->tensor.dims[mode] > 65536) {
        return;
    }
    (void)unlink(f->expected);
    slc_made_tensor_rekey(&f->tensor, report.run, &rekeyed);
    slc_made_sorted_create(&sorted, &rekeyed, mode, slc_sorted_part_nnz(f->tensor.nnz));
    slc_made_tensor_destroy(&rekeyed);
    SLC_ASSERT_OK(
        slc_made_sorted_write(&sorted, NULL, f->expected, SLC_CODEC_PACKED, 0, &summary, &err),
        &err);
    slc_made_sorted_destroy(&sorted);
}

static void compare_bytes(enum slc_layout_kind layout)
{
    static const unsigned team_sizes[] = {1, 2, 5};

    for (size_t s = 0; s < SLC_COUNT(shapes); s++) {
        struct fixture f;

        open_fixture(&f, &shapes[s]);
        f.layout = layout;
        f.block_bytes = layout == SLC_LAYOUT_FIBER ? 20000 : 0;
        for (unsigned mode = 0; mode < shapes[s].order; mode++) {
            write_expected(&f, mode);
            for (unsigned variant = 0; variant < 4; variant++) {
                unsigned workers = variant < 3 ? team_sizes[variant] : 2;
                struct slc_sorted_options options = options_of(&f, mode, workers);
                struct slc_sorted_report report;
                struct slc_error err = SLC_ERROR_INIT;
                struct slc_reader *reader;

                /* Quick tests use the smallest memory and, from mode to mode, another team. */
                if (slc_test_quick() && variant < 3 && variant != (s + mode) % 3) {
                    continue;
                }
                if (variant == 3) {
                    options.memory_bytes = slc_sorted_memory_min(slc_reader_info(f.store.reader));
                }
                SLC_ASSERT_OK(slc_sorted_build(&options, &report, &err), &err);
                CU_ASSERT(same_files(f.expected, f.built));
                CU_ASSERT_FALSE(journal_exists(&f));
                CU_ASSERT(variant != 3 || f.tensor.nnz < 131072 ||
                          report.gather_scans > (layout == SLC_LAYOUT_SORTED ? 2 : 1));
                SLC_ASSERT_OK(slc_reader_open(NULL, f.built, &reader, &err), &err);
                CU_ASSERT_EQUAL(slc_reader_info(reader)->partition_count, report.partitions);
                CU_ASSERT_EQUAL(slc_reader_info(reader)->nnz, f.tensor.nnz);
                CU_ASSERT_EQUAL(slc_reader_info(reader)->content_sum,
                                slc_reader_info(f.store.reader)->content_sum);
                slc_reader_close(reader);
                CU_ASSERT_EQUAL(unlink(f.built), 0);
            }
        }
        close_fixture(&f);
    }
}

static void test_bytes(void)
{
    compare_bytes(SLC_LAYOUT_SORTED);
}

static void test_fiber_bytes(void)
{
    compare_bytes(SLC_LAYOUT_FIBER);
}

static void test_budget(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_sorted_options options;
    struct slc_sorted_report report;
    struct fixture f;

    open_fixture(&f, &shapes[5]);
    options = options_of(&f, 0, 2);
    options.memory_bytes = slc_sorted_memory_min(slc_reader_info(f.store.reader)) - 1;
    options.budget_bytes = P2(31);
    options.caller_bytes = P2(30);
    SLC_ASSERT_FAILS(slc_sorted_build(&options, &report, &err), SLC_ERR_BUDGET, &err,
                     "the budget is 2048.0 MiB");
    CU_ASSERT_FALSE(exists(f.built));
    close_fixture(&f);
}

/* With the smallest memory, this tensor needs several scans, and has split and whole rows. */
static const struct shape large = {"", 3, {40, 7, 3000}, 150000};
/* A tensor with several consecutive blocks of whole fibers. */
static const struct shape large_fibers = {"", 3, {40, 7, 30000}, 330000};

static struct {
    int raised; /* stop flag that is set */
    atomic_int calls_left;
} interruption;

static void raise_in_progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
    (void)context;
    CU_ASSERT_FATAL(phase != NULL && done <= total);
    if (atomic_fetch_sub(&interruption.calls_left, 1) == 1) {
        __atomic_store_n(&interruption.raised, 2, __ATOMIC_RELAXED);
    }
}

/* After a stop at any moment the next build resumes, to the same bytes. */
static void stop_everywhere(enum slc_layout_kind layout)
{
    const struct slc_stop stop = {.flag = &interruption.raised};
    uint64_t kept = 0;
    struct fixture f;

    open_fixture(&f, layout == SLC_LAYOUT_SORTED ? &large : &large_fibers);
    f.layout = layout;
    f.block_bytes = layout == SLC_LAYOUT_FIBER ? 20000 : 0;
    write_expected(&f, 0);
    for (int k = 1;; k += layout == SLC_LAYOUT_FIBER ? 16 : slc_test_quick() ? 1 + k / 4 : 1) {
        struct slc_sorted_options options = options_of(&f, 0, 2);
        struct slc_sorted_report report;
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        options.memory_bytes = slc_sorted_memory_min(slc_reader_info(f.store.reader));
        options.stop = &stop;
        options.progress = raise_in_progress;
        interruption.raised = 0;
        atomic_store(&interruption.calls_left, k);
        status = slc_sorted_build(&options, &report, &err);
        if (interruption.raised == 0) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        if (status == SLC_OK) { /* the stop came after the end */
            CU_ASSERT(same_files(f.expected, f.built));
            CU_ASSERT_EQUAL(unlink(f.built), 0);
            continue;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_INTERRUPTED);
        options.stop = NULL;
        slc_error_clear(&err);
        SLC_ASSERT_OK(slc_sorted_build(&options, &report, &err), &err);
        kept += report.kept_nnz;
        CU_ASSERT(same_files(f.expected, f.built));
        CU_ASSERT_FALSE(journal_exists(&f));
        CU_ASSERT_EQUAL(unlink(f.built), 0);
    }
    CU_ASSERT(kept > 0);
    close_fixture(&f);
}

static void test_stops(void)
{
    stop_everywhere(SLC_LAYOUT_SORTED);
}

static void test_fiber_stops(void)
{
    stop_everywhere(SLC_LAYOUT_FIBER);
}

/* A file operation fails, and all later ones of its kind, as if the process or the disk were gone:
 * the next build resumes, to the same bytes. */
static void fail_everywhere(enum slc_layout_kind layout)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_WRITE, SLC_FAULTY_READ, SLC_FAULTY_OPEN,
                                                 SLC_FAULTY_SYNC, SLC_FAULTY_TRUNCATE};
    uint64_t kept = 0;
    struct fixture f;

    open_fixture(&f, layout == SLC_LAYOUT_SORTED ? &large : &large_fibers);
    f.layout = layout;
    f.block_bytes = layout == SLC_LAYOUT_FIBER ? 20000 : 0;
    write_expected(&f, 0);
    /* Fiber layouts open, sync and truncate like sorted layouts: two kinds suffice. */
    for (size_t i = 0; i < (layout == SLC_LAYOUT_SORTED ? SLC_COUNT(kinds) : 2); i++) {
        bool fired = true;

        for (uint64_t k = 1; fired; k++) {
            struct slc_sorted_options options = options_of(&f, 0, 2);
            struct slc_sorted_report report;
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            options.memory_bytes = slc_sorted_memory_min(slc_reader_info(f.store.reader));
            slc_faulty_fail_from(&f.faulty, kinds[i], k, i == 0 ? ENOSPC : EIO);
            status = slc_sorted_build(&options, &report, &err);
            fired = slc_faulty_fired(&f.faulty);
            slc_faulty_fail(&f.faulty, SLC_FAULTY_READ, 0, 0);
            CU_ASSERT(fired || status == SLC_OK);
            CU_ASSERT(status == SLC_OK || status == (i == 0 ? SLC_ERR_NOSPACE : SLC_ERR_IO));
            CU_ASSERT_EQUAL(err.status, status);
            if (status != SLC_OK) {
                slc_error_clear(&err);
                SLC_ASSERT_OK(slc_sorted_build(&options, &report, &err), &err);
                kept += report.kept_nnz;
            }
            CU_ASSERT(same_files(f.expected, f.built));
            CU_ASSERT_FALSE(journal_exists(&f));
            CU_ASSERT_EQUAL(unlink(f.built), 0);
            k += layout == SLC_LAYOUT_SORTED ? (slc_test_quick() ? 4 : 0) : i == 0 ? 2 : 30;
            k += slc_test_quick() ? k / 4 : 0;
        }
    }
    CU_ASSERT(kept > 0);
    close_fixture(&f);
}

static void test_faults(void)
{
    fail_everywhere(SLC_LAYOUT_SORTED);
}

static void test_fiber_faults(void)
{
    fail_everywhere(SLC_LAYOUT_FIBER);
}

/* With the smallest memory everything is split by keys, and gathered in several scans. */
static void fail_memory(enum slc_layout_kind layout, const struct shape *shape, unsigned workers)
{
    struct fixture f;

    open_fixture(&f, shape);
    f.layout = layout;
    write_expected(&f, 1);
    for (enum slc_fault_kind kind = 0; kind < SLC_FAULT_KINDS; kind++) {
        for (uint64_t k = 1;; k += slc_test_quick() ? 1 + k / 8 : 1) {
            struct slc_sorted_options options = options_of(&f, 1, workers);
            struct slc_sorted_report report;
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            if (workers == 1) {
                options.memory_bytes = slc_sorted_memory_min(slc_reader_info(f.store.reader));
            }
            slc_fault_arm(kind, k);
            status = slc_sorted_build(&options, &report, &err);
            if (slc_fault_seen(kind) < k) {
                slc_fault_arm(kind, 0);
                SLC_ASSERT_OK(status, &err);
                break;
            }
            slc_fault_arm(kind, 0);
            CU_ASSERT_EQUAL(status, kind == SLC_FAULT_ALLOCATION ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM);
        }
        CU_ASSERT(same_files(f.expected, f.built));
        CU_ASSERT_EQUAL(unlink(f.built), 0);
    }
    close_fixture(&f);
}

static void test_memory_and_threads(void)
{
    fail_memory(SLC_LAYOUT_SORTED, &shapes[5], 3);
    fail_memory(SLC_LAYOUT_FIBER, &large, 1);
}

/* A bit flipped on the way from the drive, in any read: reported with its place, and no files
 * are left. */
static void test_damage(void)
{
    struct fixture f;
    bool fired = true;

    open_fixture(&f, &shapes[5]);
    for (uint64_t k = 1; fired; k++) {
        struct slc_sorted_options options = options_of(&f, 2, 2);
        struct slc_sorted_report report;
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_faulty_flip(&f.faulty, k, 977 * k);
        status = slc_sorted_build(&options, &report, &err);
        fired = slc_faulty_fired(&f.faulty);
        CU_ASSERT_EQUAL(status, fired ? SLC_ERR_DAMAGED : SLC_OK);
        CU_ASSERT_EQUAL(exists(f.built), !fired);
        CU_ASSERT_FALSE(journal_exists(&f));
    }
    close_fixture(&f);
}

static const struct slc_test tests[] = {
    {"the same bytes by every way", test_bytes},
    {"whole fibers: the same bytes by every way", test_fiber_bytes},
    {"the smallest budget is named", test_budget},
    {"a stopped build resumes", test_stops},
    {"whole fibers: a stopped build resumes", test_fiber_stops},
    {"a build resumes after every file fault", test_faults},
    {"whole fibers: a build resumes after every file fault", test_fiber_faults},
    {"failing memory and threads", test_memory_and_threads},
    {"damage is found", test_damage},
};

SLC_SUITE(sorted_build)
{
    return slc_test_main("sorted_build", tests, SLC_COUNT(tests), argc, argv);
}
