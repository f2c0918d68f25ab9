/* Tensor times vectors with an external multiplier for all or some of the tiles.
 *
 * Identities: with small integers the store equals a naive specification, bit for bit, for any
 * division of tiles and any delivered pieces of sums; with reals and all tiles on one side, the
 * bytes do not depend on the number of lanes and threads. After any fault, no files are left. */
#include "base/error/fault.h"
#include "contract_fixture.h"
#include "convert/layout/relayout.h"
#include "fake_products.h"
#include "slc_test.h"

#include <string.h>

struct shape_case {
    unsigned order;
    uint64_t dims[6];
    uint64_t count;
    unsigned contracted;
    enum shape shape;
    unsigned fibers; /* mode whose fibers the store keeps whole; order: auto */
    bool relabel;
};

static const struct shape_case cases[] = {
    {3, {100, 2000, 60}, 150000, 2, UNIFORM, 3, false},
    {3, {100, 2000, 60}, 50000, 2, SKEWED, 3, true},
    {3, {100, 2000, 60}, 50000, 5, SKEWED, 3, true},
    /* Sums are in order; fibers span tiles, sums cancel, or keys have more than 64 bits. */
    {3, {2, 100000, 2}, 200000, 2, UNIFORM, 1, false},
    {3, {9, 7, 5}, 3000, 4, ZEROS, 2, false},
    {4, {1000000, 500, 1000000, 1000000}, 30000, 2, UNIFORM, 1, false},
    /* Vectors are for more modes than the mode of the fibers, modes have size 1, or a mode is
     * larger than 2^32. */
    {3, {40, 50, 60}, 50000, 3, UNIFORM, 0, false},
    {4, {30, 1, 50, 40}, 20000, 6, UNIFORM, 2, false},
    {6, {3, 4, 1, 5, 6, 7}, 20000, 33, EQUAL, 6, false},
    {3, {UINT64_C(1) << 33, 10, 5}, 20000, 2, UNIFORM, 3, false},
    /* The results are single numbers. */
    {1, {50}, 200, 1, UNIFORM, 1, false},
    {3, {9, 7, 5}, 3000, 7, ZEROS, 3, false},
    {3, {200, 3000, 40}, 100000, 7, SKEWED, 3, true},
    /* Tensors with no nonzeros or few. */
    {3, {10, 20, 30}, 0, 2, UNIFORM, 3, false},
    {3, {10, 20, 30}, 1, 6, UNIFORM, 3, false},
    {3, {10, 20, 30}, 0, 7, UNIFORM, 3, false},
};

static void create(struct problem *problem, const struct shape_case *c, bool integers)
{
    struct build build = plenty;

    build.relabel = c->relabel ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
    if (c->fibers < c->order) {
        build.fibers = SLC_FIBERS_GIVEN;
        build.run = (struct slc_fiber_run){c->fibers, SLC_FIBER_BITS_MAX};
    }
    problem_create(problem, c->order, c->dims, c->count, c->contracted, c->shape, integers, &build);
    problem->options.overwrite = true;
}

static void test_against_naive(void)
{
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct problem problem;
        uint64_t tiles = 0;

        if (slc_test_quick() && i % 4 != 1) {
            continue;
        }
        create(&problem, &cases[i], true);
        for (unsigned side = FAKE_ALL; side <= FAKE_FREE; side++) {
            struct fake_products fake = {
                .side = (enum fake_side)side,
                .lanes = 1 + side,
                .room = side == FAKE_ALL ? 700 : SLC_TILE_NNZ,
            };

            fake_products_begin(&fake);
            problem.options.products = &fake.table;
            check_exact(&problem);
            CU_ASSERT_EQUAL(fake.opens, 1);
            CU_ASSERT(side == FAKE_ALL || fake.here + fake.elsewhere == tiles);
            CU_ASSERT(side != FAKE_ALL || fake.elsewhere == 0);
            CU_ASSERT(side != FAKE_NONE || fake.here == 0);
            CU_ASSERT(side != FAKE_ODD || fake.here == tiles / 2);
            tiles = fake.here + fake.elsewhere;
            fake_products_end(&fake);
        }
        CU_ASSERT((tiles > 0) == (cases[i].count > 0));
        problem_destroy(&problem);
    }
}

/* With reals, if all tiles are multiplied in the same way, the result does not depend on whether
 * the worker or the external multiplier multiplies them. */
static void test_lanes(void)
{
    for (size_t i = 0; i < SLC_COUNT(cases); i += 3) {
        struct problem problem;
        uint64_t hash = 0;

        if (slc_test_quick() && i % 2 == 1) {
            continue;
        }
        create(&problem, &cases[i], false);
        for (unsigned lanes = 1; lanes <= FAKE_LANES && problem.options.output != NULL; lanes++) {
            struct fake_products fake = {.lanes = lanes, .room = 50000U / lanes};
            struct slc_contract_report report;
            struct slc_error err = SLC_ERROR_INIT;
            uint64_t blocks;

            fake_products_begin(&fake);
            problem.options.products = &fake.table;
            problem.options.threads = 5 - lanes;
            problem.options.sort = lanes == 2;
            SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
            CU_ASSERT_EQUAL(report.threads, 5 - lanes);
            CU_ASSERT_EQUAL(report.workers, 5);
            blocks = hash_of(path_in(problem.output, "blco.blk"));
            CU_ASSERT(hash == 0 || hash == blocks);
            hash = blocks;
            fake_products_end(&fake);
        }
        problem_destroy(&problem);
    }
}

/* The memory of products is part of the budget; a dry run opens nothing, and without vectors
 * there is no product. */
