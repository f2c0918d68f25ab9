/* Tensor times vectors with sums in the order of the result.
 *
 * Identities: with small integers the result equals a naive specification, bit for bit; with reals
 * it equals the file made by sorting, for any number of threads and the smallest memory. */
#include "contract_fixture.h"
#include "convert/layout/relayout.h"
#include "faulty_files.h"
#include "slc_test.h"
#include "storage/model/npy.h"

#include <math.h>

struct order_case {
    unsigned order;
    uint64_t dims[5];
    uint64_t count;
    unsigned fibers; /* mode whose fibers the store keeps together */
    unsigned contracted;
    enum shape shape;
    bool ordered; /* true: sums are in the order of the result */
};

static const struct order_case order_cases[] = {
    /* Several tiles of sums, fibers that span tiles, sums that cancel. */
    {3, {2000, 30, 2000}, 250000, 1, 2, UNIFORM, true},
    {3, {2, 100000, 2}, 200000, 1, 2, UNIFORM, true},
    {3, {40, 50, 60}, 100000, 0, 1, SKEWED, true},
    {3, {9, 7, 5}, 3000, 2, 4, ZEROS, true},
    {2, {300, 200}, 20000, 1, 2, SKEWED, true},
    /* Keys beyond 64 bits, of the store and of the result. */
    {4, {1000000, 500, 1000000, 1000000}, 100000, 1, 2, UNIFORM, true},
    {5, {1000000, 1000000, 1000000, 8, 1000000}, 100000, 3, 8, UNIFORM, true},
    /* A contracted mode of size 1 keeps any order. */
    {4, {30, 1, 50, 40}, 20000, 2, 6, UNIFORM, true},
    {4, {30, 1, 50, 40}, 20000, 0, 2, UNIFORM, true},
    {3, {1, 1, 40}, 30, 2, 4, UNIFORM, true},
    {3, {10, 20, 30}, 0, 1, 2, UNIFORM, true},
    {3, {10, 20, 30}, 1, 1, 2, UNIFORM, true},
    /* Other modes, more modes than the fibers' own, and tiles that end early need sorting. */
    {3, {40, 50, 60}, 100000, 0, 2, UNIFORM, false},
    {3, {40, 50, 60}, 100000, 0, 3, UNIFORM, false},
    {3, {UINT64_C(1) << 33, 10, 5}, 20000, 1, 2, UNIFORM, false},
};

static void create_in_order(struct problem *problem, const struct order_case *c, bool integers)
{
    struct build build = plenty;

    build.fibers = SLC_FIBERS_GIVEN;
    build.run = (struct slc_fiber_run){c->fibers, SLC_FIBER_BITS_MAX};
    problem_create(problem, c->order, c->dims, c->count, c->contracted, c->shape, integers, &build);
    problem->options.fibers = SLC_FIBERS_NONE;
    problem->options.overwrite = true;
    /* The result may inherit the run of the store. */
    if (c->contracted != 1U << c->fibers && c->ordered) {
        problem->options.fibers = SLC_FIBERS_AUTO;
    }
}

static void test_in_order(void)
{
    for (size_t i = 0; i < SLC_COUNT(order_cases); i++) {
        struct problem problem;

        create_in_order(&problem, &order_cases[i], true);
        CU_ASSERT_EQUAL(check_exact(&problem), order_cases[i].ordered);
        problem_destroy(&problem);
    }
}

/* Real values: the file made by sorting, for any number of threads and the smallest memory. */
static void test_in_order_bits(void)
{
    for (size_t i = 0; i < SLC_COUNT(order_cases); i++) {
        const struct order_case *c = &order_cases[i];
        struct slc_contract_report report;
        struct slc_error err = SLC_ERROR_INIT;
        struct problem problem;
        uint64_t blocks, manifest;

        if (!c->ordered || c->count == 0 || (slc_test_quick() && i % 3 != 0)) {
            continue;
        }
        create_in_order(&problem, c, false);
        problem.options.sort = true;
        SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
        CU_ASSERT_FALSE(report.ordered);
        blocks = hash_of(path_in(problem.output, "blco.blk"));
        manifest = hash_of(path_in(problem.output, "tensor.json"));
        problem.options.sort = false;
        for (unsigned threads = 1; threads <= 5; threads += 2) {
            for (unsigned tight = 0; tight < 2; tight++) {
                if (slc_test_threads_only() && (threads == 3) == (tight == 1)) {
                    continue;
                }
                problem.options.threads = threads;
                problem.options.memory_bytes =
                    tight == 1 ? named_budget(&problem.options) : UINT64_C(1) << 30;
                SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
                CU_ASSERT(report.ordered);
                CU_ASSERT_EQUAL(hash_of(path_in(problem.output, "blco.blk")), blocks);
                CU_ASSERT_EQUAL(hash_of(path_in(problem.output, "tensor.json")), manifest);
            }
        }
        problem_destroy(&problem);
    }
}

