/* Rows of text: values, positions of faults, and independence of the splits of the text. */
#include "base/memory/bytes.h"
#include "base/random.h"
#include "convert/ingest/text/text.h"
#include "slc_test.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 4096 };

static uint64_t coords[SLC_MAX_ORDER][CAPACITY];
static double values[CAPACITY];

static struct slc_text_rows make_rows(uint32_t capacity)
{
    struct slc_text_rows rows = {.capacity = capacity, .values = values};

    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        rows.coords[m] = coords[m];
    }
    slc_text_rows_clear(&rows);
    return rows;
}

static struct slc_text_header make_header(unsigned order, bool has_values, const char *comment)
{
    struct slc_text_header header = {.order = order, .has_values = has_values};

    memcpy(header.comment, comment, strlen(comment) + 1);
    return header;
}

/* Parses a copy of the exact size, so that a sanitizer detects a read beyond it. */
static enum slc_status parse(const struct slc_text_header *header,
                             const char *text,
                             size_t bytes,
                             size_t *position,
                             struct slc_text_rows *rows,
                             struct slc_error *err)
{
    char *copy = malloc(bytes + (bytes == 0));
    enum slc_status status;

    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    memcpy(copy, text, bytes);
    status = slc_text_parse_rows(header, copy, bytes, position, rows, err);
    free(copy);
    return status;
}

static void good_rows(void)
{
    static const char text[] = "# comment\n"
                               "1 2 3 4\n"
                               "\t 10  20\t30 \t -4.5e-3  \r\n"
                               "\n"
                               "   \t\r\n"
                               "// another\n"
                               "007 0 00000000000000000000000000000000000001 .5\n"
                               "4611686018427387904 1 1 1.\n"
                               "1 1 1 +1e-5000\n"
                               "12345678 123456789 1234567890123 5e-324";
    static const uint64_t want[][3] = {{1, 2, 3}, {10, 20, 30},
                                       {7, 0, 1}, {UINT64_C(4611686018427387904), 1, 1},
                                       {1, 1, 1}, {12345678, 123456789, UINT64_C(1234567890123)}};
    static const double want_values[] = {4, -4.5e-3, .5, 1, 0, 5e-324};
    struct slc_text_header header = make_header(3, true, "#/");
    struct slc_text_rows rows = make_rows(CAPACITY);
    struct slc_error err = SLC_ERROR_INIT;
    size_t position = 0;

    SLC_ASSERT_OK(parse(&header, text, sizeof text - 1, &position, &rows, &err), &err);
    CU_ASSERT_EQUAL(position, sizeof text - 1);
    CU_ASSERT_EQUAL_FATAL(rows.count, SLC_COUNT(want));
    CU_ASSERT_EQUAL(rows.lines, 10);
    for (uint32_t i = 0; i < rows.count; i++) {
        for (unsigned m = 0; m < 3; m++) {
            CU_ASSERT_EQUAL(coords[m][i], want[i][m]);
        }
        CU_ASSERT_EQUAL(slc_bits_f64(values[i]), slc_bits_f64(want_values[i]));
    }
    CU_ASSERT_EQUAL(rows.smallest[0], 1);
    CU_ASSERT_EQUAL(rows.smallest[1], 0);
    CU_ASSERT_EQUAL(rows.largest[0], UINT64_C(4611686018427387904));
    CU_ASSERT_EQUAL(rows.largest[2], UINT64_C(1234567890123));
}

static void patterns(void)
{
    static const char text[] = "% c\n1 2\n3 4 \r\n  5\t6";
    struct slc_text_header header = make_header(2, false, "%");
    struct slc_text_rows rows = make_rows(CAPACITY);
    struct slc_error err = SLC_ERROR_INIT;
    size_t position = 0;

    SLC_ASSERT_OK(parse(&header, text, sizeof text - 1, &position, &rows, &err), &err);
    CU_ASSERT_EQUAL(rows.count, 3);
    CU_ASSERT_EQUAL(values[2], 1.0);
    CU_ASSERT_EQUAL(coords[1][2], 6);
}

