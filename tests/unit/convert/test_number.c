/* Numbers in text tensors, compared with the C library: every double must have the same bits, in
 * every form that programs print. */
#include "base/memory/bytes.h"
#include "base/random.h"
#include "convert/ingest/text/text.h"
#include "convert/number/number.h"
#include "slc_test.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned differences;

/* Parses `text` alone and with bytes after it; both must equal strtod bit for bit. */
static void check_against_strtod(const char *text)
{
    char longer[2048];
    size_t length = strlen(text);
    double want = strtod(text, NULL);
    double got = NAN;
    const char *end = slc_parse_f64(text, text + length, &got);

    if (end != text + length || slc_bits_f64(got) != slc_bits_f64(want)) {
        if (differences++ < 10) {
            printf("# %s: %a, strtod says %a\n", text, got, want);
        }
    }
    if (length + 20 < sizeof longer) {
        memcpy(longer, text, length);
        memcpy(longer + length, "\n1234567890123456", 18);
        end = slc_parse_f64(longer, longer + length + 17, &got);
        if (end != longer + length || slc_bits_f64(got) != slc_bits_f64(want)) {
            differences++;
        }
    }
}

static void check_forms(double value)
{
    static const char *const forms[] = {"%.17g", "%.16g", "%.15g",  "%.9g",  "%.6g",  "%.3e",
                                        "%.17e", "%.16E", "%+.12e", "%.20e", "%.18g", "%.19g"};
    char text[1200];

    for (size_t f = 0; f < SLC_COUNT(forms); f++) {
        snprintf(text, sizeof text, forms[f], value);
        check_against_strtod(text);
    }
    if (fabs(value) < 1e300) {
        snprintf(text, sizeof text, "%.20f", value);
        check_against_strtod(text);
    }
}

static void random_doubles(void)
{
    uint64_t seed = slc_test_seed();

    differences = 0;
    for (uint64_t i = 0; i < 40000; i++) {
        uint64_t bits = slc_random_u64(seed, 1, i);
        double any;
        double unit = slc_random_f64(seed, 2, i);

        memcpy(&any, &bits, sizeof any);
        if (isfinite(any)) {
            check_forms(any);
        }
        check_forms(unit);
        check_forms((unit - 0.5) * pow(10.0, (double)(bits % 40) - 20.0));
        check_forms((double)(bits >> (bits & 63)));
    }
    CU_ASSERT_EQUAL(differences, 0);
}

/* Random digit strings with random points and exponents, beyond those printed for doubles. */
static void random_strings(void)
{
    uint64_t seed = slc_test_seed();

    differences = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        uint32_t words[4];
        char text[128];
        size_t length = 0;
        unsigned digits, point;

        slc_philox4x32(seed, 3, i, words);
        digits = 1 + words[0] % 40;
        point = words[0] / 64 % 45;
        for (unsigned d = 0; d < digits; d++) {
            if (d == point) {
                text[length++] = '.';
            }
            text[length++] = (char)('0' + slc_random_below(seed, 4 + i, d, words[1] % 4 ? 10 : 2));
        }
        if (words[1] & 8) {
            length += (size_t)sprintf(text + length, "e%d", (int)(words[2] % 700) - 350);
        }
        text[length] = '\0';
        check_against_strtod(text);
    }
    CU_ASSERT_EQUAL(differences, 0);
}

/* Halfway between two doubles, and one digit above and below: the cases in which rounding can
 * fail. */
static void halfway_cases(void)
{
    uint64_t seed = slc_test_seed();

    differences = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        int exponent = (int)slc_random_below(seed, 5, i, 160) - 80;
        uint64_t mantissa = (UINT64_C(1) << 53) | (slc_random_u64(seed, 6, i) >> 11) | 1;
        char text[400];
        size_t length;

        /* An odd 54-bit integer times a power of two is exactly between two doubles. */
        snprintf(text, sizeof text, "%.200Lf", ldexpl((long double)mantissa, exponent));
        check_against_strtod(text);
        length = strlen(text);
        text[length - 1] = '1';
        check_against_strtod(text);
        snprintf(text, sizeof text, "%.18Le", ldexpl((long double)mantissa, exponent));
        check_against_strtod(text);
    }
    CU_ASSERT_EQUAL(differences, 0);
}