/* Each tile's part of a fiber is finite, and their sum is not: reported with its position,
 * sorted or not. */
static void test_overflow_across_tiles(void)
{
    static const uint64_t dims[] = {1, 300000};
    struct build build = plenty;
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;

    build.fibers = SLC_FIBERS_GIVEN;
    build.run = (struct slc_fiber_run){1, SLC_FIBER_BITS_MAX};
    problem_create(&problem, 2, dims, 300000, 2, UNIFORM, true, &build);
    for (uint64_t i = 0; i < dims[1]; i++) {
        problem.vector[1][i] = 0;
    }
    for (uint64_t i = 0; i < problem.input.count; i++) {
        problem.vector[1][problem.input.coords[1][i]] += problem.input.values[i];
    }
    for (uint64_t i = 0; i < dims[1]; i++) {
        problem.vector[1][i] = copysign(5e302, problem.vector[1][i]);
    }
    SLC_ASSERT_OK(slc_npy_write_vector(slc_quick_files(), problem.vector_path[1], problem.vector[1],
                                       dims[1], &err),
                  &err);
    for (unsigned sort = 0; sort < 2; sort++) {
        problem.options.sort = sort == 1;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_contract(&problem.options, &report, &err), SLC_ERR_INPUT, &err,
                         sort == 1 ? "(1)" : "the sums at (1) of the result");
        CU_ASSERT_FALSE(exists(problem.output));
        CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.slc.part")));
    }
    problem_destroy(&problem);
}

/* Adds the layout with whole fibers of a mode. */
static void add_fibers(const struct problem *problem, unsigned mode)
{
    const struct slc_relayout_options options = {.files = slc_quick_files(),
                                                 .store = problem->store,
                                                 .memory_bytes = UINT64_C(1) << 30,
                                                 .workers = 2};
    struct slc_relayout layouts = {.lock = -1};
    struct slc_sorted_report report;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_relayout_open(&options, &layouts, &err), &err);
    SLC_ASSERT_OK(slc_relayout_add(&layouts, SLC_LAYOUT_FIBER, mode, &report, &err), &err);
    slc_relayout_close(&layouts);
}

/* A store whose own order keeps no fibers, with a layout that does: used for one mode or more. */
static void test_fiber_layout(void)
{
    static const uint64_t dims[] = {300, 3000, 70};
    struct build build = plenty;

    build.fibers = SLC_FIBERS_NONE;
    for (unsigned contracted = 2; contracted <= 6; contracted += 4) {
        struct slc_contract_report report;
        struct slc_error err = SLC_ERROR_INIT;
        struct problem problem;
        uint64_t blocks = 0;

        problem_create(&problem, 3, dims, 200000, contracted, SKEWED, true, &build);
        problem.options.fibers = SLC_FIBERS_NONE;
        problem.options.overwrite = true;
        for (unsigned with = 0; with < 2; with++) {
            if (with == 1) {
                add_fibers(&problem, 1);
            }
            SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
            CU_ASSERT_EQUAL(report.ordered, with == 1 && contracted == 2);
            CU_ASSERT(with == 0 || blocks == hash_of(path_in(problem.output, "blco.blk")));
            blocks = hash_of(path_in(problem.output, "blco.blk"));
            check_exact(&problem);
        }
        problem_destroy(&problem);
    }
}

static const struct slc_test tests[] = {
    {"against a naive specification", test_in_order},
    {"the bits of sorting", test_in_order_bits},
    {"a layout of whole fibers", test_fiber_layout},
    {"sums beyond f64 of several tiles", test_overflow_across_tiles},
};

SLC_SUITE(contract_order)
{
    return slc_test_main("contract in order", tests, SLC_COUNT(tests), argc, argv);
}
