/* Interrupted builds: for any stop, fault, or change to the leftovers, the store equals that of an
 * uninterrupted build, or the leftovers are discarded. */
#include "base/error/fault.h"
#include "base/random.h"
#include "convert/build/build_memory.h"
#include "convert/build/resume/build_folder.h"
#include "convert/build/resume/state_file.h"
#include "faulty_files.h"
#include "resume_fixture.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Stops at every piece in turn; then resumes with other memory and threads. */
static void check_stops(struct trial *trial)
{
    const unsigned workers = trial->workers;
    const uint64_t memory = trial->memory;
    const uint64_t step = slc_test_full() ? 1 : slc_test_threads_only() ? 11 : 3;

    want(trial);
    for (uint64_t stop = 1; stop < pieces_of(trial); stop += step) {
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t begun;

        SLC_ASSERT_FAILS(build_to(trial, NULL, stop, &begun, &err), SLC_ERR_IO, NULL, NULL);
        CU_ASSERT_EQUAL(exists(left(SLC_PUSHED_STATE_NAME)), stop >= trial->every);
        trial->workers = 1 + (unsigned)(stop % 3);
        if (memory > 0) {
            trial->memory = memory + (stop % 2 << 24);
        }
        SLC_ASSERT_OK(build_to(trial, NULL, UINT64_MAX, &begun, &err), &err);
        CU_ASSERT(begun == stop - stop % trial->every || begun == 0);
        CU_ASSERT(begun > 0 || stop < trial->every || memory == 0);
        check_built(trial);
        trial->workers = workers;
        trial->memory = memory;
    }
}

static void test_stops(void)
{
    struct trial trial;

    create_trial(&trial, 60000, SKEWED);
    trial.memory = 60 << 20;
    check_stops(&trial);
    trial.sample = 500;
    check_stops(&trial);
    /* The base differs from the assumed one, so buckets are merged and split. */
    trial.assumed_base = 0;
    check_stops(&trial);
    /* Each bucket must be split. */
    trial.assumed_base = 1;
    trial.memory = 0;
    trial.sample = 0;
    check_stops(&trial);
    trial.fibers = SLC_FIBERS_NONE;
    trial.relabel = SLC_RELABEL_FREQUENCY;
    trial.memory = 60 << 20;
    check_stops(&trial);
    input_destroy(&trial.input);
}

/* A build is stopped again and again, each time a little later. */
static void test_many_stops(void)
{
    struct trial trial;
    uint64_t begun = 0, stop = 0, before = 0;

    create_trial(&trial, 60000, SKEWED);
    trial.memory = 60 << 20;
    trial.sample = 500;
    trial.every = 2;
    want(&trial);
    while (stop < pieces_of(&trial) - 1) {
        struct slc_error err = SLC_ERROR_INIT;

        stop = begun + 3 < pieces_of(&trial) ? begun + 3 : pieces_of(&trial) - 1;
        SLC_ASSERT_FAILS(build_to(&trial, NULL, stop, &begun, &err), SLC_ERR_IO, NULL, NULL);
        CU_ASSERT(begun == before);
        before = stop - stop % 2;
        begun = before;
    }
    go_on(&trial);
    input_destroy(&trial.input);
}

/* From the k-th file operation on, nothing works, as if the process had been killed there; then the
 * build is run again. The same for each kind alone, while other operations still work. */
