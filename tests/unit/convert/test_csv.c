/* Modules of the CSV reader: times, items of --columns, bins, records, dictionaries. */
#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/ingest/csv/csv_index.h"
#include "convert/ingest/csv/csv_names.h"
#include "convert/ingest/csv/csv_order.h"
#include "convert/ingest/csv/csv_record.h"
#include "convert/ingest/csv/csv_remember.h"
#include "convert/ingest/csv/csv_spec.h"
#include "slc_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void check_time(const char *text, int64_t want)
{
    struct slc_time time = {0, -1};

    CU_ASSERT_TRUE(slc_time_parse(text, strlen(text), &time));
    CU_ASSERT_EQUAL(86400 * (int64_t)time.days + time.second, want);
}

static void test_times(void)
{
    static const char *const none[] = {"",
                                       "20x3",
                                       "2023-13-01",
                                       "2023-00-01",
                                       "2023-04-31",
                                       "2023-4-1",
                                       "2023/04-01",
                                       "1900-02-29",
                                       "0000-01-01",
                                       "2023-04-01 24:00",
                                       "2023-04-01T",
                                       "1.",
                                       "--1",
                                       "1e9",
                                       "2023-04-01 1:00",
                                       "99999999999999",
                                       "2023-04-01 00:00:00 x",
                                       "2023-04-01 00:00+2",
                                       "2023-04-01 00:00+02:",
                                       "4/1/2014"};
    struct slc_time time;

    check_time("1970-01-01", 0);
    check_time("1969-12-31T23:59:59", -1);
    check_time("2000-02-29 12:00", INT64_C(951825600));
    check_time("2024-02-29T00:00:00.75Z", INT64_C(1709164800));
    check_time("2016-12-31 23:59:60", INT64_C(1483228799));
    check_time("2023/04/01 13:45:30+02:00", INT64_C(1680356730));
    check_time("0001-01-01", INT64_C(-62135596800));
    check_time("9999-12-31 23:59:59", INT64_C(253402300799));
    check_time("-1", -1);
    check_time("-0.5", -1);
    check_time("+5", 5);
    check_time("86400.999", 86400);
    for (size_t i = 0; i < SLC_COUNT(none); i++) {
        CU_ASSERT_FALSE(slc_time_parse(none[i], strlen(none[i]), &time));
    }
}

static struct slc_time time_of(int64_t seconds)
{
    const int64_t days = seconds / 86400 - (seconds % 86400 < 0);

    return (struct slc_time){(int32_t)days, (int32_t)(seconds - 86400 * days)};
}

static void check_bin(enum slc_time_unit unit, int64_t seconds, const char *want)
{
    const struct slc_time time = time_of(seconds);
    char name[SLC_TIME_NAME_BYTES];
    const size_t bytes = slc_time_name(unit, slc_time_bin(unit, &time), name);

    CU_ASSERT_EQUAL(bytes, strlen(want));
    CU_ASSERT_STRING_EQUAL(name, want);
}