static const struct {
    const char *row;
    uint64_t column;
    const char *part;
} bad[] = {
    {"1 2 3", 6, "found 3 fields, expected 4 (3 indices and a value)"},
    {"1 2", 4, "found 2 fields"},
    {"1", 2, "found 1 field, expected 4"},
    {"1 2 3 4.0 5", 11, "found 5 fields"},
    {"1 2 3 4.0 5 6 7", 11, "found 7 fields"},
    {"1 2 3 4.0 # note", 11, "found 6 fields"},
    {"a b c d", 1, "expected an index of mode 1, found 'a'"},
    {"1 x 3 4.0", 3, "expected an index of mode 2, found 'x'"},
    {"1 2x 3 4.0", 3, "found '2x'"},
    {"1 2 3 y", 7, "expected a number as value, found 'y'"},
    {"1 2 3 4.0y", 7, "found '4.0y'"},
    {"1 2 3 4,0", 7, "found '4,0'"},
    {"1,2,3,4", 1, "found '1,2,3,4'"},
    {"1 -2 3 4.0", 3, "negative index '-2' of mode 2"},
    {"-1 2 3 4.0", 1, "negative index '-1' of mode 1"},
    {"1 +2 3 4.0", 3, "found '+2'"},
    {"1 2.0 3 4.0", 3, "expected a whole number as index of mode 2, found '2.0'"},
    {"1 1e3 3 4.0", 3, "whole number"},
    {"1 2 4611686018427387905 4", 5, "too large"},
    {"1 2 99999999999999999999999 4", 5, "too large"},
    {"1 2 3 1e309", 7, "value '1e309' is too large"},
    {"1 2 3 -2e400", 7, "too large"},
    {"1 2 3 nan", 7, "not finite"},
    {"1 2 3 -NaN", 7, "not finite"},
    {"1 2 3 inf", 7, "not finite"},
    {"1 2 3 +Infinity", 7, "not finite"},
    {"1 2 3 0x1p3", 7, "hexadecimal"},
    {"1 2 3 1e", 7, "found '1e'"},
    {"1 2 3 .", 7, "found '.'"},
    {"1 2 3 1.5\r 7", 7, "found '1.5\\x0d'"},
    {"/ 1 2 3 4", 1, "found '/'"},
    {"% 1 2 3 4", 1, "found '%'"},
    {"\xff\xfe 1 2 3", 1, "found '\\xff\\xfe'"},
};

static void check_bad(const char *row, size_t row_bytes, uint64_t column, const char *part)
{
    static const char *const endings[] = {"\n", "\r\n", "", "\n1 1 1 1\n"};
    struct slc_text_header header = make_header(3, true, "#/");

    for (size_t e = 0; e < SLC_COUNT(endings); e++) {
        char text[256];
        struct slc_text_rows rows = make_rows(CAPACITY);
        struct slc_error err = SLC_ERROR_INIT;
        size_t length = (size_t)snprintf(text, sizeof text, "1 1 1 1.0\n# comment\n\n");
        size_t position = 0;

        memcpy(text + length, row, row_bytes);
        length += row_bytes;
        memcpy(text + length, endings[e], strlen(endings[e]));
        length += strlen(endings[e]);
        SLC_ASSERT_FAILS(parse(&header, text, length, &position, &rows, &err), SLC_ERR_INPUT, &err,
                         part);
        CU_ASSERT_EQUAL(err.line, 4);
        if (err.column != column) {
            printf("# '%s': column %" PRIu64 "\n", row, err.column);
            CU_FAIL("column of a fault");
        }
        CU_ASSERT_EQUAL(rows.count, 1);
        CU_ASSERT_EQUAL(rows.lines, 3);
        CU_ASSERT_EQUAL(position, 21);
    }
}

static void bad_rows(void)
{
    for (size_t i = 0; i < SLC_COUNT(bad); i++) {
        check_bad(bad[i].row, strlen(bad[i].row), bad[i].column, bad[i].part);
    }
    check_bad("1 2 \0003 4", 9, 5, "zero byte");
    check_bad("\0", 1, 1, "zero byte");
    check_bad("1 2 3 4\0", 8, 8, "zero byte");
}