static void test_faults(void)
{
    static const enum slc_faulty_kind kinds[] = {
        SLC_FAULTY_ANY,  SLC_FAULTY_OPEN,     SLC_FAULTY_READ,   SLC_FAULTY_WRITE,
        SLC_FAULTY_SYNC, SLC_FAULTY_TRUNCATE, SLC_FAULTY_RENAME, SLC_FAULTY_UNLINK};
    struct trial trial;

    create_trial(&trial, slc_test_threads_only() ? 20000 : 60000, SKEWED);
    trial.sample = 200;
    trial.memory = 16 << 20;
    want(&trial);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k += 1 + k / (slc_test_full() ? 1000 : slc_test_quick() ? 1 : 4)) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_faulty faulty;
            enum slc_status status;
            uint64_t begun;

            slc_faulty_init(&faulty);
            if (kinds[i] == SLC_FAULTY_ANY) {
                slc_faulty_fail_from(&faulty, kinds[i], k, EIO);
            } else {
                slc_faulty_fail(&faulty, kinds[i], k, EIO);
            }
            status = build_to(&trial, &faulty.table, UINT64_MAX, &begun, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_EQUAL(status, err.status);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                check_built(&trial);
                break;
            }
            if (exists(output()) && !exists(path_in(output(), SLC_COMPLETE_STATE_NAME))) {
                check_built(&trial); /* only removals and syncs were left to do */
                if (exists(left(""))) {
                    remove_store(left(""));
                }
            } else {
                go_on(&trial);
            }
        }
    }
    input_destroy(&trial.input);
}

static void test_memory(void)
{
    struct trial trial;
    unsigned lost = 0;

    create_trial(&trial, 30000, SKEWED);
    trial.sample = 200;
    trial.memory = 30 << 20;
    want(&trial);
    for (uint64_t k = 1;; k += slc_test_threads_only() ? 1 + k / 2
                               : slc_test_quick()      ? 1 + k / 8
                                                       : 1) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;
        uint64_t begun;

        SLC_ASSERT_FAILS(build_to(&trial, NULL, 8, &begun, &err), SLC_ERR_IO, NULL, NULL);
        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = build_to(&trial, NULL, UINT64_MAX, &begun, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT_EQUAL(begun, 7);
            check_built(&trial);
            break;
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        slc_error_clear(&err);
        SLC_ASSERT_OK(build_to(&trial, NULL, UINT64_MAX, &begun, &err), &err);
        lost += begun == 0;
        check_built(&trial);
    }
    CU_ASSERT_EQUAL(lost, 0);
    input_destroy(&trial.input);
}

static uint64_t bytes_of(const char *path)
{
    struct slc_file_stat stat;
    const struct slc_files *files = slc_files_system();

    return files->stat_path(files->self, path, &stat) == 0 ? stat.bytes : 0;
}

/* The write during the last blocks of a build: after it come the end of the file and the
 * manifest. */
static uint64_t write_in_sort(const struct trial *trial)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    uint64_t begun;

    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(build_to(trial, &faulty.table, UINT64_MAX, &begun, &err), &err);
    check_built(trial);
    return slc_faulty_seen(&faulty, SLC_FAULTY_WRITE) - 9;
}

/* Leaves a build that stopped at write number `write`. */
static void stop_in_sort(const struct trial *trial, uint64_t write)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    uint64_t begun;

    slc_faulty_init(&faulty);
    slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, write, EIO);
    SLC_ASSERT_FAILS(build_to(trial, &faulty.table, UINT64_MAX, &begun, &err), SLC_ERR_IO, NULL,
                     NULL);
    CU_ASSERT(exists(left(SLC_PUSHED_STATE_NAME)) && exists(left(SLC_SORTED_STATE_NAME)));
    CU_ASSERT(exists(left("blco.blk.journal")));
}

static void test_sorted_part(void)
{
    struct slc_builder_options options;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    struct trial trial;
    uint64_t begun;

    create_trial(&trial, 300000, UNIFORM);
    trial.sample = 1000;
    trial.memory = 20 << 20;
    trial.every = 50;
    want(&trial);
    stop_in_sort(&trial, write_in_sort(&trial));
    options = options_of(&trial, NULL);
    SLC_ASSERT_OK(build_with(&trial, &options, UINT64_MAX, &begun, &report, &err), &err);
    CU_ASSERT_EQUAL(begun, pieces_of(&trial));
    CU_ASSERT(report.resumed && report.kept_nnz > 0);
    check_built(&trial);
    input_destroy(&trial.input);
}

