/* Splits between CPU and device: parsing, and fractions from rates. */
#include "engine/hybrid/hybrid.h"
#include "slc_test.h"

#include <string.h>

static void understands_wishes(void)
{
    static const struct {
        const char *text;
        enum slc_hybrid_kind kind;
        double fraction;
        const char *name;
    } cases[] = {
        {"static=0", SLC_HYBRID_STATIC, 0, "static=0"},
        {"static=1", SLC_HYBRID_STATIC, 1, "static=1"},
        {"static=0.7", SLC_HYBRID_STATIC, 0.7, "static=0.7"},
        {"static=.25", SLC_HYBRID_STATIC, 0.25, "static=0.25"},
        {"static=1.", SLC_HYBRID_STATIC, 1, "static=1"},
        {"static=0.333333333333333", SLC_HYBRID_STATIC, 0.333333333333333,
         "static=0.333333333333333"},
        {"static=00.50", SLC_HYBRID_STATIC, 0.5, "static=0.5"},
        {"adaptive", SLC_HYBRID_ADAPTIVE, 0, "adaptive"},
        {"queue", SLC_HYBRID_QUEUE, 0, "queue"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_hybrid_wish wish = {SLC_HYBRID_NONE, -1};
        struct slc_hybrid_text text;

        SLC_ASSERT_OK(slc_hybrid_parse(cases[i].text, &wish, &err), &err);
        CU_ASSERT_EQUAL(wish.kind, cases[i].kind);
        CU_ASSERT_EQUAL(wish.fraction, cases[i].fraction);
        CU_ASSERT_STRING_EQUAL(slc_hybrid_name(&wish, &text), cases[i].name);
        CU_ASSERT(slc_hybrid_is_split(cases[i].text));
    }
}

static void rejects_invalid_splits(void)
{
    static const char *const fractions[] = {"static",      "static=",
                                            "static=1.1",  "static=-0.5",
                                            "static=0,5",  "static=nan",
                                            "static=1e-1", "static=0.5 ",
                                            "static=.",    "static=0.5.1",
                                            "static= 0.5", "static=2",
                                            "static=+0.5", "static=0.1234567890123456"};
    static const char *const words[] = {"",        "partition", "Queue",
                                        "queue=1", "adaptive ", "statics=1"};

    for (size_t i = 0; i < SLC_COUNT(fractions) + SLC_COUNT(words); i++) {
        const bool fraction = i < SLC_COUNT(fractions);
        const char *text = fraction ? fractions[i] : words[i - SLC_COUNT(fractions)];
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_hybrid_wish wish = {SLC_HYBRID_NONE, -1};

        CU_ASSERT_EQUAL(slc_hybrid_parse(text, &wish, &err), SLC_ERR_USAGE);
        CU_ASSERT(strstr(err.message, fraction ? "with F from 0 to 1" : "adaptive or queue") !=
                  NULL);
        CU_ASSERT_EQUAL(wish.kind, SLC_HYBRID_NONE);
        CU_ASSERT_EQUAL(wish.fraction, -1);
    }
    /* Words meant as a split, so that errors are reported for the split. */
    CU_ASSERT(slc_hybrid_is_split("static"));
    CU_ASSERT(slc_hybrid_is_split("static=9"));
    CU_ASSERT(slc_hybrid_is_split("queue=1"));
    CU_ASSERT_FALSE(slc_hybrid_is_split("nnz"));
    CU_ASSERT_FALSE(slc_hybrid_is_split("none"));
    CU_ASSERT_FALSE(slc_hybrid_is_split(""));
    CU_ASSERT_FALSE(slc_hybrid_is_split("statics"));
}

static void names_no_split(void)
{
    const struct slc_hybrid_wish none = {SLC_HYBRID_NONE, 0};
    struct slc_hybrid_text text;

    CU_ASSERT_STRING_EQUAL(slc_hybrid_name(&none, &text), "none");
    CU_ASSERT_STRING_EQUAL(slc_hybrid_kind_name(SLC_HYBRID_STATIC), "static");
    CU_ASSERT_STRING_EQUAL(slc_hybrid_kind_name((enum slc_hybrid_kind)17), "?");
}

static void
note(struct slc_hybrid *share, uint64_t cpu_nnz, double cpu, uint64_t nnz, double device)
{
    const struct slc_hybrid_part parts[SLC_HYBRID_PARTS] = {{cpu_nnz, cpu}, {nnz, device}};

    slc_hybrid_record(share, parts);
}

static void divides_by_rates(void)
{
    struct slc_hybrid share = {.wish = {SLC_HYBRID_ADAPTIVE, 0}};

    CU_ASSERT(slc_hybrid_planned(&share) < 0);
    /* The rate of one side says nothing about the other. */
    note(&share, 0, 1, 600, 2);
    CU_ASSERT(slc_hybrid_planned(&share) < 0);
    CU_ASSERT_EQUAL(slc_hybrid_fraction(share.last), 1);
    CU_ASSERT_EQUAL(slc_hybrid_rate(&share.rates, SLC_HYBRID_GPU), 300);
    CU_ASSERT_EQUAL(slc_hybrid_rate(&share.rates, SLC_HYBRID_CPU), 0);
    note(&share, 100, 1, 0, 2);
    CU_ASSERT_EQUAL(slc_hybrid_planned(&share), 0.75);
    CU_ASSERT_EQUAL(slc_hybrid_fraction(share.last), 0);
    /* The last measurement has weight one half: a CPU with 100 and 500 per second counts as 300. */
    note(&share, 1500, 3, 900, 3);
    CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_rate(&share.rates, SLC_HYBRID_CPU), 300, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_planned(&share), 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_fraction(share.last), 900.0 / 2400, 1e-12);
    CU_ASSERT_EQUAL(share.passes, 3);
    CU_ASSERT_EQUAL(share.parts[SLC_HYBRID_CPU].nnz, 1600);
    CU_ASSERT_EQUAL(share.parts[SLC_HYBRID_GPU].nnz, 1500);
    CU_ASSERT_EQUAL(share.parts[SLC_HYBRID_GPU].seconds, 7);
}

