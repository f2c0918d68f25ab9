/* The union of time spans. */
#include "base/random.h"
#include "base/spans.h"
#include "slc_test.h"

#include <math.h>
#include <string.h>

static double length(const double (*spans)[2], unsigned count)
{
    struct slc_spans sum = {0};

    for (unsigned i = 0; i < count; i++) {
        slc_spans_add(&sum, spans[i][0], spans[i][1]);
    }
    return slc_spans_seconds(&sum);
}

static void few(void)
{
    static const double apart[][2] = {{5, 6}, {1, 2}, {3, 4}};
    static const double nested[][2] = {{1, 9}, {2, 3}, {8, 9}};
    static const double chained[][2] = {{1, 3}, {5, 7}, {2, 6}};
    static const double touching[][2] = {{1, 2}, {2, 3}, {0, 1}};
    static const double empty[][2] = {{1, 1}, {2, 1}};

    CU_ASSERT_EQUAL(length(apart, 3), 3);
    CU_ASSERT_EQUAL(length(nested, 3), 8);
    CU_ASSERT_EQUAL(length(chained, 3), 6);
    CU_ASSERT_EQUAL(length(touching, 3), 3);
    CU_ASSERT_EQUAL(length(empty, 2), 0);
    CU_ASSERT_EQUAL(length(NULL, 0), 0);
}

/* Spans consist of whole seconds, so that a table of seconds can serve as the reference. */
static void any_order(void)
{
    enum { SECONDS = 400, SPANS = 60 };

    for (unsigned seed = 1; seed <= 50; seed++) {
        struct slc_spans sum = {0};
        unsigned char there[SECONDS] = {0};
        unsigned covered = 0;

        for (unsigned i = 0; i < SPANS; i++) {
            const unsigned begin = (unsigned)slc_random_below(seed, 1, i, SECONDS - 8);
            const unsigned end = begin + (unsigned)slc_random_below(seed, 2, i, 8);

            slc_spans_add(&sum, begin, end);
            memset(there + begin, 1, end - begin);
        }
        for (unsigned s = 0; s < SECONDS; s++) {
            covered += there[s];
        }
        CU_ASSERT_EQUAL(slc_spans_seconds(&sum), covered);
    }
}

/* More disjoint spans than can be kept: exact in order, never too large in any order. */
static void many(void)
{
    enum { SPANS = 10 * SLC_SPANS_PENDING };
    struct slc_spans ascending = {0}, descending = {0}, late = {0};

    for (unsigned i = 0; i < SPANS; i++) {
        slc_spans_add(&ascending, 2 * i, 2 * i + 1);
        slc_spans_add(&descending, 2 * (SPANS - i), 2 * (SPANS - i) + 1);
        /* Each span arrives after as many later spans as can be pending. */
        slc_spans_add(&late, 2 * (i ^ (SLC_SPANS_PENDING / 2 - 1)),
                      2 * (i ^ (SLC_SPANS_PENDING / 2 - 1)) + 1);
    }
    CU_ASSERT_EQUAL(slc_spans_seconds(&ascending), SPANS);
    CU_ASSERT_EQUAL(slc_spans_seconds(&late), SPANS);
    CU_ASSERT(slc_spans_seconds(&descending) <= SPANS);
    CU_ASSERT(slc_spans_seconds(&descending) >= SLC_SPANS_PENDING);
}

static void restart(void)
{
    struct slc_spans sum = {0};

    slc_spans_add(&sum, 10, 12);
    slc_spans_restart(&sum);
    slc_spans_add(&sum, 1, 2);
    CU_ASSERT_EQUAL(slc_spans_seconds(&sum), 3);
    slc_spans_add(&sum, 1.5, 2.5);
    CU_ASSERT_EQUAL(slc_spans_seconds(&sum), 3.5);
}

SLC_SUITE(spans)
{
    static const struct slc_test tests[] = {
        {"spans that overlap, touch, or are disjoint", few},
        {"spans in any order", any_order},
        {"more spans than are kept", many},
        {"a new origin", restart},
    };

    return slc_test_main("base spans", tests, SLC_COUNT(tests), argc, argv);
}
