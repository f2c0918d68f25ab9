/* The builder against its specification, and the property that the store has the same bytes for any
 * threads, memory, sample, pieces and order of pushing. */
#include "base/random.h"
#include "builder_fixture.h"
#include "convert/build/sort/fibers.h"
#include "slc_test.h"

#include <string.h>

static const uint64_t dims3[] = {900, 70, 5000};

static void test_variants_yield_the_same_bytes(void)
{
    static const struct build builds[] = {
        {.workers = 1, .cut = 1u << 30, .memory = 100 << 20},
        {.workers = 2, .cut = 1000, .memory = 100 << 20, .sample = 4000},
        {.workers = 2, .cut = 1000, .sample = 4000, .entries_expected = 400000},
        {.workers = 3, .cut = 777, .sample = 100, .entries_expected = 4000000, .backwards = true},
        {.workers = 4, .cut = 10000},
        {.workers = 2, .cut = 5000, .sample = 500, .biased = true, .assumed_base = 0},
        {.workers = 2, .cut = 33, .sample = 3000, .assumed_base = 1, .entries_expected = 9000000},
        {.workers = 8, .cut = 4096, .memory = 60 << 20, .sample = 9, .entries_expected = 400000},
    };
    static const enum shape shapes[] = {UNIFORM, SKEWED, SORTED, EQUAL, ZEROS, ZEROS};
    size_t s, b;

    for (s = 0; s < SLC_COUNT(shapes); s++) {
        struct input input;
        struct built first;

        input_create(&input, 3, dims3, slc_test_threads_only() ? 100000 : 150000, s % 2, shapes[s],
                     slc_test_seed());
        input.keep_zeros = s == SLC_COUNT(shapes) - 1;
        for (b = 0; b < SLC_COUNT(builds); b++) {
            struct build build = builds[b];

            if (slc_test_threads_only() && b > 0 && (b + s) % 4 != 0) {
                continue; /* each way is tested with some shape */
            }
            if (b % 2 == 0) {
                build.assumed_base = input.base;
            }
            if (b == 0) {
                build_and_check(&input, &build, &first);
            } else {
                build_again(&input, &build, &first);
            }
        }
        input_destroy(&input);
    }
}

/* The input is large enough to spill and to overflow the smallest sort area several times. */
static void test_overflow_recurses(void)
{
    static const enum shape shapes[] = {UNIFORM, SKEWED, SORTED, EQUAL};
    static const enum slc_duplicates policies[] = {SLC_DUPLICATES_SUM, SLC_DUPLICATES_MEAN,
                                                   SLC_DUPLICATES_MIN, SLC_DUPLICATES_MEAN};
    static const uint64_t wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 30, 1};
    size_t s;

    for (s = 0; s < SLC_COUNT(shapes); s += slc_test_threads_only() ? 3 : 1) {
        struct input input;
        const char *path = store_in_folder("big.slc");
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_builder_report report;
        struct expected e;
        /* The first shape is large enough for split parts to overflow again, if all cases run;
         * under sanitizers a single split suffices. */
        const bool deep = s == 0 && !slc_test_quick();
        struct build small = {.workers = 2, .cut = 3000, .sample = deep ? 100 : 8, .biased = true};
        struct build large = {.workers = 1, .cut = 1u << 30, .memory = 100 << 20};
        uint64_t hash;

        input_create(&input, 3, s == 0 ? wide : dims3, deep ? 700000 : 300000, 1, shapes[s],
                     slc_test_seed() + 1);
        small.assumed_base = large.assumed_base = 1;
        small.duplicates = large.duplicates = policies[s];
        SLC_ASSERT_OK(run_build(&input, &small, path, false, &report, &err), &err);
        CU_ASSERT(report.recursions > (deep ? 3 : 0));
        CU_ASSERT(report.spill_bytes > 0);
        hash = hash_of(path_in(path, "blco.blk"));
        expected_create(&e, &input, run_of(path), policies[s], false);
        check_store(path, &e);
        expected_destroy(&e);
        SLC_ASSERT_OK(run_build(&input, &large, path, true, &report, &err), &err);
        CU_ASSERT_EQUAL(report.recursions, 0);
        CU_ASSERT_EQUAL(report.spill_bytes, 0);
        CU_ASSERT_EQUAL(hash_of(path_in(path, "blco.blk")), hash);
        CU_ASSERT_FALSE(exists(path_in(test_folder(), "big.slc.old")));
        remove_store(path);
        input_destroy(&input);
    }
}

/* The smallest budget for a large block: nearly all of it is free while nonzeros are pushed, and
 * nearly nothing once the block is allocated. */
static void test_large_blocks_in_the_least_memory(void)
{
    static const uint64_t wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 30, 1};
    static const uint64_t sizes[] = {16 << 20, 64 << 20, 256 << 20};
    struct input input;
    size_t i;

    input_create(&input, 3, wide, slc_test_threads_only() ? 100000 : 300000, 0, UNIFORM,
                 slc_test_seed() + 2);
    for (i = slc_test_threads_only() ? 1 : 0; i < SLC_COUNT(sizes); i++) {
        struct build build = {.workers = 1 + (unsigned)i, .cut = 3000, .block_bytes = sizes[i]};
        struct built built;

        build_and_check(&input, &build, &built);
    }
    input_destroy(&input);
}

