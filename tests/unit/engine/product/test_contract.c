/* Tensor times vectors against a naive specification.
 *
 * Identity: the result is the store built from the input with each value multiplied by the vector
 * elements and the contracted modes removed. With small integers all sums are exact in any order,
 * so the stores agree bit for bit. With reals the bits are the same for any number of threads and
 * any memory. Errors name the cause; faults leave no files. */
#include "base/error/fault.h"
#include "contract_fixture.h"
#include "faulty_files.h"
#include "slc_test.h"
#include "storage/model/npy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape_case {
    unsigned order;
    uint64_t dims[6];
    uint64_t count;
    unsigned contracted;
    enum shape shape;
};

static void test_against_naive(void)
{
    static const struct shape_case cases[] = {
        {1, {50}, 200, 1, UNIFORM},
        {2, {300, 200}, 20000, 2, UNIFORM},
        {2, {300, 200}, 20000, 1, SKEWED},
        {2, {1, 40}, 100, 1, UNIFORM},
        {3, {100, 2000, 60}, 150000, 2, UNIFORM},
        {3, {100, 2000, 60}, 150000, 5, SKEWED},
        {3, {1009, 2003, 71}, 60000, 1, SKEWED},
        {3, {9, 7, 5}, 3000, 7, ZEROS},
        {4, {30, 1, 50, 40}, 20000, 8, UNIFORM},
        {4, {30, 20, 50, 40}, 20000, 6, SORTED},
        {5, {8, 9, 10, 11, 12}, 30000, 4, UNIFORM},
        {6, {3, 4, 1, 5, 6, 7}, 20000, 33, EQUAL},
        {6, {3, 4, 1, 5, 6, 7}, 20000, 63, UNIFORM},
        {3, {1009, 203, 71}, 60000, 0, SKEWED}, /* without vectors, the result equals the store */
        {3, {10, 20, 30}, 0, 2, UNIFORM},
        {3, {10, 20, 30}, 1, 2, UNIFORM},
        {3, {10, 20, 30}, 0, 7, UNIFORM},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        const struct shape_case *c = &cases[i];

        for (unsigned variant = 0; variant < 3; variant++) {
            struct build build = plenty;
            struct problem problem;

            /* The store has relabelled modes, or keeps the fibers of the first mode together. */
            build.relabel = variant == 1 ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
            build.fibers = variant == 2 ? SLC_FIBERS_GIVEN : SLC_FIBERS_AUTO;
            build.run.bits = variant == 2 ? 12 : 0;
            problem_create(&problem, c->order, c->dims, c->count, c->contracted, c->shape, true,
                           &build);
            check_exact(&problem);
            problem.options.relabel = SLC_RELABEL_FREQUENCY;
            problem.options.threads = 1;
            if (c->shape != SKEWED && variant == 0) {
                check_exact(&problem);
            }
            problem_destroy(&problem);
        }
    }
}

/* The same bits for any number of threads and the smallest sufficient memory. */
static void test_independence(void)
{
    static const uint64_t dims[] = {200, 3000, 40};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t hash = 0;

    problem_create(&problem, 3, dims, 300000, 2, UNIFORM, false, &plenty);
    problem.options.overwrite = true;
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        for (unsigned tight = 0; tight < 2; tight++) {
            uint64_t blocks;

            problem.options.threads = threads;
            problem.options.memory_bytes = UINT64_C(1) << 30;
            if (tight == 1) {
                problem.options.memory_bytes = named_budget(&problem.options);
            }
            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
            blocks = hash_of(path_in(problem.output, "blco.blk"));
            CU_ASSERT(hash == 0 || hash == blocks);
            hash = blocks;
        }
    }
    problem_destroy(&problem);
}