static void edge_values(void)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0e5",
        "0e999999999999999999999",
        "1",
        "1.",
        ".5",
        "+1.5",
        "-2",
        "1e3",
        "1E-3",
        "1e+3",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "-1e400",
        "1e-400",
        "1e999999999999999999999999",
        "1e-999999999999999999999999",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0000000000000000000000000000000000000000001",
        "9223372036854775807",
        "9999999999999999999",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "12345678901234567890123456789012345678901234567890",
        "0.000000000000000000000000000000000000000000000000001234567890123456789",
        "00000000000000000000000000000001.5",
        "1e22",
        "1e23",
        "1e27",
        "1e28",
        "8.5e-27",
        "8.5e-28",
        "123456789012345678e-27",
        "9007199254740993e22",
        "1234567890123456789e27",
    };

    differences = 0;
    for (size_t i = 0; i < SLC_COUNT(texts); i++) {
        check_against_strtod(texts[i]);
    }
    CU_ASSERT_EQUAL(differences, 0);
}

/* A million digits before and after the point, with an exponent that compensates them. */
static void very_long_numbers(void)
{
    size_t zeros = 1000000;
    char *text = malloc(zeros + 64);
    double value = 0;
    const char *end;
    size_t length;

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memcpy(text, "0.", 2);
    memset(text + 2, '0', zeros);
    length = 2 + zeros + (size_t)sprintf(text + 2 + zeros, "17e%zu", zeros + 2);
    end = slc_parse_f64(text, text + length, &value);
    CU_ASSERT_PTR_EQUAL(end, text + length);
    CU_ASSERT_EQUAL(value, 17.0);

    text[0] = '3';
    memset(text + 1, '0', zeros);
    length = 1 + zeros + (size_t)sprintf(text + 1 + zeros, ".5e-%zu", zeros);
    end = slc_parse_f64(text, text + length, &value);
    CU_ASSERT_PTR_EQUAL(end, text + length);
    CU_ASSERT_EQUAL(value, 3.0);

    /* 2^53 + 1 is halfway between two doubles; a digit far to the right decides the rounding. */
    length = (size_t)sprintf(text, "9007199254740993.");
    memset(text + length, '0', 5000);
    length += 5000;
    CU_ASSERT_PTR_NOT_NULL(slc_parse_f64(text, text + length, &value));
    CU_ASSERT_EQUAL(value, 9007199254740992.0);
    text[length++] = '1';
    CU_ASSERT_PTR_NOT_NULL(slc_parse_f64(text, text + length, &value));
    CU_ASSERT_EQUAL(value, 9007199254740994.0);
    free(text);
}

static void where_numbers_end(void)
{
    static const struct {
        const char *text;
        int length; /* length of the number; -1: the text is no number */
    } cases[] = {
        {"", -1},    {"e5", -1},   {".", -1},        {"-", -1},    {"+", -1},      {"+-1", -1},
        {".e1", -1}, {"nan", -1},  {"inf", -1},      {"-inf", -1}, {"abc", -1},    {" 1", -1},
        {"1e", 1},   {"1e+", 1},   {"1ex", 1},       {"0x10", 1},  {"1.5.2", 3},   {"1 2", 1},
        {"1,5", 1},  {"1_000", 1}, {"12345678a", 8}, {"1.e5", 4},  {"-.5e-2z", 6},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        double value = 42.0;
        const char *text = cases[i].text;
        const char *end = slc_parse_f64(text, text + strlen(text), &value);

        if (cases[i].length < 0) {
            CU_ASSERT_PTR_NULL(end);
            CU_ASSERT_EQUAL(value, 42.0);
        } else {
            CU_ASSERT_PTR_EQUAL(end, text + cases[i].length);
        }
    }
}

static void indices(void)
{
    char text[64];
    uint64_t seed = slc_test_seed();
    uint64_t value;

    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t bits = slc_random_u64(seed, 7, i);
        uint64_t want = (bits >> 2) >> (bits & 63);
        unsigned zeros = i % 5 == 0 ? (unsigned)(i % 17) : 0;
        int length = snprintf(text, sizeof text, "%.*s%" PRIu64 "%s", (int)zeros,
                              "00000000000000000", want, i & 1 ? " 77777777 " : "");
        int digits = i & 1 ? length - 10 : length;
        const char *end = slc_parse_index(text, text + length, &value);

        CU_ASSERT_PTR_EQUAL_FATAL(end, text + digits);
        CU_ASSERT_EQUAL_FATAL(value, want);
    }
}

