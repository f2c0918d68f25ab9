/* Errors of the builder, and its leftovers after a failure of anything below it: none, with an
 * older store untouched. */
#include "base/error/fault.h"
#include "builder_fixture.h"
#include "convert/publish/build_complete.h"
#include "faulty_files.h"
#include "slc_test.h"
#include "storage/file/folder_lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t dims3[] = {900, 70, 5000};

static void test_messages(void)
{
    static const uint64_t dims[] = {10, 20};
    const char *path = store_in_folder("bad.slc");
    struct build build = {
        .workers = 1, .cut = 100, .memory = 100 << 20, .duplicates = SLC_DUPLICATES_ERROR};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;

    input_create(&input, 2, dims, 3, 0, UNIFORM, 1);
    memcpy(input.coords[0], (uint64_t[]){4, 9, 4}, 24);
    memcpy(input.coords[1], (uint64_t[]){6, 1, 6}, 24);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "(5, 7)");
    build.duplicates = SLC_DUPLICATES_SUM;
    input.values[0] = input.values[2] = 1.7e308;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "(5, 7)");
    build.value = SLC_VALUE_F32;
    input.values[2] = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "f32");
    input.values[0] = 0.1;
    input.dims[1] = 6;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "mode 2");
    input.dims[1] = 20;
    input.base = 1;
    input.coords[0][1] = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "start at 1");
    input.base = 0;
    slc_error_clear(&err);
    SLC_ASSERT_OK(run_build(&input, &build, path, false, &report, &err), &err);
    CU_ASSERT_EQUAL(report.rounded_values, 2);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_IO, &err,
                     "exists");
    slc_error_clear(&err);
    build.memory = 1 << 20;
    SLC_ASSERT_FAILS(run_build(&input, &build, path, true, &report, &err), SLC_ERR_BUDGET, &err,
                     "memory");
    remove_store(path);
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "bad.slc.part")));
    input_destroy(&input);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
}

static void test_leftovers(void)
{
    const char *path = store_in_folder("left.slc");
    char part[800];
    struct build build = {.workers = 1, .cut = 100};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;

    snprintf(part, sizeof part, "%s.part", path);
    input_create(&input, 3, dims3, 1000, 0, UNIFORM, 1);
    CU_ASSERT_EQUAL(mkdir(part, 0700), 0);
    write_text(path_in(part, "blco.blk"), "half");
    SLC_ASSERT_OK(run_build(&input, &build, path, false, &report, &err), &err);
    CU_ASSERT_FALSE(exists(part));
    remove_store(path);
    CU_ASSERT_EQUAL(mkdir(part, 0700), 0);
    write_text(path_in(part, "thesis.tex"), "precious");
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_IO, &err,
                     "move it");
    CU_ASSERT(exists(path_in(part, "thesis.tex")));
    remove_store(part);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    write_text(path_in(path, "thesis.tex"), "precious");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, true, &report, &err), SLC_ERR_IO, &err,
                     "not a store");
    CU_ASSERT(exists(path_in(path, "thesis.tex")));
    remove_store(path);
    slc_error_clear(&err);
    SLC_ASSERT_OK(run_build(&input, &build, path, false, &report, &err), &err);
    write_text(path_in(path, "thesis.tex"), "precious");
    SLC_ASSERT_FAILS(run_build(&input, &build, path, true, &report, &err), SLC_ERR_IO, &err,
                     "it contains thesis.tex");
    CU_ASSERT(exists(path_in(path, "thesis.tex")));
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path_in(path, "y.slc"), true, &report, &err),
                     SLC_ERR_USAGE, &err, "is inside the folder of a store");
    remove_store(path);
    input_destroy(&input);
}

/* The second of two builds with one output is rejected, and does not touch the files of the
 * first. */