static void test_number_independence(void)
{
    static const uint64_t dims[] = {200, 3000};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    double first = 0;
    double naive = 0;
    double magnitude = 0;

    problem_create(&problem, 2, dims, 300000, 3, UNIFORM, false, &plenty);
    for (uint64_t i = 0; i < problem.input.count; i++) {
        naive += product_of(&problem, i);
        magnitude += fabs(product_of(&problem, i));
    }
    for (unsigned threads = 1; threads <= 5; threads++) {
        problem.options.threads = threads;
        SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
        CU_ASSERT(threads == 1 || report.scalar == first);
        first = report.scalar;
    }
    CU_ASSERT(fabs(first - naive) <= 1e-13 * magnitude);
    problem_destroy(&problem);
}

/* Allowance for growth of the resident process between a plan and a run. */
#define GROWTH_BYTES (UINT64_C(8) << 20)

/* A dry run names a sufficient budget, and reads neither vectors nor disk. */
static void test_dry_run(void)
{
    static const uint64_t dims[] = {40, 30, 20};
    static const unsigned contracted[] = {1, 4, 5, 7};

    for (size_t i = 0; i < SLC_COUNT(contracted); i++) {
        struct slc_contract_report told, done;
        struct slc_error err = SLC_ERROR_INIT;
        struct problem problem;

        problem_create(&problem, 3, dims, 5000, contracted[i], UNIFORM, false, &plenty);
        problem.options.dry_run = true;
        for (unsigned k = 0; k < problem.options.vector_count; k++) {
            problem.options.vectors[k].path = "/nowhere.npy";
        }
        SLC_ASSERT_OK(slc_contract(&problem.options, &told, &err), &err);
        CU_ASSERT_FALSE(exists(problem.output));
        problem.options.memory_bytes = told.least_bytes / 2;
        SLC_ASSERT_FAILS(slc_contract(&problem.options, &done, &err), SLC_ERR_BUDGET, &err, "MiB");
        slc_error_clear(&err);
        CU_ASSERT(done.least_bytes <= told.least_bytes + GROWTH_BYTES &&
                  told.least_bytes <= done.least_bytes + GROWTH_BYTES);
        problem.options.dry_run = false;
        for (unsigned mode = 0, k = 0; mode < 3; mode++) {
            if ((contracted[i] >> mode & 1) != 0) {
                problem.options.vectors[k++].path = problem.vector_path[mode];
            }
        }
        problem.options.memory_bytes = told.least_bytes + GROWTH_BYTES;
        SLC_ASSERT_OK(slc_contract(&problem.options, &done, &err), &err);
        CU_ASSERT_EQUAL(done.ordered, told.ordered);
        CU_ASSERT(done.build.summary.nnz <= told.sums_most);
        CU_ASSERT_EQUAL(done.layout_bytes, told.layout_bytes);
        problem_destroy(&problem);
    }
}

static void test_refused(void)
{
    static const uint64_t dims[] = {20, 30, 40};
    struct problem problem;
    struct slc_contract_options *options = &problem.options;
    struct slc_contract_options good;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    double values[41];

    problem_create(&problem, 3, dims, 1000, 5, UNIFORM, false, &plenty);
    good = *options;
    options->threads = 0;
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err, "0 threads");
    *options = good;
    options->vectors[1].mode = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "mode 1 has two vectors");
    options->vectors[1].mode = 3;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "mode 4 does not exist; the tensor has modes 1 to 3");
    options->vectors[1].mode = 1;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_INPUT, &err,
                     "the matrix is 40 x 1, but 30 x 1 is needed");
    *options = good;
    options->output = NULL;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "1 of 3 modes have no vector");
    *options = good;
    options->vectors[2].mode = 1;
    options->vectors[2].path = problem.vector_path[0];
    options->vector_count = 3;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "the result is a number and the store");
    *options = good;
    for (size_t i = 0; i < 40; i++) {
        values[i] = i == 7 ? NAN : 1e308;
    }
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, problem.vector_path[2], values, 40, &err), &err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_INPUT, &err,
                     "number 8 of the vector, counting from 1, is nan");
    CU_ASSERT_STRING_EQUAL(err.file, problem.vector_path[2]);
    values[7] = 1e308;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, problem.vector_path[2], values, 40, &err), &err);
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, problem.vector_path[0], values, 20, &err), &err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_INPUT, &err,
                     "beyond the range of f64: scale the vectors");
    CU_ASSERT_FALSE(exists(problem.output));
    problem_destroy(&problem);
}

