/* Builds interrupted when their store is complete but not yet renamed: the next build only checks
 * and renames this store. If the store belongs to another build, it is not used. */
#include "base/random.h"
#include "convert/build/resume/build_folder.h"
#include "convert/publish/build_complete.h"
#include "faulty_files.h"
#include "resume_fixture.h"
#include "slc_test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Leaves a build whose store is complete except for its last rename, or, with `placed`, for its
 * last sync. */
static void stop_complete(const struct trial *trial, bool placed)
{
    const enum slc_faulty_kind kind = placed ? SLC_FAULTY_SYNC : SLC_FAULTY_RENAME;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    uint64_t begun, count;

    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(build_to(trial, &faulty.table, UINT64_MAX, &begun, &err), &err);
    count = slc_faulty_seen(&faulty, kind);
    check_built(trial);
    slc_faulty_fail_from(&faulty, kind, count, EIO);
    SLC_ASSERT_FAILS(build_to(trial, &faulty.table, UINT64_MAX, &begun, &err), SLC_ERR_IO, NULL,
                     NULL);
    CU_ASSERT_EQUAL(exists(path_in(output(), SLC_COMPLETE_STATE_NAME)), placed);
    CU_ASSERT_EQUAL(exists(left(SLC_COMPLETE_STATE_NAME)), !placed);
    CU_ASSERT_FALSE(exists(left(SLC_PUSHED_STATE_NAME)) || exists(left(SLC_SPILL_NAME)));
}

/* A complete store is only checked and renamed: no block is read or written. */
static void test_complete(void)
{
    struct trial trial;

    create_trial(&trial, 60000, SKEWED);
    trial.memory = 60 << 20;
    for (unsigned way = 0; way < 4; way++) {
        struct slc_builder_options options;
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_builder_report first, report;
        struct slc_faulty faulty;
        uint64_t begun;

        trial.relabel = way / 2 == 0 ? SLC_RELABEL_NONE : SLC_RELABEL_FREQUENCY;
        trial.fibers = SLC_FIBERS_NONE;
        want(&trial);
        options = options_of(&trial, NULL);
        SLC_ASSERT_OK(build_with(&trial, &options, UINT64_MAX, &begun, &first, &err), &err);
        check_built(&trial);
        stop_complete(&trial, way % 2 == 1);
        slc_faulty_init(&faulty);
        options = options_of(&trial, &faulty.table);
        SLC_ASSERT_OK(build_with(&trial, &options, UINT64_MAX, &begun, &report, &err), &err);
        CU_ASSERT(report.completed && report.resumed && begun == pieces_of(&trial));
        CU_ASSERT_EQUAL(slc_faulty_seen(&faulty, SLC_FAULTY_WRITE), 0);
        CU_ASSERT(slc_faulty_seen(&faulty, SLC_FAULTY_READ) < 10);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        CU_ASSERT_EQUAL(report.entries, first.entries);
        CU_ASSERT_EQUAL(report.duplicates, first.duplicates);
        CU_ASSERT_EQUAL(report.explicit_zeros, first.explicit_zeros);
        CU_ASSERT(memcmp(&report.summary, &first.summary, sizeof report.summary) == 0);
        CU_ASSERT_EQUAL(report.relabel.tried_bytes, first.relabel.tried_bytes);
        check_built(&trial);
    }
    input_destroy(&trial.input);
}

