/*
 * The builder against its specification, and the property that the store is the same bytes for any
 * threads, memory, sample, cutting and order of pushing.
 */
#include "base/random.h"
#include "builder_fixture.h"
#include "slc_test.h"

static const uint64_t dims3[] = {900, 70, 5000};

static void test_every_way_gives_the_same_bytes(void)
{
    static const struct build builds[] = {
        {.workers = 1, .cut = 1u << 30, .memory = UINT64_C(1) << 30},
        {.workers = 2, .cut = 1000, .memory = UINT64_C(1) << 30, .sample = 4000},
        {.workers = 2, .cut = 1000, .sample = 4000, .entries_expected = 400000},
        {.workers = 3, .cut = 777, .sample = 100, .entries_expected = 4000000, .backwards = true},
        {.workers = 4, .cut = 10000},
        {.workers = 2, .cut = 5000, .sample = 500, .biased = true, .assumed_base = 0},
        {.workers = 2, .cut = 33, .sample = 3000, .assumed_base = 1, .entries_expected = 9000000},
        {.workers = 8, .cut = 4096, .memory = 60 << 20, .sample = 9, .entries_expected = 400000},
    };
    static const enum shape shapes[] = {UNIFORM, SKEWED, SORTED, EQUAL, ZEROS};
    size_t s, b;

    for (s = 0; s < SLC_COUNT(shapes); s++) {
        struct input input;
        uint64_t first = 0;

        input_create(&input, 3, dims3, 150000, s % 2, shapes[s], slc_test_seed());
        for (b = 0; b < SLC_COUNT(builds); b++) {
            struct build build = builds[b];
            uint64_t hash;

            if (b % 2 == 0) {
                build.assumed_base = input.base;
            }
            build_and_check(&input, &build, &hash);
            first = b == 0 ? hash : first;
            CU_ASSERT_EQUAL(hash, first);
        }
        input_destroy(&input);
    }
}

/* Large enough to spill and to overflow the least sort area several times over. */
static void test_overflow_recurses(void)
{
    static const enum shape shapes[] = {UNIFORM, SKEWED, SORTED, EQUAL};
    static const uint64_t wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 30, 1};
    size_t s;

    for (s = 0; s < SLC_COUNT(shapes); s++) {
        struct input input;
        const char *path = store_in_folder("big.slc");
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_builder_report report;
        struct expected e;
        struct build small = {.workers = 2, .cut = 3000, .sample = 100, .biased = true};
        struct build large = {.workers = 1, .cut = 1u << 30, .memory = UINT64_C(1) << 30};
        uint64_t hash;

        input_create(&input, 3, s == 0 ? wide : dims3, 700000, 1, shapes[s], slc_test_seed() + 1);
        small.assumed_base = large.assumed_base = 1;
        SLC_ASSERT_OK(run_build(&input, &small, path, false, &report, &err), &err);
        CU_ASSERT(report.recursions > 0);
        CU_ASSERT(report.spill_bytes > 0);
        hash = hash_of(path_in(path, "blco.blk"));
        expected_create(&e, &input, SLC_DUPLICATES_SUM, false);
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

/*
 * The least budget for a large block: nearly all of it is free while entries are pushed, and nearly
 * nothing once the block is there.
 */
static void test_large_blocks_in_the_least_memory(void)
{
    static const uint64_t wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 30, 1};
    static const uint64_t sizes[] = {16 << 20, 64 << 20, 256 << 20};
    struct input input;
    size_t i;

    input_create(&input, 3, wide, 300000, 0, UNIFORM, slc_test_seed() + 2);
    for (i = 0; i < SLC_COUNT(sizes); i++) {
        struct build build = {.workers = 1 + (unsigned)i, .cut = 3000, .block_bytes = sizes[i]};
        uint64_t hash;

        build_and_check(&input, &build, &hash);
    }
    input_destroy(&input);
}

static void test_random_shapes(void)
{
    uint64_t seed = slc_test_seed() + 100;
    uint64_t round;

    for (round = 0; round < 60; round++) {
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
                              .duplicates = round % 4 == 1   ? SLC_DUPLICATES_KEEP_FIRST
                                            : round % 4 == 2 ? SLC_DUPLICATES_KEEP_LAST
                                                             : SLC_DUPLICATES_SUM};
        uint64_t count = slc_random_below(seed, 9, round, 5000);
        uint64_t hash;

        for (m = 0; m < order; m++) {
            unsigned bits = (unsigned)slc_random_below(seed, 20 + m, round, 128 / order + 1);

            bits = bits > 62 ? 62 : bits;
            dims[m] = 1 + slc_random_below(seed, 40 + m, round, UINT64_C(1) << bits);
        }
        input_create(&input, order, dims, count, (unsigned)round % 2,
                     (enum shape)slc_random_below(seed, 10, round, 5), seed + round);
        build.sample = build.sample > count ? (uint32_t)count : build.sample;
        build_and_check(&input, &build, &hash);
        input_destroy(&input);
    }
}

/* One mode of 2^62: tiles end where their extent would pass 2^32 - 2. */
static void test_extents_cut_tiles(void)
{
    static const uint64_t dims[] = {UINT64_C(1) << 62, 3};
    struct build build = {.workers = 3, .cut = 500, .sample = 1000, .entries_expected = 1000000};
    struct build other = {.workers = 1, .cut = 100000, .memory = UINT64_C(1) << 28};
    struct input input;
    uint64_t a, b, i;

    input_create(&input, 2, dims, 70000, 0, UNIFORM, slc_test_seed());
    for (i = 0; i < input.count; i++) {
        /* Half of them in runs close enough to share tiles. */
        input.coords[0][i] >>= i % 2 == 0 ? 29 : 0;
    }
    build_and_check(&input, &build, &a);
    build_and_check(&input, &other, &b);
    CU_ASSERT_EQUAL(a, b);
    input_destroy(&input);
}

static void test_no_nonzeros_and_one(void)
{
    static const uint64_t dims[] = {1, 1, 1};
    struct build build = {.workers = 2, .cut = 10};
    uint64_t count;

    for (count = 0; count < 3; count++) {
        struct input input;
        uint64_t hash;

        input_create(&input, 3, dims, count, 1, UNIFORM, slc_test_seed());
        build_and_check(&input, &build, &hash);
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
    {"every way gives the same bytes", test_every_way_gives_the_same_bytes},
    {"buckets that overflow are split", test_overflow_recurses},
    {"large blocks in the least memory", test_large_blocks_in_the_least_memory},
    {"extents cut tiles", test_extents_cut_tiles},
};

int main(int argc, char **argv)
{
    return slc_test_main("builder", tests, SLC_COUNT(tests), argc, argv);
}
