/* Whole fibers of a mode: from the store if it has them, otherwise from a temporary store, which is
 * always removed, also after faults. */
#include "contract_fixture.h"

#include "base/error/fault.h"
#include "engine/product/fiber_order.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A store of 2,000 nonzeros whose order keeps whole fibers of mode 1, or of none. */
static void create(struct problem *problem, bool whole)
{
    static const uint64_t dims[] = {40, 30, 50};
    struct build build = plenty;

    build.fibers = whole ? SLC_FIBERS_GIVEN : SLC_FIBERS_NONE;
    build.run = (struct slc_fiber_run){1, SLC_FIBER_BITS_MAX};
    problem_create(problem, 3, dims, 2000, 2, UNIFORM, true, &build);
}

static void count_sorting(void *context, const char *path)
{
    CU_ASSERT_STRING_EQUAL(path, path_in(test_folder(), "out.fibers.tmp"));
    (*(unsigned *)context)++;
}

/* Opens the order of mode 1 for "out//", checks it and closes it. */
static enum slc_status
try_order(const struct problem *problem, const struct slc_files *files, struct slc_error *err)
{
    struct slc_fiber_order_options options = {
        .mode = 1, .memory_bytes = UINT64_C(256) << 20, .threads = 2, .sorting = count_sorting};
    struct slc_fiber_order order = {.path = NULL};
    char output[300];
    unsigned sortings = 0;
    struct slc_store store;
    enum slc_status status = slc_store_open(files, problem->store, &store, err);

    (void)snprintf(output, sizeof output, "%s/out//", test_folder());
    options.output = output;
    options.context = &sortings;
    if (status != SLC_OK) {
        return status;
    }
    status = slc_fiber_order_open(&order, &store, &options, err);
    if (status == SLC_OK) {
        const struct slc_layout_info *info = slc_reader_info(order.reader);

        CU_ASSERT_EQUAL(sortings, order.path != NULL);
        CU_ASSERT(info->keys.run.mode == 1 && info->nnz == slc_reader_info(store.reader)->nnz);
        CU_ASSERT_EQUAL(order.path != NULL, slc_reader_info(store.reader)->keys.run.bits == 0);
        status = slc_fiber_order_close(&order, err);
    }
    CU_ASSERT(order.path == NULL && order.reader == NULL);
    slc_store_close(&store);
    return status;
}

static void test_orders(void)
{
    for (unsigned whole = 0; whole < 2; whole++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct problem problem;

        create(&problem, whole != 0);
        SLC_ASSERT_OK(try_order(&problem, slc_quick_files(), &err), &err);
        CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.fibers.tmp")));
        problem_destroy(&problem);
    }
}

/* While a temporary store is in use, it is not replaced; unfinished files of another run next to
 * it are kept. */
static void test_two_runs(void)
{
    struct slc_fiber_order_options options = {
        .mode = 1, .memory_bytes = UINT64_C(256) << 20, .threads = 2};
    struct slc_fiber_order order = {.path = NULL}, other = {.path = NULL};
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;
    struct slc_store store;
    char output[300];

    create(&problem, false);
    (void)snprintf(output, sizeof output, "%s/out", test_folder());
    options.output = output;
    SLC_ASSERT_OK(slc_store_open(slc_quick_files(), problem.store, &store, &err), &err);
    SLC_ASSERT_OK(slc_fiber_order_open(&order, &store, &options, &err), &err);
    SLC_ASSERT_FAILS(slc_fiber_order_open(&other, &store, &options, &err), SLC_ERR_IO, &err,
                     "another run");
    slc_error_clear(&err);
    CU_ASSERT(exists(path_in(test_folder(), "out.fibers.tmp")));
    CU_ASSERT_EQUAL(mkdir(path_in(test_folder(), "out.fibers.tmp.part"), 0700), 0);
    SLC_ASSERT_OK(slc_fiber_order_close(&order, &err), &err);
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.fibers.tmp")));
    CU_ASSERT_EQUAL(rmdir(path_in(test_folder(), "out.fibers.tmp.part")), 0);
    slc_store_close(&store);
    problem_destroy(&problem);
}