static void long_lines(void)
{
    size_t length = (size_t)SLC_LINE_BYTES_MAX + 100;
    char *text = malloc(length);
    struct slc_text_header header = make_header(1, true, "#/");
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_text_rows rows = make_rows(CAPACITY);
    size_t position = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    /* Lines of the maximum length: a comment, a row with blanks, a number with zeros. */
    memset(text, ' ', length);
    text[0] = '#';
    text[SLC_LINE_BYTES_MAX - 1] = '\n';
    SLC_ASSERT_OK(parse(&header, text, SLC_LINE_BYTES_MAX, &position, &rows, &err), &err);
    text[0] = '1';
    text[SLC_LINE_BYTES_MAX - 2] = '2';
    position = 0;
    SLC_ASSERT_OK(parse(&header, text, SLC_LINE_BYTES_MAX, &position, &rows, &err), &err);
    CU_ASSERT_EQUAL(rows.count, 1);
    CU_ASSERT_EQUAL(values[0], 2.0);
    memset(text, '0', SLC_LINE_BYTES_MAX - 3);
    memcpy(text + SLC_LINE_BYTES_MAX - 4, "7 2\n", 4);
    position = 0;
    SLC_ASSERT_OK(parse(&header, text, SLC_LINE_BYTES_MAX, &position, &rows, &err), &err);
    CU_ASSERT_EQUAL(coords[0][1], 7);
    /* Lines that are one byte longer. */
    for (int comment = 0; comment < 2; comment++) {
        memset(text, comment ? '#' : '0', length);
        memcpy(text + SLC_LINE_BYTES_MAX - 3, "7 2\n", 4);
        position = 0;
        rows.lines = 0;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(
            parse(&header, text, (size_t)SLC_LINE_BYTES_MAX + 1, &position, &rows, &err),
            SLC_ERR_INPUT, &err, "line of more than 1048576 bytes");
        CU_ASSERT_EQUAL(err.line, 1);
        CU_ASSERT_EQUAL(err.column, (uint64_t)SLC_LINE_BYTES_MAX + 1);
    }
    free(text);
}

/* Random rows of every order, parsed with every small capacity: the same rows, lines and ranges. */
static void random_rows(void)
{
    uint64_t seed = slc_test_seed();

    for (unsigned order = 1; order <= SLC_MAX_ORDER; order++) {
        static char text[CAPACITY * 32];
        static uint64_t want[SLC_MAX_ORDER][64];
        static double want_values[64];
        struct slc_text_header header = make_header(order, true, "#/");
        size_t length = 0;

        for (uint32_t i = 0; i < 64; i++) {
            uint64_t draw = slc_random_u64(seed, order, i);

            for (unsigned m = 0; m < order; m++) {
                uint64_t bits = slc_random_u64(seed, 100 + order, i * 16 + m);

                want[m][i] = (bits >> 2) >> (bits & 63);
                length += (size_t)sprintf(text + length, "%s%" PRIu64 "%s", bits & 64 ? " " : "",
                                          want[m][i], bits & 128 ? "\t" : "  ");
            }
            want_values[i] = (double)(int64_t)draw * 0x1p-40;
            length += (size_t)sprintf(text + length, "%.17g%s", want_values[i],
                                      draw & 1 ? "\n" : " \r\n");
            if (draw & 2) {
                length += (size_t)sprintf(text + length, draw & 4 ? "\n" : " # 1 2 3\n");
            }
        }
        for (uint32_t capacity = 1; capacity < 70; capacity = capacity * 3 / 2 + 1) {
            size_t position = 0;
            uint32_t seen = 0;
            struct slc_text_rows rows = make_rows(capacity);

            while (position < length) {
                struct slc_error err = SLC_ERROR_INIT;

                slc_text_rows_clear(&rows);
                SLC_ASSERT_OK(parse(&header, text, length, &position, &rows, &err), &err);
                CU_ASSERT_FATAL(err.status == SLC_OK);
                for (uint32_t i = 0; i < rows.count; i++, seen++) {
                    for (unsigned m = 0; m < order; m++) {
                        CU_ASSERT_EQUAL_FATAL(coords[m][i], want[m][seen]);
                        CU_ASSERT(rows.smallest[m] <= coords[m][i]);
                        CU_ASSERT(rows.largest[m] >= coords[m][i]);
                    }
                    CU_ASSERT_EQUAL(values[i], want_values[seen]);
                }
            }
            CU_ASSERT_EQUAL(seen, 64);
        }
    }
}

static void columns_of_fields(void)
{
    static const char text[] = "1 2 3\n  10\t20 30\r\n";

    CU_ASSERT_EQUAL(slc_text_field_column(text, sizeof text - 1, 0, 0), 1);
    CU_ASSERT_EQUAL(slc_text_field_column(text, sizeof text - 1, 0, 2), 5);
    CU_ASSERT_EQUAL(slc_text_field_column(text, sizeof text - 1, 6, 0), 3);
    CU_ASSERT_EQUAL(slc_text_field_column(text, sizeof text - 1, 6, 2), 9);
}

static const struct slc_test tests[] = {
    {"good rows in all their forms", good_rows},
    {"rows without values", patterns},
    {"every kind of bad row, with its place", bad_rows},
    {"lines at and beyond the longest", long_lines},
    {"random rows of every order, any capacity", random_rows},
    {"columns of fields", columns_of_fields},
};

SLC_SUITE(rows)
{
    return slc_test_main("rows", tests, SLC_COUNT(tests), argc, argv);
}