/* Times parsed eight bytes at a time have the same value when parsed byte by byte. */
static void test_time_forms(void)
{
    static const char *const forms[] = {"2024-02-29 23:59:60", "1900-02-28T00:00:00", "2023-12-31"};
    static const char bytes[] = "0123456789-:/ Tt.Z\x80\xb0";
    uint64_t wrong = 0, sound = 0;

    for (uint64_t turn = 0; turn < 200000; turn++) {
        const char *form = forms[turn % SLC_COUNT(forms)];
        const size_t length = strlen(form);
        const uint64_t random = slc_mix64(turn);
        char text[2][48];
        struct slc_time fast = {0, 0}, slow = {0, 0};
        bool there[2];

        memcpy(text[0], form, length + 1);
        for (unsigned k = 0; k <= (random & 3); k++) {
            text[0][slc_mix64(random + k) % length] =
                bytes[slc_mix64(random - k - 1) % (sizeof bytes - 1)];
        }
        /* With a zone, or seconds of the day, which are parsed byte by byte. */
        memcpy(text[1], text[0], length);
        memcpy(text[1] + length, length == 10 ? " 00:00" : "Z", length == 10 ? 7 : 2);
        there[0] = slc_time_parse(text[0], length, &fast);
        there[1] = slc_time_parse(text[1], strlen(text[1]), &slow);
        /* After a number, or another zone, there is neither. */
        if ((text[0][4] == '-' || text[0][4] == '/') && (length == 10 || text[0][16] != '-')) {
            wrong += there[0] != there[1] ||
                     (there[0] && (fast.days != slow.days || fast.second != slow.second));
            sound += there[0];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(sound > 10000);
}

static void test_time_bins(void)
{
    check_bin(SLC_TIME_WEEKDAY, 0, "Thursday");
    check_bin(SLC_TIME_WEEKDAY, -86401, "Tuesday");
    check_bin(SLC_TIME_HOUR, -1, "23");
    check_bin(SLC_TIME_MINUTE, -1, "59");
    check_bin(SLC_TIME_DAY, -1, "31");
    check_bin(SLC_TIME_MONTH, -1, "December");
    check_bin(SLC_TIME_YEAR, -1, "1969");
    check_bin(SLC_TIME_YEARMONTH, -1, "1969-12");
    check_bin(SLC_TIME_DATE, INT64_C(951825600), "2000-02-29");
    check_bin(SLC_TIME_DATE, INT64_C(951868800), "2000-03-01");
    check_bin(SLC_TIME_DATEHOUR, -3601, "1969-12-31 22:00");
    check_bin(SLC_TIME_DATEMINUTE, 119, "1970-01-01 00:01");
    CU_ASSERT_EQUAL(slc_time_cycle(SLC_TIME_WEEKDAY), 7);
    CU_ASSERT_EQUAL(slc_time_cycle(SLC_TIME_DATE), 0);
    /* Each day follows the previous one, across two leap year rules. */
    for (int64_t day = -30000; day < 60000; day++) {
        const struct slc_time times[2] = {time_of(day * 86400), time_of((day + 1) * 86400)};
        const int64_t first = slc_time_bin(SLC_TIME_DAY, &times[0]);
        const int64_t next = slc_time_bin(SLC_TIME_DAY, &times[1]);

        if (next != first + 1 && (next != 0 || first < 27)) {
            CU_FAIL("a day is missing");
        }
    }
}

static void test_specs(void)
{
    static const char *const wrong[] = {"",
                                        ",a",
                                        "a,",
                                        "bin(a)",
                                        "bin(a,0)",
                                        "log(a,1)",
                                        "hour(a",
                                        "hour(a,1)",
                                        "int()",
                                        "\"a",
                                        "bin(a,-1)",
                                        "bin(a,1,2,3)",
                                        "bin(a,nan)",
                                        "hour(a)b",
                                        "bin(a,1e23,1)",
                                        "bin(a,1,1e38)",
                                        "bin(a,1e-2000)",
                                        "bin(a,1,1e-2000)",
                                        "log(a,1.0000001)",
                                        "log(a,1e7)"};
    static const char *const nearest[][2] = {{"hr(when)", "hour"},
                                             {"HOURS(x)", "hour"},
                                             {"weekdays(x", "weekday"},
                                             {"logs(a)", "log"},
                                             {"hr (when)", "none"},
                                             {"hr", "none"},
                                             {"(x)", "none"},
                                             {"f(x)", "none"},
                                             {"zzz(x)", "none"},
                                             {"price (u)", "none"},
                                             {"quiteotherwords_(x)", "none"}};
    struct slc_csv_spec spec = {.order = 0};
    struct slc_csv_spec other;
    unsigned letters;
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_EQUAL(
        slc_csv_spec_parse("hour(when), \"a,\"\"b\" ,price (usd),bin( x ,2.5,-1),log(y,2),int(id)",
                           &spec, &err),
        SLC_OK);
    CU_ASSERT_EQUAL_FATAL(spec.order, 6);
    CU_ASSERT_EQUAL(spec.items[0].rule, SLC_CSV_TIME);
    CU_ASSERT_EQUAL(spec.items[0].unit, SLC_TIME_HOUR);
    CU_ASSERT_STRING_EQUAL(spec.items[0].title, "hour(when)");
    CU_ASSERT_STRING_EQUAL(spec.items[1].column, "a,\"b");
    CU_ASSERT_STRING_EQUAL(spec.items[2].column, "price (usd)");
    CU_ASSERT_STRING_EQUAL(spec.items[3].column, "x");
    CU_ASSERT(spec.items[3].width == 25 && spec.items[3].origin == -10);
    CU_ASSERT_EQUAL(spec.items[3].power, -1);
    CU_ASSERT_EQUAL(spec.items[4].base, 2);
    CU_ASSERT_EQUAL(spec.items[5].rule, SLC_CSV_INTEGER);
    other = spec;
    CU_ASSERT_EQUAL(slc_csv_spec_hash(&other), slc_csv_spec_hash(&spec));
    other.missing = SLC_CSV_MISSING_SKIP;
    CU_ASSERT_NOT_EQUAL(slc_csv_spec_hash(&other), slc_csv_spec_hash(&spec));
    for (size_t i = 0; i < SLC_COUNT(wrong); i++) {
        slc_error_clear(&err);
        CU_ASSERT_EQUAL(slc_csv_spec_parse(wrong[i], &spec, &err), SLC_ERR_USAGE);
    }
    for (size_t i = 0; i < SLC_COUNT(nearest); i++) {
        const char *rule = slc_csv_nearest_rule(nearest[i][0], &letters);

        CU_ASSERT_STRING_EQUAL(rule != NULL ? rule : "none", nearest[i][1]);
        CU_ASSERT(rule == NULL || nearest[i][0][letters] == '(');
    }
    CU_ASSERT_EQUAL(slc_csv_distance("origin", "orgin"), 1);
    CU_ASSERT_EQUAL(slc_csv_distance("", "abc"), 3);
    CU_ASSERT_EQUAL(slc_csv_distance("kitten", "sitting"), 3);
}

/* The columns stored in a store are read back; anything else there is rejected or read. */
static void test_remembered(void)
{
    const int64_t lowest[4] = {INT64_MIN, -7, 0, INT64_MAX};
    static char text[SLC_TABLE_BYTES], forged[SLC_TABLE_BYTES];
    static struct slc_csv_spec spec, again;
    int64_t found[SLC_MAX_ORDER];
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t sound = 0;
    size_t bytes;

    SLC_ASSERT_OK(slc_csv_spec_set(&spec, "hour(when),\"a, \"\"b\"\"\",bin(x,2.5),int(n)",
                                   "how \"many\"", "tab", true, SLC_CSV_MISSING_SKIP,
                                   "NULL,\\N,not known", &err),
                  &err);
    slc_csv_remember(&spec, lowest, text);
    bytes = strlen(text);
    CU_ASSERT_TRUE_FATAL(bytes > 0);
    SLC_ASSERT_OK(slc_csv_recall(text, &again, found, &err), &err);
    CU_ASSERT_EQUAL(slc_csv_spec_hash(&again), slc_csv_spec_hash(&spec));
    CU_ASSERT(memcmp(found, lowest, sizeof lowest) == 0 && again.order == 4 && again.no_header);
    CU_ASSERT_STRING_EQUAL(again.value, "how \"many\"");
    CU_ASSERT_STRING_EQUAL(again.items[1].column, "a, \"b\"");
    for (size_t cut = 0; cut < bytes; cut++) {
        memcpy(forged, text, cut);
        forged[cut] = '\0';
        /* When truncated, the last item may be the name of a column. */
        if (cut + strlen("int(n)") <= bytes || cut + 3 > bytes) {
            SLC_ASSERT_FAILS(slc_csv_recall(forged, &again, found, &err), SLC_ERR_FORMAT, &err,
                             "invalid");
            slc_error_clear(&err);
        }
    }
    for (size_t at = 0; at < bytes; at++) {
        for (unsigned byte = 1; byte < 256; byte++) {
            enum slc_status status;

            memcpy(forged, text, bytes + 1);
            forged[at] = (char)(unsigned char)byte;
            status = slc_csv_recall(forged, &again, found, NULL);
            CU_ASSERT_FATAL(status == SLC_ERR_FORMAT || (status == SLC_OK && again.order <= 5));
            sound += status == SLC_OK;
        }
    }
    CU_ASSERT(sound > bytes && sound < 128 * bytes);
    /* If the columns are too long, nothing is stored. */
    memset(spec.value, '"', sizeof spec.value - 1);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        spec.items[m] = spec.items[1];
        memset(spec.items[m].title, 'x', sizeof spec.items[m].title - 1);
        memset(spec.items[m].column, 'x', sizeof spec.items[m].column - 1);
    }
    spec.order = SLC_MAX_ORDER;
    memset(found, 0, sizeof found);
    slc_csv_remember(&spec, found, text);
    if (text[0] != '\0') {
        SLC_ASSERT_OK(slc_csv_recall(text, &again, found, &err), &err);
        CU_ASSERT_EQUAL(again.order, SLC_MAX_ORDER);
    }
    spec.items[3].title[9] = '(';
    slc_csv_remember(&spec, found, text);
    CU_ASSERT_STRING_EQUAL(text, "");
}

static int sign_of(int number)
{
    return (number > 0) - (number < 0);
}

/* All pairs of strings that are listed in their order, and prefixes that agree with it. */
static void test_order(void)
{
    static const char *const listed[] = {
        "-1e300", "-3",      "-0",      "0",       "00",     "0.0",     "2.5",       "007",
        "7",      "10",      "1e2",     "1e300",   "",       " ",       "#",         "1e999",
        "2023-1", "2023-9",  "2023-10", "A",       "a",      "a!",      "a0",        "a00",
        "a9",     "a10",     "a10b",    "a10b2",   "a10b10", "a:",      "abcdefgh1", "abcdefgh9",
        "week",   "week 09", "week 9",  "week 10", "z",      "\xc3\xa4"};

    for (size_t i = 0; i < SLC_COUNT(listed); i++) {
        for (size_t k = 0; k < SLC_COUNT(listed); k++) {
            const char *a = listed[i], *b = listed[k];
            const uint64_t prefix_a = slc_csv_order_prefix(a, strlen(a));
            const uint64_t prefix_b = slc_csv_order_prefix(b, strlen(b));

            CU_ASSERT_EQUAL_FATAL(sign_of(slc_csv_order(a, strlen(a), b, strlen(b))),
                                  (i > k) - (i < k));
            CU_ASSERT_FATAL(i >= k || prefix_a <= prefix_b);
        }
    }
}

/* Returns the bin of a number's text; INT64_MIN if it has none. */
static int64_t bin_of(const struct slc_csv_item *item, const char *number)
{
    char text[512] = ""; /* the reader needs eight readable bytes after a field */
    int64_t bin;

    (void)snprintf(text, sizeof text, "%s", number);
    return slc_csv_bin(item, text, strlen(text), &bin) ? bin : INT64_MIN;
}

static void test_bins(void)
{
    static const struct {
        const char *item, *number;
        int64_t bin;
        const char *name;
    } cases[] = {
        {"bin(x,5,1)", "0.999", -1, "[-4, 1)"},
        {"bin(x,5,1)", "6", 1, "[6, 11)"},
        {"bin(x,5,1)", "1e300", INT64_MIN, NULL},
        {"bin(x,5,1)", "", INT64_MIN, NULL},
        {"bin(x,5,1)", "1e", INT64_MIN, NULL},
        {"bin(x,5,1)", "0x10", INT64_MIN, NULL},
        {"bin(x,0.1)", "0.3", 3, "[0.3, 0.4)"},
        {"bin(x,0.1)", "+0.30000000000000000000000000000000000000000000000000000000", 3, NULL},
        {"bin(x,0.1)", "0.2999999999999999999999999999999999999999999999999999999", 2, NULL},
        {"bin(x,0.1)", "-0.00000000000000000000000000000000000000000000000000001", -1, "[-0.1, 0)"},
        {"bin(x,0.1)", "-0", 0, NULL},
        {"bin(x,0.1)",
         "  0.3000000000000000000000000000000000000000000000000000000000000000000000001 ", 3, NULL},
        {"bin(x,0.1)", "3e-1", 3, NULL},
        {"bin(x,0.1)", " .3 ", 3, NULL},
        {"bin(x,0.1)", "450359962737049.5", 4503599627370495, NULL},
        {"bin(x,0.1)", "450359962737049.6", INT64_MIN, NULL},
        {"bin(x,0.1)", "-450359962737049.5", -4503599627370495, NULL},
        {"bin(x,1e-7,100000)", "100000", 0, "[100000, 100000.0000001)"},
        {"bin(x,12.50,-1e3)", "0", 80, "[0, 12.5)"},
        {"bin(x,1e21)", "2.5e21", 2, "[2e+21, 3e+21)"},
        {"bin(x,1e20)", "2.5e20", 2, "[200000000000000000000, 300000000000000000000)"},
        {"bin(x,1e-9)", "-0.0000000005", -1, "[-1e-09, 0)"},
        {"bin(x,1e-6)", "0.0000035", 3, "[0.000003, 0.000004)"},
        {"log(x)", "0", INT64_MIN, NULL},
        {"log(x)", "-1", INT64_MIN, NULL},
        {"log(x)", "1000", 3, "[1000, 10000)"},
        {"log(x)", "999.9999999999999", 2, "[100, 1000)"},
        {"log(x)", "1e-5", -5, "[1e-05, 0.0001)"},
        {"log(x,1.1)", "1.21", 2, "[1.21, 1.331)"},
        {"log(x,1.1)", "1.20999", 1, "[1.1, 1.21)"},
        {"log(x,2)", "1099511627776", 40, "[1099511627776, 2199023255552)"},
        {"log(x,2)", "1099511627775.9999", 39, NULL},
        {"log(x,2)", "1152921504606846976", 60, NULL},
        {"log(x,2)", "9.094947017729282379150390625e-13", -40, NULL},
        {"log(x,3)", "12157665459056928801", 40, NULL},
        {"log(x,7)", "16807", 5, "[16807, 117649)"},
        {"log(x,2.71828182845904523536028747135266249775)", "1", 0, NULL},
        {"log(x)", "1e308", 308, "[1e+308, inf)"},
        {"log(x)", "5e-324", INT64_MIN, NULL},
    };
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_csv_spec spec;
    char name[SLC_CSV_BIN_BYTES];

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        SLC_ASSERT_OK(slc_csv_spec_parse(cases[i].item, &spec, &err), &err);
        const int64_t bin = bin_of(&spec.items[0], cases[i].number);
        if (bin != cases[i].bin) {
            printf("# %s of %s is %" PRId64 "\n", cases[i].item, cases[i].number, bin);
            CU_FAIL("another bin");
        }
        if (cases[i].name != NULL) {
            CU_ASSERT_EQUAL(slc_csv_bin_name(&spec.items[0], bin, name), strlen(cases[i].name));
            CU_ASSERT_STRING_EQUAL(name, cases[i].name);
        }
    }
}