static void test_memory(void)
{
    struct slc_contract_report without, with;
    struct slc_error err = SLC_ERROR_INIT;

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct fake_products fake = {.lanes = 2, .room = 100, .host_bytes = 64 << 20};
        struct problem problem;

        if (slc_test_quick() && i % 2 == 1) {
            continue;
        }
        create(&problem, &cases[i], true);
        problem.options.dry_run = true;
        SLC_ASSERT_OK(slc_contract(&problem.options, &without, &err), &err);
        fake_products_begin(&fake);
        problem.options.products = &fake.table;
        SLC_ASSERT_OK(slc_contract(&problem.options, &with, &err), &err);
        CU_ASSERT(with.least_bytes >= without.least_bytes + fake.host_bytes / 2);
        CU_ASSERT_EQUAL(fake.opens, 0);
        CU_ASSERT(fake.plans > 0);
        problem.options.memory_bytes = with.least_bytes - fake.host_bytes / 2;
        SLC_ASSERT_FAILS(slc_contract(&problem.options, &with, &err), SLC_ERR_BUDGET, &err, "MiB");
        slc_error_clear(&err);
        fake_products_end(&fake);
        problem_destroy(&problem);
    }
}

static void test_no_vector(void)
{
    static const struct shape_case none = {3, {40, 50, 60}, 5000, 0, UNIFORM, 3, false};
    struct fake_products fake = {.lanes = 1, .room = 1};
    struct problem problem;

    create(&problem, &none, true);
    fake_products_begin(&fake);
    problem.options.products = &fake.table;
    check_exact(&problem);
    CU_ASSERT_EQUAL(fake.plans, 0);
    fake_products_end(&fake);
    problem_destroy(&problem);
}

static void check_nothing_left(const struct problem *problem)
{
    CU_ASSERT_FALSE(exists(problem->output));
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.slc.part")));
}

/* Sums in order, sums that are sorted, a number. */
static const struct shape_case failing[] = {
    {3, {400, 300, 50}, 80000, 2, UNIFORM, 1, false},
    {3, {400, 300, 50}, 80000, 2, UNIFORM, 3, true},
    {3, {400, 300, 50}, 80000, 7, UNIFORM, 3, false},
};

/* Every fallible call fails, one after the other. */
static void test_refusals(void)
{
    for (size_t i = 0; i < SLC_COUNT(failing); i++) {
        struct problem problem;

        create(&problem, &failing[i], true);
        for (uint64_t k = 1;; k++) {
            struct fake_products fake = {.lanes = 2, .room = 9000, .refuse = k, .side = k % 3};
            struct slc_contract_report report;
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            fake_products_begin(&fake);
            problem.options.products = &fake.table;
            status = slc_contract(&problem.options, &report, &err);
            fake_products_end(&fake);
            if (fake.calls < k) {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT(k > 5);
                break;
            }
            CU_ASSERT_EQUAL(status, SLC_ERR_SYSTEM);
            CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "refused to "));
            check_nothing_left(&problem);
        }
        problem_destroy(&problem);
    }
}

static void test_damage(void)
{
    for (size_t i = 0; i < SLC_COUNT(failing); i++) {
        struct problem problem;

        create(&problem, &failing[i], true);
        for (unsigned side = FAKE_ALL; side <= FAKE_FREE; side++) {
            struct fake_products fake = {
                .lanes = 2, .room = 9000, .damaged = 2, .side = (enum fake_side)side};
            struct slc_contract_report report;
            struct slc_error err = SLC_ERROR_INIT;

            fake_products_begin(&fake);
            problem.options.products = &fake.table;
            SLC_ASSERT_FAILS(slc_contract(&problem.options, &report, &err), SLC_ERR_DAMAGED, &err,
                             "tile 1 is damaged");
            check_nothing_left(&problem);
            fake_products_end(&fake);
        }
        problem_destroy(&problem);
    }
}

static void test_failing_memory_and_threads(void)
{
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};

    for (size_t i = 0; i < SLC_COUNT(failing) * SLC_COUNT(kinds); i++) {
        const enum slc_fault_kind kind = kinds[i % SLC_COUNT(kinds)];
        struct shape_case c = failing[i / SLC_COUNT(kinds)];
        struct problem problem;

        if (slc_test_quick() && i % 3 != 0) {
            continue;
        }
        c.count = 4000;
        create(&problem, &c, true);
        for (uint64_t k = 1;; k++) {
            struct fake_products fake = {.lanes = 2, .room = 900};
            struct slc_contract_report report;
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;
            bool over;

            fake_products_begin(&fake);
            problem.options.products = &fake.table;
            slc_fault_arm(kind, k);
            status = slc_contract(&problem.options, &report, &err);
            over = slc_fault_seen(kind) < k;
            slc_fault_arm(kind, 0);
            fake_products_end(&fake);
            if (over) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT(status == (kind == SLC_FAULT_THREAD ? SLC_ERR_SYSTEM : SLC_ERR_MEMORY));
            check_nothing_left(&problem);
        }
        problem_destroy(&problem);
    }
}

static const struct slc_test tests[] = {
    {"stores and numbers against a naive specification", test_against_naive},
    {"lanes and threads change nothing", test_lanes},
    {"memory and dry runs", test_memory},
    {"no vector", test_no_vector},
    {"refusals", test_refusals},
    {"damaged tiles", test_damage},
    {"failing memory and threads", test_failing_memory_and_threads},
};

SLC_SUITE(contract_products)
{
    return slc_test_main("contract with products", tests, SLC_COUNT(tests), argc, argv);
}