/* For any change to the leftovers: the same store, at once or, after an error, from the
 * beginning. */
static void test_altered(void)
{
    static const char *const names[] = {SLC_PUSHED_STATE_NAME, SLC_SORTED_STATE_NAME,
                                        SLC_SPILL_NAME, "blco.blk", "blco.blk.journal"};
    const unsigned rounds = slc_test_full() ? 40 : 2;
    struct trial trial;
    unsigned refused = 0;
    uint64_t write;

    create_trial(&trial, 300000, UNIFORM);
    trial.sample = 1000;
    trial.memory = 20 << 20;
    trial.every = 50;
    want(&trial);
    write = write_in_sort(&trial);
    for (size_t i = 0; i < SLC_COUNT(names); i++) {
        for (unsigned round = 0; round < rounds; round++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;
            const char *path;
            uint64_t begun;

            stop_in_sort(&trial, write);
            path = left(names[i]);
            alter(path, slc_random_below(slc_test_seed(), i, round, bytes_of(path)),
                  round % 2 == 1);
            status = build_to(&trial, NULL, UINT64_MAX, &begun, &err);
            if (status == SLC_ERR_DAMAGED) {
                refused++;
                CU_ASSERT_FALSE(exists(left("")));
                go_on(&trial);
            } else {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT(i != 0 || begun == 0);
                check_built(&trial);
            }
        }
    }
    CU_ASSERT(refused > 0 && refused <= rounds);
    input_destroy(&trial.input);
}

/* Leftovers of another build are not used. */
static void test_others(void)
{
    struct trial trial;

    create_trial(&trial, 30000, SKEWED);
    trial.memory = 30 << 20;
    trial.sample = 200;
    want(&trial);
    for (unsigned change = 0; change < 5; change++) {
        struct slc_builder_options options = options_of(&trial, NULL);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_builder_report report;
        uint64_t begun = 0;

        SLC_ASSERT_FAILS(build_to(&trial, NULL, 8, &begun, &err), SLC_ERR_IO, NULL, NULL);
        switch (change) {
        case 0:
            options.identity.input++;
            break;
        case 1:
            options.identity.options++;
            break;
        case 2:
            options.restart = true;
            break;
        case 3:
            options.resumable = false;
            trial.every = 0;
            break;
        default:
            options.memory_bytes = slc_builder_memory_min(&options, 3);
            break;
        }
        SLC_ASSERT_OK(build_with(&trial, &options, UINT64_MAX, &begun, &report, &err), &err);
        CU_ASSERT(begun == 0 || change == 4);
        CU_ASSERT_EQUAL(report.resumed, begun > 0);
        trial.every = 7;
        check_built(&trial);
    }
    input_destroy(&trial.input);
}

/* Bad input leaves no files, whatever was committed. */
static void test_bad_input(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct trial trial;
    uint64_t begun;

    create_trial(&trial, 30000, SKEWED);
    trial.memory = 30 << 20;
    trial.input.dims[2] = 5;
    SLC_ASSERT_FAILS(build_to(&trial, NULL, UINT64_MAX, &begun, &err), SLC_ERR_INPUT, &err,
                     "mode 3");
    CU_ASSERT_FALSE(exists(left("")));
    input_destroy(&trial.input);
}

static const struct slc_test tests[] = {
    {"a stop at every piece", test_stops},    {"many stops", test_many_stops},
    {"a stop in the sort", test_sorted_part}, {"failing file operations", test_faults},
    {"failing memory", test_memory},          {"altered leftovers", test_altered},
    {"leftovers of others", test_others},     {"bad input", test_bad_input},
};

SLC_SUITE(builder_resume)
{
    return slc_test_main("builder_resume", tests, SLC_COUNT(tests), argc, argv);
}