/* Scans `text`, with the later bytes held back and with all of them: a record or nothing. */
static void test_records(void)
{
    static const char text[] = "a,\"b\r\n\"\"c\"\"\",\r\n\"\"\n,5\" x\rz,\"d\"";
    struct slc_csv_field fields[SLC_CSV_COLUMNS_MAX];
    const size_t bytes = sizeof text - 1;
    size_t at = 0, before;
    unsigned count;
    uint32_t lines;
    char plain[16];

    CU_ASSERT_EQUAL(slc_csv_scan(text, bytes, true, ',', &at, fields, &count, &lines),
                    SLC_CSV_RECORD);
    CU_ASSERT_EQUAL_FATAL(count, 3);
    CU_ASSERT_EQUAL(lines, 2);
    CU_ASSERT_EQUAL(slc_csv_unquote(&fields[1], plain, sizeof plain), 6);
    CU_ASSERT_EQUAL(memcmp(plain, "b\r\n\"c\"", 6), 0);
    CU_ASSERT_EQUAL(slc_csv_unquote(&fields[1], plain, 4), 4);
    CU_ASSERT_EQUAL(fields[2].bytes, 0);
    CU_ASSERT_EQUAL(fields[2].line, 1);
    before = at;
    for (size_t end = 0; end < before; end++) {
        at = 0;
        CU_ASSERT_EQUAL(slc_csv_scan(text, end, false, ',', &at, fields, &count, &lines),
                        SLC_CSV_PARTIAL);
        CU_ASSERT_EQUAL(at, 0);
    }
    at = before;
    CU_ASSERT_EQUAL(slc_csv_scan(text, bytes, true, ',', &at, fields, &count, &lines),
                    SLC_CSV_RECORD);
    CU_ASSERT_TRUE(count == 1 && fields[0].bytes == 0);
    CU_ASSERT_EQUAL(slc_csv_scan(text, bytes, true, ',', &at, fields, &count, &lines),
                    SLC_CSV_RECORD);
    CU_ASSERT_TRUE(count == 3 && fields[1].bytes == 6 && fields[2].bytes == 1 && lines == 0);
    CU_ASSERT_EQUAL(at, bytes);
    at = 0;
    CU_ASSERT_EQUAL(slc_csv_scan("\"a\"b,", 5, true, ',', &at, fields, &count, &lines),
                    SLC_CSV_AFTER_QUOTE);
    CU_ASSERT_EQUAL(slc_csv_scan("\"a\n", 3, true, ',', &at, fields, &count, &lines),
                    SLC_CSV_UNCLOSED);
}

