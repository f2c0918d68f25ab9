/* The clock, with a system clock that jumps (-Wl,--wrap=clock_gettime): time never runs backwards,
 * and continues from its last value. */
#include "slc_test.h"

#include "base/error/clock.h"

#include <time.h>

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static uint64_t system_ns = 100 * HOUR;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    CU_ASSERT_EQUAL(clock, CLOCK_MONOTONIC);
    now->tv_sec = (time_t)(system_ns / SECOND);
    now->tv_nsec = (long)(system_ns % SECOND);
    return 0;
}

static void test_back(void)
{
    const uint64_t begin = slc_clock_ns();

    for (unsigned jump = 1; jump <= 5; jump++) {
        const uint64_t before = slc_clock_ns();

        system_ns -= jump * HOUR;
        CU_ASSERT(slc_clock_ns() >= before && slc_clock_ns() <= before + SECOND);
        system_ns += 7 * SECOND;
        CU_ASSERT(slc_clock_ns() >= before + 6 * SECOND && slc_clock_ns() <= before + 8 * SECOND);
        CU_ASSERT(slc_seconds_since(before) > 6 && slc_seconds_since(before) < 8);
    }
    CU_ASSERT(slc_clock_ns() >= begin + 30 * SECOND && slc_clock_ns() <= begin + 40 * SECOND);
}

/* A jump forwards, as on a machine that has slept, is elapsed time. */
static void test_forward(void)
{
    const uint64_t before = slc_clock_ns();

    system_ns += 3 * HOUR;
    CU_ASSERT_EQUAL(slc_clock_ns(), before + 3 * HOUR);
    system_ns += 1;
    CU_ASSERT_EQUAL(slc_clock_ns(), before + 3 * HOUR + 1);
}

/* A small jump backwards, as between threads, stops the clock for a moment and adds nothing. */
static void test_a_little(void)
{
    const uint64_t before = slc_clock_ns();

    system_ns -= SECOND / 2;
    CU_ASSERT(slc_clock_ns() + SECOND / 100 >= before);
    CU_ASSERT(slc_clock_ns() <= before);
    system_ns += SECOND;
    CU_ASSERT_EQUAL(slc_clock_ns(), before + SECOND / 2);
}

static const struct slc_test tests[] = {
    {"a clock that goes back", test_back},
    {"a clock that goes ahead", test_forward},
    {"a clock that goes back a little", test_a_little},
};

int main(int argc, char **argv)
{
    return slc_test_main("clock", tests, SLC_COUNT(tests), argc, argv);
}