/* A device three times as fast: from any start, the fraction converges to 3/4. */
static void converges_where_both_end_together(void)
{
    struct slc_hybrid share = {.wish = {SLC_HYBRID_ADAPTIVE, 0}};
    const double nnz = 1e6;

    note(&share, 900000, 9, 100000, 3);
    for (unsigned i = 0; i < 12; i++) {
        const double fraction = slc_hybrid_planned(&share);
        const double device = nnz * fraction;

        note(&share, (uint64_t)(nnz - device), (nnz - device) / 1e5, (uint64_t)device,
             device / 3e5);
    }
    CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_planned(&share), 0.75, 1e-3);
}

/* A device 9 times as fast as the CPU, and passes of 1000 nonzeros that take the CPU a second. */
static void note_shared(struct slc_hybrid *share, double cost)
{
    note(share, 100, 0.9, 900, 0.9);
    slc_hybrid_record_cost(share, cost);
}

/* The CPU saves a tenth of a second per pass, and gets a part if its part costs less than that. */
static void leaves_the_cpu_out(void)
{
    struct slc_hybrid cheap = {.wish = {SLC_HYBRID_ADAPTIVE, 0}};
    struct slc_hybrid dear = cheap, hopeless = cheap;
    struct slc_hybrid fixed = {.wish = {SLC_HYBRID_STATIC, 0.5}};
    struct slc_hybrid queue = {.wish = {SLC_HYBRID_QUEUE, 0}};

    CU_ASSERT(!slc_hybrid_without_cpu(&cheap)); /* without measurements, the CPU takes part */
    for (unsigned i = 1; i <= 20; i++) {
        note_shared(&cheap, 0.09);
        note_shared(&dear, 0.11);
        note_shared(&hopeless, 3.5);
        note_shared(&fixed, 3.5);
        note_shared(&queue, 3.5);
        CU_ASSERT(!slc_hybrid_without_cpu(&cheap));
        CU_ASSERT_EQUAL(slc_hybrid_without_cpu(&dear), i != 1 && i != 4 && i != 16);
        CU_ASSERT(slc_hybrid_without_cpu(&hopeless));
        CU_ASSERT(!slc_hybrid_without_cpu(&fixed) && !slc_hybrid_without_cpu(&queue));
    }
    CU_ASSERT_EQUAL(dear.passes_alone, 0);
    note(&dear, 0, 0, 1000, 1);
    CU_ASSERT_EQUAL(dear.passes_alone, 1);
    CU_ASSERT(slc_hybrid_without_cpu(&dear));
    /* The device becomes slower: the CPU's part pays off again. */
    note(&dear, 0, 0, 1000, 4);
    CU_ASSERT(!slc_hybrid_without_cpu(&dear));
}

/* A lower cost counts at once, a higher one with weight one half. */
static void costs(void)
{
    struct slc_hybrid share = {.wish = {SLC_HYBRID_ADAPTIVE, 0}};

    slc_hybrid_record_cost(&share, 8);
    CU_ASSERT_EQUAL(share.cost_seconds, 8);
    slc_hybrid_record_cost(&share, 2);
    CU_ASSERT_EQUAL(share.cost_seconds, 2);
    slc_hybrid_record_cost(&share, 4);
    CU_ASSERT_EQUAL(share.cost_seconds, 3);
}

static void plans_the_requested_fraction(void)
{
    struct slc_hybrid fixed = {.wish = {SLC_HYBRID_STATIC, 0.25}};
    struct slc_hybrid queue = {.wish = {SLC_HYBRID_QUEUE, 0}};
    struct slc_hybrid none = {.wish = {SLC_HYBRID_NONE, 0}};

    for (unsigned i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(slc_hybrid_planned(&fixed), 0.25);
        CU_ASSERT(slc_hybrid_planned(&queue) < 0);
        CU_ASSERT_EQUAL(slc_hybrid_planned(&none), 1);
        note(&fixed, 10, 1, 10, 1);
        note(&queue, 10, 1, 10, 1);
    }
    CU_ASSERT_EQUAL(slc_hybrid_fraction(queue.last), 0.5);
    note(&queue, 0, 0, 0, 0);
    CU_ASSERT(slc_hybrid_fraction(queue.last) < 0);
}

SLC_SUITE(hybrid)
{
    static const struct slc_test tests[] = {
        {"valid splits are parsed and named", understands_wishes},
        {"anything else is rejected with the valid choices", rejects_invalid_splits},
        {"no split has a name, too", names_no_split},
        {"rates divide", divides_by_rates},
        {"an adaptive split converges", converges_where_both_end_together},
        {"passes begin with the requested fraction", plans_the_requested_fraction},
        {"the CPU is left out if its part costs more than it saves", leaves_the_cpu_out},
        {"the cost of the CPU's part", costs},
    };

    return slc_test_main("engine: share", tests, SLC_COUNT(tests), argc, argv);
}