/* Any text is split after the last record that can be read from its beginning. */
static void test_cuts(void)
{
    static const char letters[] = "a,\"\"\n\n\r;";
    static struct slc_csv_field fields[SLC_CSV_COLUMNS_MAX];
    uint64_t state = 3, wrong = 0, cut_within = 0;

    for (unsigned turn = 0; turn < 20000; turn++) {
        char text[200 + SLC_CSV_SLACK];
        size_t bytes, at = 0, whole = 0;
        enum slc_csv_scan scan = SLC_CSV_RECORD;
        unsigned count;
        uint32_t lines;

        state = slc_mix64(state + turn);
        bytes = state % (turn % 4 == 0 ? 200 : 24);
        memset(text + bytes, '"', SLC_CSV_SLACK);
        for (size_t i = 0; i < bytes; i++) {
            text[i] = letters[slc_mix64(state + i) % (sizeof letters - 1)];
        }
        while (scan == SLC_CSV_RECORD) {
            whole = at;
            scan = slc_csv_scan(text, bytes, false, ',', &at, fields, &count, &lines);
        }
        cut_within += whole > 0 && whole < bytes;
        if (scan == SLC_CSV_PARTIAL ? slc_csv_cut(text, bytes, ',') != whole
                                    : slc_csv_cut(text, bytes, ',') < whole) {
            wrong++;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(cut_within > 1000);
}

/* One worker adds strings, alternating with lookups of all of them by the others. */
struct sharing {
    struct slc_dictionary *dictionary;
    uint64_t wrong[4], found[4];
};

enum { SHARED = 20000, AT_ONCE = 64 };

static void share(void *context, unsigned worker, unsigned workers)
{
    struct sharing *sharing = context;
    /* A string needs SLC_DICTIONARY_SLACK readable bytes after its end for a lookup. */
    char names[AT_ONCE][16 + SLC_DICTIONARY_SLACK];

    (void)workers;
    for (uint64_t i = 0; i < SHARED; i += AT_ONCE) {
        struct slc_dictionary_key keys[AT_ONCE];
        uint64_t numbers[AT_ONCE];

        for (unsigned k = 0; k < AT_ONCE; k++) {
            const int bytes = snprintf(names[k], 16, "%s%" PRIu64, i % 128 ? "name " : "", i + k);

            numbers[k] = UINT64_MAX;
            keys[k] =
                (struct slc_dictionary_key){.at = (uint32_t)(names[k] - names[0]),
                                            .bytes = (uint32_t)bytes,
                                            .hash = slc_dictionary_hash(names[k], (size_t)bytes)};
            if (worker == 0) {
                sharing->wrong[0] += slc_dictionary_add(sharing->dictionary, names[0], &keys[k],
                                                        &numbers[k], NULL) != SLC_OK;
            }
        }
        if (worker > 0) {
            slc_dictionary_look_up(sharing->dictionary, names[0], keys, AT_ONCE, numbers);
        }
        for (unsigned k = 0; k < AT_ONCE; k++) {
            sharing->found[worker] += numbers[k] != UINT64_MAX;
            sharing->wrong[worker] += numbers[k] != UINT64_MAX && numbers[k] != i + k;
        }
    }
}

/* Lookups during additions find the number of a string or nothing, also outside memory. */
static void test_shared_dictionary(void)
{
    uint64_t room = 4 << 20;
    const struct slc_dictionary_options options = {.text_bytes = 64 << 10, .left_bytes = &room};
    struct sharing sharing = {.dictionary = NULL};
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_EQUAL_FATAL(slc_dictionary_create(&options, &sharing.dictionary, &err), SLC_OK);
    for (unsigned turn = 0; turn < 2; turn++) {
        CU_ASSERT_EQUAL(slc_team_run(3, share, &sharing, &err), SLC_OK);
    }
    CU_ASSERT_EQUAL(sharing.wrong[0] + sharing.wrong[1] + sharing.wrong[2], 0);
    CU_ASSERT_EQUAL(slc_dictionary_count(sharing.dictionary), SHARED / AT_ONCE * AT_ONCE + AT_ONCE);
    /* In the second round, lookups find all strings that are already written. */
    CU_ASSERT_TRUE(sharing.found[1] > SHARED / 2 && sharing.found[2] > SHARED / 2);
    slc_dictionary_destroy(sharing.dictionary);
}

struct walk {
    uint64_t next;
    bool wrong;
};

static enum slc_status
check_name(void *context, const char *text, size_t bytes, struct slc_error *err)
{
    struct walk *walk = context;
    char want[512];

    (void)err;
    (void)snprintf(want, sizeof want, "%0300llu", (unsigned long long)walk->next++);
    walk->wrong = walk->wrong || bytes != 300 || memcmp(text, want, 300) != 0;
    return SLC_OK;
}

/* The dictionary receives 12 MB of strings, but has memory for only 8 KiB of them. */
static void test_dictionary(void)
{
    enum { NAMES = 40000 };
    uint64_t room = 4 << 20, wrong = 0, number;
    const struct slc_dictionary_options options = {.text_bytes = 8 << 10, .left_bytes = &room};
    struct slc_dictionary *dictionary;
    struct slc_error err = SLC_ERROR_INIT;
    struct walk walk = {0, false};
    char name[512];

    CU_ASSERT_EQUAL_FATAL(slc_dictionary_create(&options, &dictionary, &err), SLC_OK);
    for (uint64_t i = 0; i < 2 * NAMES; i++) {
        const uint64_t which = i < NAMES ? i : (i * 7919) % NAMES;

        (void)snprintf(name, sizeof name, "%0300llu", (unsigned long long)which);
        if (slc_dictionary_find(dictionary, name, 300, &number, &err) != SLC_OK ||
            number != which) {
            wrong++;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(slc_dictionary_count(dictionary), NAMES);
    CU_ASSERT_EQUAL(slc_dictionary_find(dictionary, "a\0b", 3, &number, &err), SLC_ERR_INPUT);
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(slc_dictionary_finish(dictionary, &err), SLC_OK);
    CU_ASSERT_EQUAL(room, 4 << 20);
    CU_ASSERT_EQUAL(slc_dictionary_walk(dictionary, check_name, &walk, &err), SLC_OK);
    CU_ASSERT_TRUE(walk.next == NAMES && !walk.wrong);
    slc_dictionary_destroy(dictionary);

    room = 256 << 10;
    CU_ASSERT_EQUAL_FATAL(slc_dictionary_create(&options, &dictionary, &err), SLC_OK);
    for (uint64_t i = 0; err.status == SLC_OK && i < NAMES; i++) {
        (void)snprintf(name, sizeof name, "%llu", (unsigned long long)i);
        if (slc_dictionary_find(dictionary, name, strlen(name), &number, &err) != SLC_OK) {
            CU_ASSERT_EQUAL(err.status, SLC_ERR_BUDGET);
        }
    }
    CU_ASSERT_EQUAL(err.status, SLC_ERR_BUDGET);
    slc_dictionary_destroy(dictionary);
}

static const struct slc_test tests[] = {
    {"points in time", test_times},
    {"forms of times", test_time_forms},
    {"parts of times and their names", test_time_bins},
    {"items of --columns", test_specs},
    {"columns stored in a store", test_remembered},
    {"bins of numbers", test_bins},
    {"order of strings", test_order},
    {"records", test_records},
    {"a dictionary larger than its memory", test_dictionary},
    {"cuts", test_cuts},
    {"a dictionary that several look into", test_shared_dictionary},
};

SLC_SUITE(csv)
{
    return slc_test_main("csv", tests, SLC_COUNT(tests), argc, argv);
}