static void index_limits(void)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } cases[] = {
        {"4611686018427387904", true, SLC_MAX_MODE_LENGTH},
        {"4611686018427387905", false, 0},
        {"18446744073709551616", false, 0},
        {"18446744073709551617 ", false, 0},
        {"99999999999999999999999999999999", false, 0},
        {"0000000000000000000000000000000004611686018427387904", true, SLC_MAX_MODE_LENGTH},
        {"", false, 0},
        {"-1", false, 0},
        {"x", false, 0},
        {"0", true, 0},
        {"12345678", true, 12345678},
        {"123456789", true, 123456789},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        uint64_t value = 7;
        const char *text = cases[i].text;
        const char *end = slc_parse_index(text, text + strlen(text), &value);

        CU_ASSERT_EQUAL(end != NULL, cases[i].good);
        if (cases[i].good) {
            CU_ASSERT_EQUAL(value, cases[i].value);
        }
    }
}

/* Every byte value at every position of a chunk: only digits count, for any bytes after them. */
static void chunks_of_eight(void)
{
    for (unsigned place = 0; place < 8; place++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            char text[8];
            uint64_t value, want = 0;
            unsigned digits;

            for (unsigned i = 0; i < 8; i++) {
                text[i] = (char)(i <= place ? '1' + i : 0x80 + byte / 2 + i);
            }
            text[place] = (char)byte;
            digits = slc_digits8(text, &value);
            if (byte >= '0' && byte <= '9') {
                CU_ASSERT_EQUAL(digits, place + 1);
            } else {
                CU_ASSERT_EQUAL(digits, place);
            }
            for (unsigned i = 0; i < digits; i++) {
                want = want * 10 + (uint64_t)(text[i] - '0');
            }
            CU_ASSERT_EQUAL(value, want);
        }
    }
}

/* Numbers of up to eight bytes, whatever follows them, and texts that are no numbers. */
static void short_numbers(void)
{
    static const char *const others[] = {"",    "-1", "+1",        "1e5", ".",    "1.2.3",
                                         "1,5", " 1", "123456789", "1 ",  "\xb1", "1\x80"};
    unsigned different = 0;

    for (uint64_t turn = 0; turn < 100000; turn++) {
        const uint64_t random = slc_random_u64(7, 0, turn);
        const unsigned digits = 1 + (unsigned)(random % 8);
        char text[32];
        size_t length;
        double got = NAN, want;

        snprintf(text, sizeof text, "%0*" PRIu64, (int)digits,
                 (random >> 8) % slc_powers_of_ten[digits]);
        if (digits < 8 && (random >> 4 & 3) != 0) {
            const unsigned at = (unsigned)(random >> 40) % (digits + 1);

            memmove(text + at + 1, text + at, digits - at + 1);
            text[at] = '.';
        }
        length = strlen(text);
        want = strtod(text, NULL);
        memcpy(text + length, random & 1 ? "9.5\n99999" : ",\"\xff\xff.....", 9);
        different +=
            !slc_parse_short_f64(text, length, &got) || slc_bits_f64(got) != slc_bits_f64(want);
    }
    CU_ASSERT_EQUAL(different, 0);
    for (size_t i = 0; i < SLC_COUNT(others); i++) {
        char text[32] = "";
        double got;

        memcpy(text, others[i], strlen(others[i]));
        CU_ASSERT_FALSE(slc_parse_short_f64(text, strlen(others[i]), &got));
    }
}

static const struct slc_test tests[] = {
    {"doubles in every printed form have strtod's bits", random_doubles},
    {"random digit strings have strtod's bits", random_strings},
    {"halfway cases round to even", halfway_cases},
    {"edge values have strtod's bits", edge_values},
    {"numbers of a million digits are exact", very_long_numbers},
    {"a number ends where strtod ends it", where_numbers_end},
    {"indices of all sizes", indices},
    {"short numbers have strtod's bits", short_numbers},
    {"index limits", index_limits},
    {"eight bytes at a time", chunks_of_eight},
};

SLC_SUITE(number)
{
    return slc_test_main("number", tests, SLC_COUNT(tests), argc, argv);
}
