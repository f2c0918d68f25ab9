/* The completion times of reads from a drive of a given rate. */
#include "engine/stream/read_limit.h"
#include "slc_test.h"

#define SECOND UINT64_C(1000000000)

static void test_no_limit(void)
{
    struct slc_read_limit limit = {0, 0};

    CU_ASSERT_EQUAL(slc_read_limit_due(&limit, 5, UINT64_C(1) << 40), 5);
    CU_ASSERT_EQUAL(slc_read_limit_due(&limit, 7, 0), 7);
}

static void test_one_after_the_other(void)
{
    struct slc_read_limit limit = {1000, 0};

    CU_ASSERT_EQUAL(slc_read_limit_due(&limit, 10 * SECOND, 1000), 11 * SECOND);
    CU_ASSERT_EQUAL(slc_read_limit_due(&limit, 10 * SECOND, 500), 11 * SECOND + SECOND / 2);
    CU_ASSERT_EQUAL(slc_read_limit_due(&limit, 11 * SECOND, 2000), 13 * SECOND + SECOND / 2);
}

static void test_idle_time_is_lost(void)
{
    struct slc_read_limit limit = {4096, 0};

    CU_ASSERT_EQUAL(slc_read_limit_due(&limit, SECOND, 4096), 2 * SECOND);
    CU_ASSERT_EQUAL(slc_read_limit_due(&limit, 9 * SECOND, 4096), 10 * SECOND);
    CU_ASSERT_EQUAL(slc_read_limit_due(&limit, 9 * SECOND, 0), 10 * SECOND);
}

static void test_extremes(void)
{
    struct slc_read_limit slow = {1, 0}, fast = {UINT64_MAX, 0};
    uint64_t before = SECOND;

    for (unsigned i = 0; i < 10; i++) {
        const uint64_t due = slc_read_limit_due(&slow, SECOND, UINT64_C(1) << 62);

        CU_ASSERT(due > before); /* the time does not wrap */
        before = due;
    }
    CU_ASSERT_EQUAL(slc_read_limit_due(&fast, SECOND, UINT64_C(1) << 30), SECOND);
}

static const struct slc_test tests[] = {
    {"no limit", test_no_limit},
    {"one read after the other", test_one_after_the_other},
    {"idle time is lost", test_idle_time_is_lost},
    {"very slow and very fast", test_extremes},
};

SLC_SUITE(read_limit)
{
    return slc_test_main("read-limit", tests, SLC_COUNT(tests), argc, argv);
}