/* An existing store is kept without overwrite, and a result may replace its own source. */
static void test_existing_output(void)
{
    static const uint64_t dims[] = {20, 30, 40};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;

    problem_create(&problem, 3, dims, 1000, 2, UNIFORM, true, &plenty);
    problem.options.output = problem.store;
    SLC_ASSERT_FAILS(slc_contract(&problem.options, &report, &err), SLC_ERR_IO, &err, "exists");
    problem.options.overwrite = true;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.order, 2);
    CU_ASSERT_EQUAL(run_of(problem.store).bits, report.build.fibers.run.bits);
    problem_destroy(&problem);
}

/* A relabelled store, whose sums are sorted; or a store with the contracted mode's fibers
 * together. */
static void create_to_fail(struct problem *problem, bool ordered)
{
    static const uint64_t dims[] = {40, 300, 50};
    struct build build = plenty;

    build.relabel = ordered ? SLC_RELABEL_NONE : SLC_RELABEL_FREQUENCY;
    build.fibers = ordered ? SLC_FIBERS_GIVEN : SLC_FIBERS_AUTO;
    build.run = (struct slc_fiber_run){1, ordered ? SLC_FIBER_BITS_MAX : 0};
    problem_create(problem, 3, dims, 70000, 2, SKEWED, true, &build);
    problem->options.sort = !ordered;
}

/* Every file operation fails once: no files are left, and the source is intact. */
static void fail_files(bool ordered)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_READ, SLC_FAULTY_WRITE,
                                                 SLC_FAULTY_STAT, SLC_FAULTY_RENAME};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;

    create_to_fail(&problem, ordered);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            struct slc_faulty faulty;
            enum slc_status status;

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            problem.options.files = &faulty.table;
            slc_error_clear(&err);
            status = slc_contract(&problem.options, &report, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_EQUAL(status, err.status);
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.slc.part")));
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT(status != SLC_OK || exists(problem.output));
            if (exists(problem.output)) {
                remove_store(problem.output);
            }
        }
        problem.options.files = slc_quick_files();
        remove_store(problem.output);
        check_exact(&problem);
    }
    problem_destroy(&problem);
}

static void test_failing_files(void)
{
    fail_files(false);
    fail_files(true);
}

static void fail_memory_and_threads(bool ordered)
{
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;

    create_to_fail(&problem, ordered);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            enum slc_status status;
            bool over;

            slc_error_clear(&err);
            slc_fault_arm(kinds[i], k);
            status = slc_contract(&problem.options, &report, &err);
            over = slc_fault_seen(kinds[i]) < k;
            slc_fault_arm(kinds[i], 0);
            if (over) {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT_EQUAL(report.ordered, ordered);
                break;
            }
            CU_ASSERT(status == (i == 0 ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM));
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.slc.part")));
            CU_ASSERT_FALSE(exists(problem.output));
        }
        remove_store(problem.output);
    }
    problem_destroy(&problem);
}

static void test_failing_memory_and_threads(void)
{
    fail_memory_and_threads(false);
    fail_memory_and_threads(true);
}

static const struct slc_test tests[] = {
    {"stores and numbers against a naive specification", test_against_naive},
    {"threads and memory change nothing", test_independence},
    {"threads do not change a number", test_number_independence},
    {"a dry run", test_dry_run},
    {"refusals", test_refused},
    {"an output that exists", test_existing_output},
    {"failing file operations", test_failing_files},
    {"failing memory and threads", test_failing_memory_and_threads},
};

SLC_SUITE(contract)
{
    return slc_test_main("contract", tests, SLC_COUNT(tests), argc, argv);
}