static void test_two_runs(void)
{
    const char *path = store_in_folder("twice.slc");
    struct slc_builder_options options = {
        .output = path, .codec = SLC_CODEC_PACKED, .memory_bytes = 100 << 20, .workers = 1};
    struct slc_builder *first = NULL;
    struct slc_builder *second = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    char part[800];

    snprintf(part, sizeof part, "%s.part", path);
    SLC_ASSERT_OK(slc_builder_create(&options, 2, &first, &err), &err);
    SLC_ASSERT_FAILS(slc_builder_create(&options, 2, &second, &err), SLC_ERR_IO, &err,
                     "another run");
    CU_ASSERT_PTR_NULL(second);
    CU_ASSERT(exists(part));
    slc_builder_abandon(first);
    CU_ASSERT_FALSE(exists(part));
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_builder_create(&options, 2, &second, &err), &err);
    slc_builder_abandon(second);
}

/* A store whose layouts another run is changing is not replaced, whether it existed at the start or
 * appeared later; and a store that is being replaced is not changed. */
static void test_locked_output(void)
{
    const char *path = store_in_folder("locked.slc");
    const struct slc_files *files = slc_files_system();
    const uint64_t dims[] = {3, 3};
    struct slc_store_origin origin = {.source = "-"};
    struct build build = {.workers = 1, .cut = 100};
    struct slc_builder_options options = {.output = path,
                                          .overwrite = true,
                                          .codec = SLC_CODEC_PACKED,
                                          .memory_bytes = 100 << 20,
                                          .workers = 1};
    struct slc_builder_report report;
    struct slc_builder *builder = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;
    bool taken;
    int lock;

    input_create(&input, 3, dims3, 1000, 0, UNIFORM, 1);
    for (int later = 0; later <= 1; later++) {
        enum slc_status status = SLC_OK;

        if (later) {
            SLC_ASSERT_OK(slc_builder_create(&options, 2, &builder, &err), &err);
            CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
            write_text(path_in(path, "tensor.json"), "{}");
        } else {
            SLC_ASSERT_OK(run_build(&input, &build, path, false, &report, &err), &err);
        }
        SLC_ASSERT_OK(slc_folder_lock(files, path, "test", &lock, &taken, &err), &err);
        status = later ? slc_builder_finish(builder, 0, dims, &origin, &report, &err)
                       : slc_builder_create(&options, 2, &builder, &err);
        SLC_ASSERT_FAILS(status, SLC_ERR_IO, &err, "another run is changing");
        CU_ASSERT(exists(path_in(path, "tensor.json")));
        CU_ASSERT_FALSE(exists(path_in(test_folder(), "locked.slc.part")));
        slc_folder_unlock(files, &lock);
        slc_error_clear(&err);
        if (!later) {
            SLC_ASSERT_OK(slc_builder_create(&options, 2, &builder, &err), &err);
            SLC_ASSERT_FAILS(slc_folder_lock(files, path, "test", &lock, &taken, &err), SLC_ERR_IO,
                             &err, "test");
            slc_folder_unlock(files, &lock);
            slc_builder_abandon(builder);
            slc_error_clear(&err);
        }
        remove_store(path);
    }
    input_destroy(&input);
}

/* On a file system without locks, builds work without locks. */
static void test_no_locks(void)
{
    struct slc_faulty faulty;
    struct slc_builder_options options = {.files = &faulty.table,
                                          .output = store_in_folder("unlocked.slc"),
                                          .codec = SLC_CODEC_PACKED,
                                          .memory_bytes = 100 << 20,
                                          .workers = 1};
    struct slc_builder *builder = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    slc_faulty_init(&faulty);
    slc_faulty_fail(&faulty, SLC_FAULTY_LOCK, 1, ENOLCK);
    SLC_ASSERT_OK(slc_builder_create(&options, 2, &builder, &err), &err);
    CU_ASSERT(slc_faulty_fired(&faulty));
    slc_builder_abandon(builder);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
}