/* After a failed relabelling, the build resumes from the store with the indices of the input. */
static void test_complete_plain(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    struct trial trial;
    uint64_t renames, begun, plain = 0;

    create_trial(&trial, 60000, SKEWED);
    trial.memory = 60 << 20;
    trial.relabel = SLC_RELABEL_FREQUENCY;
    trial.fibers = SLC_FIBERS_NONE;
    want(&trial);
    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(build_to(&trial, &faulty.table, UINT64_MAX, &begun, &err), &err);
    renames = slc_faulty_seen(&faulty, SLC_FAULTY_RENAME);
    check_built(&trial);
    for (uint64_t k = renames > 12 && !slc_test_full() ? renames - 12 : 1;; k++) {
        enum slc_status status;
        bool noted;

        slc_faulty_fail_from(&faulty, SLC_FAULTY_RENAME, k, EIO);
        status = build_to(&trial, &faulty.table, UINT64_MAX, &begun, &err);
        if (status == SLC_OK) {
            CU_ASSERT(k > renames);
            check_built(&trial);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_IO);
        noted = exists(left(SLC_COMPLETE_STATE_NAME));
        plain += noted && !exists(left(SLC_RELABELLED_NAME));
        slc_error_clear(&err);
        SLC_ASSERT_OK(build_to(&trial, NULL, UINT64_MAX, &begun, &err), &err);
        CU_ASSERT(!noted || begun == pieces_of(&trial));
        check_built(&trial);
    }
    CU_ASSERT(plain > 0);
    input_destroy(&trial.input);
}

/* If the headers of a complete store, or its mark of completeness, were changed, the build
 * begins anew. */
static void test_altered_complete(void)
{
    static const char *const names[] = {SLC_COMPLETE_STATE_NAME, "tensor.json", "blco.blk"};
    struct trial trial;

    create_trial(&trial, 30000, SKEWED);
    trial.memory = 60 << 20;
    want(&trial);
    for (unsigned i = 0; i < 3 * SLC_COUNT(names); i++) {
        struct slc_builder_options options = options_of(&trial, NULL);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_builder_report report;
        const char *path;
        uint64_t begun;

        stop_complete(&trial, false);
        path = left(names[i / 3]);
        if (i % 3 == 2) {
            CU_ASSERT_EQUAL(unlink(path), 0);
        } else {
            alter(path, slc_random_below(slc_test_seed(), i, 0, 64), i % 3 == 1);
        }
        SLC_ASSERT_OK(build_with(&trial, &options, UINT64_MAX, &begun, &report, &err), &err);
        CU_ASSERT(begun == 0 && !report.completed);
        check_built(&trial);
    }
    input_destroy(&trial.input);
}

/* A complete store of another input or other options is not used. */
static void test_other_complete(void)
{
    struct trial trial;

    create_trial(&trial, 30000, SKEWED);
    trial.memory = 60 << 20;
    want(&trial);
    for (unsigned change = 0; change < 8; change++) {
        struct slc_builder_options options = options_of(&trial, NULL);
        const bool placed = change / 4 == 1;
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_builder_report report;
        enum slc_status status;
        uint64_t begun;

        stop_complete(&trial, placed);
        options.identity.input += change % 4 == 0;
        options.identity.options += change % 4 == 1;
        options.restart = change % 4 == 2;
        options.temp_folder = change % 4 == 3 ? test_folder() : NULL;
        trial.every = change % 4 == 3 ? 0 : trial.every;
        status = build_with(&trial, &options, UINT64_MAX, &begun, &report, &err);
        if (placed && change % 4 != 3) {
            SLC_ASSERT_FAILS(status, SLC_ERR_IO, &err, "the output exists");
            options.overwrite = true;
            slc_error_clear(&err);
            status = build_with(&trial, &options, UINT64_MAX, &begun, &report, &err);
        }
        SLC_ASSERT_OK(status, &err);
        CU_ASSERT_EQUAL(report.completed, change % 4 == 3);
        trial.every = 7;
        check_built(&trial);
    }
    input_destroy(&trial.input);
}

static const struct slc_test tests[] = {
    {"a complete store is named", test_complete},
    {"a renumbering that fails", test_complete_plain},
    {"a complete store that is altered", test_altered_complete},
    {"a complete store of others", test_other_complete},
};

SLC_SUITE(builder_complete)
{
    return slc_test_main("builder_complete", tests, SLC_COUNT(tests), argc, argv);
}