static void test_random_shapes(void)
{
    static const enum slc_duplicates policies[] = {
        SLC_DUPLICATES_SUM,  SLC_DUPLICATES_KEEP_FIRST, SLC_DUPLICATES_KEEP_LAST,
        SLC_DUPLICATES_MEAN, SLC_DUPLICATES_MIN,        SLC_DUPLICATES_MAX};
    uint64_t seed = slc_test_seed() + 100;
    uint64_t round;

    for (round = 0; round < (slc_test_threads_only() ? 30 : 60); round++) {
        unsigned order = 1 + (unsigned)slc_random_below(seed, 1, round, SLC_MAX_ORDER);
        uint64_t dims[SLC_MAX_ORDER];
        unsigned m;
        struct input input;
        struct build build = {.workers = 1 + (unsigned)slc_random_below(seed, 2, round, 4),
                              .cut = 1 + (uint32_t)slc_random_below(seed, 3, round, 3000),
                              .sample = (uint32_t)slc_random_below(seed, 4, round, 300),
                              .entries_expected = slc_random_below(seed, 5, round, 10000000),
                              .assumed_base = (unsigned)slc_random_below(seed, 6, round, 2),
                              .codec =
                                  SLC_CODEC_PACKED + (unsigned)slc_random_below(seed, 7, round, 3),
                              .value = (enum slc_value_choice)slc_random_below(seed, 8, round, 3),
                              .block_bytes = round % 3 == 0 ? 4096 : 0,
                              .duplicates = policies[round % SLC_COUNT(policies)]};
        uint64_t count = slc_random_below(seed, 9, round, 5000);
        struct built built;

        for (m = 0; m < order; m++) {
            unsigned bits = (unsigned)slc_random_below(seed, 20 + m, round, 128 / order + 1);

            bits = bits > 62 ? 62 : bits;
            dims[m] = 1 + slc_random_below(seed, 40 + m, round, UINT64_C(1) << bits);
        }
        input_create(&input, order, dims, count, (unsigned)round % 2,
                     (enum shape)slc_random_below(seed, 10, round, 5), seed + round);
        build.sample = build.sample > count ? (uint32_t)count : build.sample;
        build_and_check(&input, &build, &built);
        input_destroy(&input);
    }
}

/* In a mode of size 2^62, tiles end before their extent exceeds 2^32 - 2. */
static void test_extents_cut_tiles(void)
{
    static const uint64_t dims[] = {UINT64_C(1) << 62, 3};
    struct build build = {.workers = 3, .cut = 500, .sample = 1000, .entries_expected = 1000000};
    struct build other = {.workers = 1, .cut = 100000, .memory = UINT64_C(1) << 28};
    struct input input;
    struct built built;
    uint64_t i;

    input_create(&input, 2, dims, 70000, 0, UNIFORM, slc_test_seed());
    for (i = 0; i < input.count; i++) {
        /* Half of the nonzeros are close enough to share tiles. */
        input.coords[0][i] >>= i % 2 == 0 ? 29 : 0;
    }
    build_and_check(&input, &build, &built);
    build_again(&input, &other, &built);
    input_destroy(&input);
}

/* The input is sorted by fibers of mode 3, which its beginning shows, but has more and longer
 * fibers of mode 1, whose nonzeros are spread over the whole input. Whatever the sample suggests,
 * the right mode is found, and the store is the same as with an explicit mode. */
static void test_fibers_found_by_any_way(void)
{
    static const uint64_t dims[] = {600, 50, 6, 3};
    static const struct build builds[] = {
        {.workers = 1, .cut = 1u << 30, .memory = 100 << 20, .run = {0, SLC_FIBER_BITS}},
        {.workers = 2, .cut = 1000},
        {.workers = 2, .cut = 999, .sample = 4000, .entries_expected = 90000},
        {.workers = 3, .cut = 777, .sample = 4000, .entries_expected = 90000, .stretches = 50},
        {.workers = 2, .cut = 500, .sample = 3000, .biased = true, .stretches = 1},
        {.workers = 2, .cut = 500, .sample = 9000, .assumed_base = 1, .entries_expected = 90000},
        {.workers = 4, .cut = 50, .sample = 90, .biased = true, .assumed_base = 1},
    };
    struct input input;
    uint64_t first = 0;
    uint64_t i;
    size_t b;

    input_create(&input, 4, dims, 90000, 0, UNIFORM, slc_test_seed() + 3);
    for (i = 0; i < input.count; i++) {
        input.coords[0][i] = i / 150;
        input.coords[1][i] = slc_random_below(slc_test_seed(), 1, i / 3, dims[1]);
        input.coords[3][i] = 0;
    }
    for (b = 0; b < SLC_COUNT(builds); b++) {
        const char *path = store_in_folder("fibers.slc");
        struct build build = builds[b];
        struct slc_builder_report report;
        struct slc_error err = SLC_ERROR_INIT;

        build.fibers = build.run.bits > 0 ? SLC_FIBERS_GIVEN : SLC_FIBERS_AUTO;
        SLC_ASSERT_OK(run_build(&input, &build, path, false, &report, &err), &err);
        CU_ASSERT_EQUAL(report.fibers.run.mode, 0);
        CU_ASSERT_EQUAL(report.fibers.run.bits, SLC_FIBER_BITS);
        CU_ASSERT_EQUAL(report.fibers.chosen, build.fibers == SLC_FIBERS_AUTO);
        CU_ASSERT(!report.fibers.chosen || report.fibers.piece_nnz > 50);
        CU_ASSERT(b != 4 || report.recursions == 1);
        CU_ASSERT((b != 2 && b != 3) || report.recursions == 0);
        CU_ASSERT_EQUAL(run_of(path).bits, 10); /* the run has all bits of the mode */
        if (b == 0) {
            struct expected e;

            expected_create(&e, &input, run_of(path), SLC_DUPLICATES_SUM, false);
            check_store(path, &e);
            expected_destroy(&e);
            first = hash_of(path_in(path, "blco.blk"));
        }
        CU_ASSERT_EQUAL(hash_of(path_in(path, "blco.blk")), first);
        remove_store(path);
    }
    input_destroy(&input);
}