/* Outputs are rejected at once if they would fail or do harm after everything is written. */
static void test_refused_outputs(void)
{
    const char *path = store_in_folder("link.slc");
    const char *target = path_in(test_folder(), "target.slc");
    struct build build = {.workers = 1, .cut = 100};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;
    int overwrite;

    input_create(&input, 3, dims3, 1000, 0, UNIFORM, 1);
    CU_ASSERT_EQUAL(symlink(target, path), 0);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_IO, &err,
                     "symbolic link");
    slc_error_clear(&err);
    SLC_ASSERT_OK(run_build(&input, &build, target, false, &report, &err), &err);
    for (overwrite = 0; overwrite <= 1; overwrite++) {
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(run_build(&input, &build, path, overwrite != 0, &report, &err), SLC_ERR_IO,
                         &err, overwrite ? "symbolic link" : "exists");
        CU_ASSERT(exists(path_in(target, "tensor.json")));
    }
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "link.slc.part")));
    CU_ASSERT_EQUAL(unlink(path), 0);

    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, "", false, &report, &err), SLC_ERR_USAGE, &err,
                     "empty");
    build.temp_folder = path_in(test_folder(), "nowhere");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_IO, &err,
                     "temporary folder");
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "link.slc.part")));
    remove_store(target);
    input_destroy(&input);
}

/* A build is killed between the two renames that replace a store, and then runs again. */
static void test_interrupted_replacement(void)
{
    const char *path = store_in_folder("swap.slc");
    struct build build = {.workers = 1, .cut = 100};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;
    char old[800], part[800];

    snprintf(old, sizeof old, "%s.old", path);
    snprintf(part, sizeof part, "%s.part", path);
    input_create(&input, 3, dims3, 1000, 0, UNIFORM, 1);
    SLC_ASSERT_OK(run_build(&input, &build, part, false, &report, &err), &err);
    SLC_ASSERT_OK(run_build(&input, &build, old, false, &report, &err), &err);
    SLC_ASSERT_OK(run_build(&input, &build, path, true, &report, &err), &err);
    CU_ASSERT(exists(path_in(path, "tensor.json")));
    CU_ASSERT_FALSE(exists(old));
    CU_ASSERT_FALSE(exists(part));
    remove_store(path);
    input_destroy(&input);
}

static void test_disk_limit_and_full_disk(void)
{
    static const uint64_t wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 40, UINT64_C(1) << 40};
    const char *path = store_in_folder("full.slc");
    struct build build = {.workers = 2, .cut = 3000, .max_temp = 1 << 20};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    struct input input;

    input_create(&input, 3, wide, 400000, 0, UNIFORM, 1);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_BUDGET, &err,
                     "allow more, or increase the memory");
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "full.slc.part")));
    slc_faulty_init(&faulty);
    slc_faulty_fail_from(&faulty, SLC_FAULTY_WRITE, 3, ENOSPC);
    build.max_temp = 0;
    build.temp_folder = test_folder();
    build.files = &faulty.table;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_NOSPACE, &err,
                     "writing");
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "full.slc.part")));
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    input_destroy(&input);
}

