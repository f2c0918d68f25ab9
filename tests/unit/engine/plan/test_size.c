/* Parsing of sizes: exact values, and errors. */
#include "base/memory/memory.h"
#include "engine/plan/plan.h"
#include "slc_test.h"

static void understands_units(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"4096", 4096},
        {"17B", 17},
        {"17 b", 17},
        {"64K", 65536},
        {"64k", 65536},
        {"64KiB", 65536},
        {"64kib", 65536},
        {"64kB", 64000},
        {"64KB", 64000},
        {"512MiB", UINT64_C(512) << 20},
        {"4G", UINT64_C(4) << 30},
        {"4g", UINT64_C(4) << 30},
        {"200MB", 200000000},
        {"200 MB", 200000000},
        {"1.5GiB", UINT64_C(3) << 29},
        {".5k", 512},
        {"1.", 1},
        {"0.1GiB", 107374182},
        {"2T", UINT64_C(2) << 40},
        {"3PB", UINT64_C(3000000000000000)},
        {"15E", UINT64_C(15) << 60},
        {"18446744073709551615", UINT64_MAX},
        {"0.3333333333333333333333333333G", 357913941},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t bytes = 7;

        SLC_ASSERT_OK(slc_parse_size(cases[i].text, &bytes, &err), &err);
        CU_ASSERT_EQUAL(bytes, cases[i].bytes);
    }
}

static void understands_shares(void)
{
    const uint64_t total = slc_memory_total();
    uint64_t bytes = 0;

    CU_ASSERT_EQUAL(slc_parse_size("100%", &bytes, NULL), SLC_OK);
    CU_ASSERT_EQUAL(bytes, total);
    CU_ASSERT_EQUAL(slc_parse_size("50%", &bytes, NULL), SLC_OK);
    CU_ASSERT_EQUAL(bytes, total / 2);
    CU_ASSERT_EQUAL(slc_parse_size("12.5 %", &bytes, NULL), SLC_OK);
    CU_ASSERT_EQUAL(bytes, total / 8);
}

static void rejects_the_rest(void)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "does not start with a number"},
        {" ", "does not start with a number"},
        {".", "does not start with a number"},
        {"G", "does not start with a number"},
        {"-1", "does not start with a number"},
        {"+1", "does not start with a number"},
        {"nan", "does not start with a number"},
        {"1e9", "unit is unknown"},
        {"1,5G", "unit is unknown"},
        {"1.5.2", "unit is unknown"},
        {"4Gi", "unit is unknown"},
        {"4GiBs", "unit is unknown"},
        {"4GB ", "unit is unknown"},
        {"4 blocks", "unit is unknown"},
        {"4X", "unit is unknown"},
        {"0x10", "unit is unknown"},
        {"50%%", "unit is unknown"},
        {"101%", "at most 100%"},
        {"100.5%", "at most 100%"},
        {"16E", "does not fit"},
        {"18446744073709551616", "does not fit"},
        {"99999999999999999999G", "does not fit"},
        {"18446744073709551615k", "does not fit"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t bytes = 7;

        SLC_ASSERT_FAILS(slc_parse_size(cases[i].text, &bytes, &err), SLC_ERR_USAGE, &err,
                         cases[i].message);
        CU_ASSERT_EQUAL(bytes, 7);
    }
}

SLC_SUITE(size)
{
    static const struct slc_test tests[] = {
        {"units, fractions and the largest size", understands_units},
        {"fractions of memory", understands_shares},
        {"an invalid size is rejected with a reason", rejects_the_rest},
    };

    return slc_test_main("engine: size", tests, SLC_COUNT(tests), argc, argv);
}