/* Every mode and many bit counts given explicitly, with keys of any width. */
static void test_fibers_given(void)
{
    static const struct {
        unsigned order;
        uint64_t dims[5];
    } shapes[] = {
        {1, {5000}},
        {2, {1, 5000}},
        {3, {900, 1, 70}},
        {3, {UINT64_C(1) << 31, UINT64_C(1) << 31, UINT64_C(1) << 31}}, /* 93 bits */
        {5, {12, 13, 14, 15, 16}},
    };

    for (size_t s = 0; s < SLC_COUNT(shapes); s++) {
        struct input input;

        input_create(&input, shapes[s].order, shapes[s].dims, 9000, 1, UNIFORM, s);
        for (unsigned mode = 0; mode <= input.order; mode++) {
            struct build build = {.workers = 2,
                                  .cut = 700,
                                  .sample = 500,
                                  .assumed_base = mode % 2,
                                  .fibers = mode < input.order ? SLC_FIBERS_GIVEN : SLC_FIBERS_NONE,
                                  .run = {mode, 1 + (unsigned)(7 * s + mode) % 24}};
            struct built built;

            build_and_check(&input, &build, &built);
        }
        input_destroy(&input);
    }
}

static void test_fibers_refused(void)
{
    static const uint64_t dims[] = {10, 10, 10};
    static const struct slc_fiber_run runs[] = {{3, 12}, {0, 0}, {1, SLC_FIBER_BITS_MAX + 1}};
    struct input input;

    input_create(&input, 3, dims, 10, 0, UNIFORM, 1);
    for (size_t i = 0; i < SLC_COUNT(runs); i++) {
        struct build build = {.workers = 1, .cut = 10, .fibers = SLC_FIBERS_GIVEN, .run = runs[i]};
        struct slc_builder_report report;
        struct slc_error err = SLC_ERROR_INIT;

        CU_ASSERT_EQUAL(run_build(&input, &build, store_in_folder("no.slc"), false, &report, &err),
                        SLC_ERR_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "the tensor has modes 1 to 3"));
        CU_ASSERT_FALSE(exists(store_in_folder("no.slc.part")));
    }
    input_destroy(&input);
}

static void test_no_nonzeros_and_one(void)
{
    static const uint64_t dims[] = {1, 1, 1};
    struct build build = {.workers = 2, .cut = 10};
    uint64_t count;

    for (count = 0; count < 3; count++) {
        struct input input;
        struct built built;

        input_create(&input, 3, dims, count, 1, UNIFORM, slc_test_seed());
        build_and_check(&input, &build, &built);
        input_destroy(&input);
    }
}

static void test_names(void)
{
    enum slc_duplicates policy;

    CU_ASSERT_TRUE(slc_duplicates_parse("keep-first", &policy));
    CU_ASSERT_EQUAL(policy, SLC_DUPLICATES_KEEP_FIRST);
    CU_ASSERT_STRING_EQUAL(slc_duplicates_name(SLC_DUPLICATES_ERROR), "error");
    CU_ASSERT_FALSE(slc_duplicates_parse("Sum", &policy));
}

static const struct slc_test tests[] = {
    {"policy names", test_names},
    {"no nonzeros and one", test_no_nonzeros_and_one},
    {"random shapes equal the specification", test_random_shapes},
    {"every variant yields the same bytes", test_variants_yield_the_same_bytes},
    {"buckets that overflow are split", test_overflow_recurses},
    {"large blocks in the least memory", test_large_blocks_in_the_least_memory},
    {"extents cut tiles", test_extents_cut_tiles},
    {"fibers are found by any way", test_fibers_found_by_any_way},
    {"fibers of an explicit mode", test_fibers_given},
    {"fibers that there are not", test_fibers_refused},
};

SLC_SUITE(builder)
{
    return slc_test_main("builder", tests, SLC_COUNT(tests), argc, argv);
}