/* Every file operation fails once: an error, no leftovers, and the old store intact. */
static void test_failing_files(void)
{
    static const enum slc_faulty_kind kinds[] = {
        SLC_FAULTY_OPEN,   SLC_FAULTY_READ,   SLC_FAULTY_WRITE,
        SLC_FAULTY_SYNC,   SLC_FAULTY_STAT,   SLC_FAULTY_EXCHANGE,
        SLC_FAULTY_RENAME, SLC_FAULTY_UNLINK, SLC_FAULTY_FOLDER};
    /* Keys have more than 64 bits, but extents do not limit tiles. */
    static const uint64_t wide[] = {UINT64_C(1) << 31, UINT64_C(1) << 31, UINT64_C(1) << 31};
    const char *path = store_in_folder("faulty.slc");
    struct build build = {.workers = 2, .cut = 3000, .block_bytes = 64 << 10};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty counter;
    struct input small, large;
    uint64_t old, new;
    size_t i;

    input_create(&small, 3, wide, 10, 0, UNIFORM, 1);
    /* Enough nonzeros to spill and to sort in pieces. */
    input_create(&large, 3, wide, slc_test_threads_only() ? 120000 : 150000, 0, UNIFORM, 1);
    SLC_ASSERT_OK(run_build(&large, &build, path, false, &report, &err), &err);
    CU_ASSERT(report.recursions > 0);
    new = hash_of(path_in(path, "blco.blk"));
    SLC_ASSERT_OK(run_build(&small, &build, path, true, &report, &err), &err);
    old = hash_of(path_in(path, "blco.blk"));
    /* Number of operations of each kind that can fail. */
    slc_faulty_init(&counter);
    build.files = &counter.table;
    SLC_ASSERT_OK(run_build(&large, &build, path, true, &report, &err), &err);
    for (i = 0; i < SLC_COUNT(kinds); i++) {
        const uint64_t count = slc_faulty_seen(&counter, kinds[i]);
        uint64_t k, step = 1;

        CU_ASSERT(count > 0);
        build.files = NULL;
        slc_error_clear(&err);
        SLC_ASSERT_OK(run_build(&small, &build, path, true, &report, &err), &err);
        for (k = 1; k <= count; k += step, step += slc_test_threads_only() ? 4 * k
                                                   : slc_test_quick()      ? k
                                                                           : k / 3) {
            struct slc_faulty faulty;
            enum slc_status status;
            uint64_t hash;

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            build.files = &faulty.table;
            slc_error_clear(&err);
            status = run_build(&large, &build, path, true, &report, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_EQUAL(status, err.status);
            hash = hash_of(path_in(path, "blco.blk"));
            CU_ASSERT(hash == old || hash == new);
            CU_ASSERT(status != SLC_OK || hash == new);
            if (!slc_faulty_fired(&faulty)) {
                break;
            }
            /* The only leftovers are those that the failing operation itself should have
             * removed. */
            if (kinds[i] != SLC_FAULTY_UNLINK && kinds[i] != SLC_FAULTY_FOLDER) {
                CU_ASSERT_FALSE(exists(path_in(test_folder(), "faulty.slc.part")));
            }
            build.files = NULL;
            SLC_ASSERT_OK(run_build(&small, &build, path, true, &report, &err), &err);
        }
    }
    remove_store(path);
    input_destroy(&small);
    input_destroy(&large);
}

static void test_failing_memory_and_threads(void)
{
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    const char *path = store_in_folder("memory.slc");
    struct build build = {.workers = 2, .cut = 3000, .sample = 50, .entries_expected = 100000000};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;
    uint64_t k;
    size_t i;

    input_create(&input, 3, dims3, 150000, 1, UNIFORM, 1);
    for (i = 0; i < SLC_COUNT(kinds); i++) {
        for (k = 1;; k += slc_test_threads_only() ? 1 + k : slc_test_quick() ? 1 + k / 8 : 1) {
            enum slc_status status;

            slc_error_clear(&err);
            slc_fault_arm(kinds[i], k);
            status = run_build(&input, &build, path, false, &report, &err);
            if (slc_fault_seen(kinds[i]) < k) {
                slc_fault_arm(kinds[i], 0);
                SLC_ASSERT_OK(status, &err);
                break;
            }
            slc_fault_arm(kinds[i], 0);
            CU_ASSERT(status == (i == 0 ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM));
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "memory.slc.part")));
            CU_ASSERT_FALSE(exists(path));
        }
        remove_store(path);
    }
    input_destroy(&input);
}

static const struct slc_test tests[] = {
    {"messages", test_messages},
    {"leftovers of other runs", test_leftovers},
    {"two runs with one output", test_two_runs},
    {"an output that is being changed", test_locked_output},
    {"a file system without locks", test_no_locks},
    {"refused outputs", test_refused_outputs},
    {"interrupted replacement", test_interrupted_replacement},
    {"disk limit and full disk", test_disk_limit_and_full_disk},
    {"failing file operations", test_failing_files},
    {"failing memory and threads", test_failing_memory_and_threads},
};

SLC_SUITE(builder_faults)
{
    return slc_test_main("builder_faults", tests, SLC_COUNT(tests), argc, argv);
}