/* Leftovers of a run that was killed, even during their removal, are removed; files that no run
 * wrote are kept. */
static void test_leftovers(void)
{
    static const char *const names[] = {"tensor.json", "blco.blk", NULL, "thesis.tex"};
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;
    char left[300];

    create(&problem, false);
    (void)snprintf(left, sizeof left, "%s", path_in(test_folder(), "out.fibers.tmp"));
    for (unsigned i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(mkdir(left, 0700), 0);
        if (names[i] != NULL) {
            FILE *file = fopen(path_in(left, names[i]), "w");

            CU_ASSERT_PTR_NOT_NULL_FATAL(file);
            (void)fclose(file);
        }
        if (i < 3) {
            SLC_ASSERT_OK(try_order(&problem, slc_quick_files(), &err), &err);
            CU_ASSERT_FALSE(exists(left));
        } else {
            SLC_ASSERT_FAILS(try_order(&problem, slc_quick_files(), &err), SLC_ERR_IO, &err,
                             "files that no conversion wrote");
            CU_ASSERT(exists(path_in(left, names[i])));
        }
    }
    CU_ASSERT_EQUAL(unlink(path_in(left, "thesis.tex")), 0);
    CU_ASSERT_EQUAL(rmdir(left), 0);
    problem_destroy(&problem);
}

/* A mode too large for a temporary store is rejected before any sorting. */
static void test_long_mode(void)
{
    static const uint64_t dims[] = {4, (UINT64_C(1) << SLC_FIBER_BITS_MAX) + 1, 5};
    struct build build = plenty;
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;

    build.fibers = SLC_FIBERS_NONE;
    problem_create(&problem, 3, dims, 100, 1, UNIFORM, true, &build);
    SLC_ASSERT_FAILS(try_order(&problem, slc_quick_files(), &err), SLC_ERR_UNSUPPORTED, &err,
                     "add the layout first");
    problem_destroy(&problem);
}

/* Every k-th operation of a kind fails. Failed removals are errors, and no others. */
static void test_failing_files(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_WRITE,
                                                 SLC_FAULTY_RENAME, SLC_FAULTY_SYNC};
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;

    create(&problem, false);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        struct slc_faulty faulty;

        slc_faulty_init(&faulty);
        for (uint64_t k = 1;; k++) {
            enum slc_status status;

            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            slc_error_clear(&err);
            status = try_order(&problem, &faulty.table, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT(status != SLC_OK || !exists(path_in(test_folder(), "out.fibers.tmp")));
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.fibers.tmp.part")));
            /* The temporary store is removed even if it is complete but not yet durable. */
            CU_ASSERT(kinds[i] != SLC_FAULTY_SYNC ||
                      !exists(path_in(test_folder(), "out.fibers.tmp")));
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
        }
    }
    SLC_ASSERT_OK(try_order(&problem, slc_quick_files(), &err), &err);
    problem_destroy(&problem);
}

static void test_failing_memory(void)
{
    struct problem problem;

    create(&problem, false);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;
        bool hit;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = try_order(&problem, slc_quick_files(), &err);
        hit = slc_fault_seen(SLC_FAULT_ALLOCATION) >= k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (!hit) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        CU_ASSERT_EQUAL(status, err.status);
        CU_ASSERT(status != SLC_OK || !exists(path_in(test_folder(), "out.fibers.tmp")));
        /* Remove the files that the failed removal left. */
        SLC_ASSERT_OK(slc_fiber_order_remove(slc_quick_files(),
                                             path_in(test_folder(), "out.fibers.tmp"), &err),
                      NULL);
    }
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.fibers.tmp")));
    problem_destroy(&problem);
}

static const struct slc_test tests[] = {
    {"whole fibers that are there, and those that are sorted", test_orders},
    {"two runs", test_two_runs},
    {"leftovers", test_leftovers},
    {"a mode that is too long", test_long_mode},
    {"failing file operations", test_failing_files},
    {"failing memory", test_failing_memory},
};

SLC_SUITE(fiber_order)
{
    return slc_test_main("fiber order", tests, SLC_COUNT(tests), argc, argv);
}
