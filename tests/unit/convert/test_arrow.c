/* Arrow streams: the fields of every type, and malformed streams. Buffers have exactly
 * the bytes that a type needs, so that a sanitizer finds reads beyond them. */
#include "arrow_producer.h"
#include "base/memory/memory.h"
#include "convert/ingest/arrow/arrow.h"
#include "convert/ingest/csv/csv_internal.h"
#include "slc_test.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1 << 16, ROWS_MAX = 8, FIELD_BYTES = 128 };

/* The fields of column c. */
struct fields {
    unsigned count;
    size_t bytes[ROWS_MAX];
    char text[ROWS_MAX][FIELD_BYTES];
};

/* Adds a dictionary, of which the column has the indices. */
static void
add_strings(struct slc_producer *p, const int32_t *offsets, size_t count, const char *bytes)
{
    p->values_schema = (struct ArrowSchema){.format = "u"};
    p->column_schema.dictionary = &p->values_schema;
    p->values_buffers[1] = slc_copy_buffer(p, offsets, (count + 1) * sizeof *offsets);
    p->values_buffers[2] = slc_copy_buffer(p, bytes, (size_t)offsets[count]);
    p->values =
        (struct ArrowArray){.length = (int64_t)count, .n_buffers = 3, .buffers = p->values_buffers};
    p->column.dictionary = &p->values;
}

/* Makes a column of strings. */
static void produce_strings(struct slc_producer *p,
                            const char *format,
                            const int32_t *offsets,
                            int64_t rows,
                            const char *bytes)
{
    slc_produce(p, format, rows);
    p->column.n_buffers = 3;
    p->column_buffers[1] = slc_copy_buffer(p, offsets, (size_t)(rows + 1) * sizeof *offsets);
    p->column_buffers[2] = slc_copy_buffer(p, bytes, strlen(bytes));
}

static enum slc_status read_part(const struct slc_csv_feed *feed,
                                 struct slc_csv_table *table,
                                 struct slc_csv_part *part,
                                 struct fields *fields,
                                 struct slc_error *err)
{
    unsigned rows = 0;

    part->spare_end = TEXT_BYTES - SLC_CSV_SLACK;
    SLC_TRY(feed->next(feed->context, part, err));
    while (part->position < part->bytes && part->fault.status == SLC_OK) {
        const unsigned field = table->at[table->spec->value[0] != '\0' ? table->spec->order : 0];

        rows = feed->render(feed->context, part, ROWS_MAX);
        for (unsigned r = 0; r < rows; r++) {
            const uint32_t *starts = part->starts + r * table->columns + field;
            const size_t bytes = starts[1] - 1 - starts[0];

            fields->bytes[fields->count] = bytes;
            memcpy(fields->text[fields->count], part->text + starts[0], bytes);
            fields->text[fields->count++][bytes] = '\0';
        }
        part->position += rows;
        part->lines += rows;
    }
    if (part->fault.status != SLC_OK) {
        *err = part->fault;
    }
    return err->status;
}

/* Reads the stream with the given columns, frees its buffers, and checks its releases. */
static enum slc_status read_stream(struct slc_producer *p,
                                   const char *columns,
                                   const char *value,
                                   struct fields *fields,
                                   struct slc_error *err)
{
    static struct slc_csv_spec spec;
    struct slc_csv_table table;
    struct slc_csv_part part = {.table = &table};
    struct slc_arrow *arrow = NULL;
    const bool sound = p->stream.release != NULL;

    *err = (struct slc_error)SLC_ERROR_INIT;
    fields->count = 0;
    CU_ASSERT_EQUAL(
        slc_csv_spec_set(&spec, columns, value, NULL, false, SLC_CSV_MISSING_NAME, NULL, err),
        SLC_OK);
    slc_csv_table_init(&table, &spec, "t");
    slc_csv_lay_out_rows(&table, 1 << 20);
    enum slc_status status = slc_arrow_open(&p->stream, "t", &arrow, err);
    SLC_THEN(status, slc_csv_part_create(&table, TEXT_BYTES, &part, err));
    if (status == SLC_OK) {
        const struct slc_csv_feed *feed = table.feed = slc_arrow_feed(arrow);

        status = feed->bind(feed->context, &table, err);
        SLC_THEN(status, read_part(feed, &table, &part, fields, err));
        feed->release(feed->context, &part);
    }
    slc_csv_part_destroy(&part);
    slc_arrow_close(arrow);
    CU_ASSERT_EQUAL(p->batches, p->sent > 0 && p->batch.release != NULL);
    CU_ASSERT_EQUAL(p->schemas, sound && p->schema.release != NULL);
    CU_ASSERT_EQUAL(p->streams, 0);
    slc_free_buffers(p);
    return status;
}

#define EXPECT(p, ...)                                                                             \
    expect(p, (const char *const[]){__VA_ARGS__},                                                  \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
static void expect(struct slc_producer *p, const char *const *texts, size_t count)
{
    struct fields fields;
    struct slc_error err;

    CU_ASSERT_EQUAL(read_stream(p, "c", NULL, &fields, &err), SLC_OK);
    CU_ASSERT_EQUAL(fields.count, count);
    for (unsigned i = 0; i < fields.count && i < count; i++) {
        CU_ASSERT_STRING_EQUAL(fields.text[i], texts[i]);
    }
}

static void test_numbers(void)
{
    struct slc_producer p;

    PRODUCE(&p, "c", (const int8_t[]){-128, 0, 127});
    EXPECT(&p, "-128", "0", "127");
    PRODUCE(&p, "C", (const uint8_t[]){255});
    EXPECT(&p, "255");
    PRODUCE(&p, "s", (const int16_t[]){-32768, 32767});
    EXPECT(&p, "-32768", "32767");
    PRODUCE(&p, "S", (const uint16_t[]){65535});
    EXPECT(&p, "65535");
    PRODUCE(&p, "i", (const int32_t[]){INT32_MIN, 7});
    EXPECT(&p, "-2147483648", "7");
    PRODUCE(&p, "I", (const uint32_t[]){UINT32_MAX});
    EXPECT(&p, "4294967295");
    PRODUCE(&p, "l", (const int64_t[]){INT64_MIN, INT64_MAX});
    EXPECT(&p, "-9223372036854775808", "9223372036854775807");
    PRODUCE(&p, "L", (const uint64_t[]){UINT64_MAX});
    EXPECT(&p, "18446744073709551615");
    PRODUCE(&p, "e", (const uint16_t[]){0x3c00, 0x2e66, 0x7bff, 0x0001, 0xfc00, 0x8000});
    EXPECT(&p, "1.0", "0.1", "65500.0", "6e-08", "-inf", "-0.0");
    PRODUCE(&p, "f", (const float[]){0.1F, 16777216, 1e-5F, -2.5F, 3.4028235e38F, NAN});
    EXPECT(&p, "0.1", "16777216.0", "1e-05", "-2.5", "3.4028235e+38", "nan");
    PRODUCE(&p, "g", (const double[]){0.1, 1e16, 9007199254740992, 5e-324, 0.0001, 1e15, 1.0 / 3});
    EXPECT(&p, "0.1", "1e+16", "9007199254740992.0", "5e-324", "0.0001", "1000000000000000.0",
           "0.3333333333333333");
    PRODUCE(&p, "b", (const uint8_t[]){0x05});
    p.column.length = p.batch.length = 3;
    EXPECT(&p, "true", "false", "true");
    slc_produce(&p, "n", 2);
    p.column.n_buffers = 0;
    EXPECT(&p, "", "");
}

static void test_decimals(void)
{
    struct slc_producer p;

    PRODUCE(&p, "d:9,2,32", (const int32_t[]){150, -5, 0});
    EXPECT(&p, "1.50", "-0.05", "0.00");
    PRODUCE(&p, "d:18,4,64", (const int64_t[]){INT64_C(-123456789)});
    EXPECT(&p, "-12345.6789");
    PRODUCE(&p, "d:38,0", (const uint64_t[]){0, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX, 42, 0});
    p.column.length = p.batch.length = 3;
    EXPECT(&p, "-170141183460469231731687303715884105728", "-1", "42");
    PRODUCE(&p, "d:5,-2,128", (const uint64_t[]){12, 0});
    p.column.length = p.batch.length = 1;
    EXPECT(&p, "1200");
    PRODUCE(&p, "d:76,70,256",
            (const uint64_t[]){0, 0, 0, UINT64_C(1) << 60, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                               UINT64_MAX});
    p.column.length = p.batch.length = 2;
    EXPECT(&p, "723700.5577332262213973186563042994240829374041602535252466099000494570602496",
           "-0.0000000000000000000000000000000000000000000000000000000000000000000001");
}

static void test_times(void)
{
    struct slc_producer p;

    PRODUCE(&p, "tdD", (const int32_t[]){0, -1, 19448, 2932897});
    EXPECT(&p, "1970-01-01", "1969-12-31", "2023-04-01", "10000-01-01");
    PRODUCE(&p, "tdm", (const int64_t[]){86400000, -86400000});
    EXPECT(&p, "1970-01-02", "1969-12-31");
    PRODUCE(&p, "tts", (const int32_t[]){86399});
    EXPECT(&p, "23:59:59");
    PRODUCE(&p, "ttm", (const int32_t[]){1, 3600500});
    EXPECT(&p, "00:00:00.001", "01:00:00.5");
    PRODUCE(&p, "ttu", (const int64_t[]){1});
    EXPECT(&p, "00:00:00.000001");
    PRODUCE(&p, "ttn", (const int64_t[]){INT64_C(86399999999999)});
    EXPECT(&p, "23:59:59.999999999");
    PRODUCE(&p, "tss:", (const int64_t[]){-1, INT64_C(1680356730)});
    EXPECT(&p, "1969-12-31 23:59:59", "2023-04-01 13:45:30");
    PRODUCE(&p, "tsm:", (const int64_t[]){-1});
    EXPECT(&p, "1969-12-31 23:59:59.999");
    PRODUCE(&p, "tsu:+05:30", (const int64_t[]){INT64_C(1680356730250000)});
    EXPECT(&p, "2023-04-01 19:15:30.25+05:30");
    PRODUCE(&p, "tsn:UTC", (const int64_t[]){1});
    EXPECT(&p, "1970-01-01 00:00:00.000000001+00:00");
}

static void test_strings(void)
{
    static const int32_t offsets[] = {0, 2, 2, 5};
    struct slc_producer p;

    produce_strings(&p, "u", offsets, 3, "abcde");
    EXPECT(&p, "ab", "", "cde");
    produce_strings(&p, "z", offsets, 3, "a,\"\ne");
    EXPECT(&p, "a,", "", "\"\ne");
    slc_produce(&p, "U", 2);
    p.column.n_buffers = 3;
    p.column_buffers[1] = slc_copy_buffer(&p, (const int64_t[]){1, 2, 4}, 24);
    p.column_buffers[2] = slc_copy_buffer(&p, "abcd", 4);
    EXPECT(&p, "b", "cd");
    PRODUCE(&p, "w:3", (const char[]){'a', 'b', 'c', 'd', 'e', 'f'});
    p.column.length = p.batch.length = 2;
    EXPECT(&p, "abc", "def");
    /* A short string within its view, and a long one in the second buffer, from byte 1 on. */
    static const struct {
        int32_t bytes;
        char text[4];
        int32_t buffer, begin;
    } views[] = {{3, "xyz", 0, 0}, {13, "bcde", 1, 1}};
    slc_produce(&p, "vu", 2);
    p.column.n_buffers = 5;
    p.column_buffers[1] = slc_copy_buffer(&p, views, sizeof views);
    p.column_buffers[2] = slc_copy_buffer(&p, "z", 1);
    p.column_buffers[3] = slc_copy_buffer(&p, "abcdefghijklmn", 14);
    p.column_buffers[4] = slc_copy_buffer(&p, (const int64_t[]){1, 14}, 16);
    EXPECT(&p, "xyz", "bcdefghijklmn");
}

/* Nulls, offsets of slices, dictionaries, and rows that are null as a whole. */
static void test_slices(void)
{
    struct slc_producer p;

    PRODUCE(&p, "s", (const int16_t[]){1, 2, 3, 4, 5});
    p.column_buffers[0] = slc_copy_buffer(&p, (const uint8_t[]){0x1b}, 1); /* element 2 is null */
    p.column.length = 4;
    p.column.offset = 1;
    p.column.null_count = 1;
    p.batch.length = 3;
    p.batch.offset = 1;
    EXPECT(&p, "", "4", "5");
    PRODUCE(&p, "i", (const int32_t[]){1, 2});
    p.batch_buffers[0] = slc_copy_buffer(&p, (const uint8_t[]){0x02}, 1);
    p.batch.null_count = -1;
    EXPECT(&p, "", "2");
    PRODUCE(&p, "C", (const uint8_t[]){2, 0, 2, 1});
    add_strings(&p, (const int32_t[]){0, 1, 1, 4}, 3, "xyzw");
    p.values_buffers[0] = slc_copy_buffer(&p, (const uint8_t[]){0x05}, 1); /* value 1 is null */
    p.values.null_count = 1;
    EXPECT(&p, "yzw", "x", "yzw", "");
}

/* Fields whose values are numbers in memory, not text. */
static void test_binary(void)
{
    struct slc_producer p;
    struct fields fields;
    struct slc_error err;
    struct slc_time time = {0, 0};
    double value = 0;

    PRODUCE(&p, "f", (const float[]){0.1F, INFINITY});
    CU_ASSERT_EQUAL(read_stream(&p, "c", "c", &fields, &err), SLC_OK);
    CU_ASSERT_EQUAL(fields.bytes[0], 8);
    memcpy(&value, fields.text[0], 8);
    CU_ASSERT_EQUAL(value, 0.1); /* the same number as read from the text 0.1 */
    CU_ASSERT_STRING_EQUAL(fields.text[1], "inf");
    PRODUCE(&p, "L", (const uint64_t[]){UINT64_MAX});
    CU_ASSERT_EQUAL(read_stream(&p, "c", "c", &fields, &err), SLC_OK);
    memcpy(&value, fields.text[0], 8);
    CU_ASSERT_EQUAL(value, 18446744073709551616.0);
    PRODUCE(&p, "tss:-01:00", (const int64_t[]){0, INT64_C(1) << 60});
    CU_ASSERT_EQUAL(read_stream(&p, "hour(c)", NULL, &fields, &err), SLC_ERR_INPUT);
    CU_ASSERT_EQUAL(fields.count, 1);
    memcpy(&time, fields.text[0], 8);
    CU_ASSERT_TRUE(time.days == -1 && time.second == 82800);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "out of range"));
    CU_ASSERT_EQUAL(err.line, 1);
}

/* Faults of a stream that test_malformed makes. */
enum fault {
    NO_FORMAT,
    NOT_A_TABLE,
    NO_CHILDREN,
    NEGATIVE_COLUMNS,
    LIST,
    UNKNOWN_TYPE,
    PERIOD,
    BAD_DECIMAL,
    BAD_UNIT,
    NO_ZONE,
    SHORT_COLUMN,
    NEGATIVE_LENGTH,
    NEGATIVE_OFFSET,
    HUGE_OFFSET,
    TOO_MANY_NULLS,
    NULLS_WITHOUT_BITMAP,
    NO_DATA,
    NO_BUFFERS,
    TOO_FEW_BUFFERS,
    NO_CHILD_ARRAYS,
    FEWER_COLUMNS,
    CHILD_MISSING,
    PRODUCER_ERROR,
    NO_DICTIONARY,
    CODE_BEYOND,
    CODE_NEGATIVE,
    CODES_NOT_INTEGERS,
    FAULTS
};

/* Metadata of an integer column: two pairs of a key and a value. */
static const struct {
    int32_t pairs, key_bytes;
    char key[4];
    int32_t value_bytes, name_bytes;
    char name[20];
    int32_t extension_bytes;
    char extension[13];
} period = {2, 4, "unit", 0, 20, "ARROW:extension:name", 13, "pandas.period"};

/* Sets the fault, and returns a part of the expected message. */
static const char *make_fault(struct slc_producer *p, enum fault fault)
{
    static const char *const parts[] = {[NO_FORMAT] = "has no schema",
                                        [NOT_A_TABLE] = "is not a table",
                                        [NO_CHILDREN] = "has 1 columns",
                                        [NEGATIVE_COLUMNS] = "has -1 columns",
                                        [LIST] = "column c: its type is a list",
                                        [UNKNOWN_TYPE] = "'?x' is not supported",
                                        [PERIOD] = "column c: its type is a period",
                                        [BAD_DECIMAL] = "is not supported",
                                        [BAD_UNIT] = "is not supported",
                                        [NO_ZONE] = "no time zone 'Mars/Olympus'",
                                        [SHORT_COLUMN] = "has 2 elements, expected 3",
                                        [NEGATIVE_LENGTH] = "the length -3",
                                        [NEGATIVE_OFFSET] = "the offset -1",
                                        [HUGE_OFFSET] = "the offset 9223372036854775807",
                                        [TOO_MANY_NULLS] = "4 nulls",
                                        [NULLS_WITHOUT_BITMAP] = "no bitmap",
                                        [NO_DATA] = "no buffer of elements",
                                        [NO_BUFFERS] = "no buffers",
                                        [TOO_FEW_BUFFERS] = "has 1 buffers, expected 2",
                                        [NO_CHILD_ARRAYS] = "has 1 columns",
                                        [FEWER_COLUMNS] = "has 0 columns, expected 1",
                                        [CHILD_MISSING] = "column c is missing",
                                        [PRODUCER_ERROR] = "reports: the disk has gone",
                                        [NO_DICTIONARY] = "dictionary of column c is missing",
                                        [CODE_BEYOND] = "index 2 of a dictionary of 2 values",
                                        [CODE_NEGATIVE] = "index -1 of a dictionary",
                                        [CODES_NOT_INTEGERS] = "are not integers"};
    static const char *const formats[] = {
        [LIST] = "+l",       [UNKNOWN_TYPE] = "?x",          [BAD_DECIMAL] = "d:9,x",
        [BAD_UNIT] = "tsx:", [NO_ZONE] = "tss:Mars/Olympus", [CODES_NOT_INTEGERS] = "g"};

    if (fault >= NO_DICTIONARY) {
        add_strings(p, (const int32_t[]){0, 1, 2}, 2, "ab");
        *(int32_t *)p->memory[0] = fault == CODE_BEYOND ? 2 : fault == CODE_NEGATIVE ? -1 : 0;
    }
    if (fault < sizeof formats / sizeof formats[0] && formats[fault] != NULL) {
        p->column_schema.format = formats[fault];
    }
    p->column_schema.metadata = fault == PERIOD ? (const char *)&period : NULL;
    p->column_schema.format = fault == NO_FORMAT ? NULL : p->column_schema.format;
    p->schema.format = fault == NO_FORMAT ? NULL : fault == NOT_A_TABLE ? "i" : "+s";
    p->schema.children = fault == NO_CHILDREN ? NULL : p->schema.children;
    p->schema.n_children = fault == NEGATIVE_COLUMNS ? -1 : 1;
    p->column.length = fault == SHORT_COLUMN ? 2 : fault == NEGATIVE_LENGTH ? -3 : 3;
    p->column.offset = fault == NEGATIVE_OFFSET ? -1 : fault == HUGE_OFFSET ? INT64_MAX : 0;
    p->column.null_count = fault == TOO_MANY_NULLS ? 4 : fault == NULLS_WITHOUT_BITMAP;
    p->column_buffers[1] = fault == NO_DATA ? NULL : p->column_buffers[1];
    p->column.buffers = fault == NO_BUFFERS ? NULL : p->column_buffers;
    p->column.n_buffers = fault == TOO_FEW_BUFFERS ? 1 : 2;
    p->batch.children = fault == NO_CHILD_ARRAYS ? NULL : p->columns;
    p->batch.n_children = fault == FEWER_COLUMNS ? 0 : 1;
    p->columns[0] = fault == CHILD_MISSING ? NULL : &p->column;
    p->code = fault == PRODUCER_ERROR ? EIO : 0;
    p->column.dictionary = fault == NO_DICTIONARY ? NULL : p->column.dictionary;
    return parts[fault];
}

static void test_malformed(void)
{
    struct slc_producer p;
    struct fields fields;
    struct slc_error err;

    for (unsigned fault = 0; fault < FAULTS; fault++) {
        PRODUCE(&p, "i", (const int32_t[]){0, 0, 0});
        const char *part = make_fault(&p, (enum fault)fault);

        CU_ASSERT_EQUAL(read_stream(&p, "c", NULL, &fields, &err), SLC_ERR_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.message, part));
        CU_ASSERT_STRING_EQUAL(err.file, "t");
    }
    PRODUCE(&p, "i", (const int32_t[]){0});
    p.stream.release(&p.stream);
    p.streams = 0;
    CU_ASSERT_EQUAL(read_stream(&p, "c", NULL, &fields, &err), SLC_ERR_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "released before"));
}

static void check_bad_strings(const int32_t *offsets, const char *part)
{
    struct slc_producer p;
    struct fields fields;
    struct slc_error err;

    produce_strings(&p, "u", offsets, 2, "abcd");
    CU_ASSERT_EQUAL(read_stream(&p, "c", NULL, &fields, &err), SLC_ERR_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, part));
}

/* If strings are beyond their buffers, the rows before them are still read. */
static void test_bad_strings(void)
{
    static const struct {
        int32_t bytes;
        char text[4];
        int32_t buffer, begin;
    } views[][1] = {{{-1, "abcd", 0, 0}},
                    {{13, "abcd", 1, 0}},
                    {{13, "abcd", 0, 2}},
                    {{13, "abcd", 0, -1}},
                    {{13, "abcd", -1, 0}}};
    struct slc_producer p;
    struct fields fields;
    struct slc_error err;

    check_bad_strings((const int32_t[]){0, 3, 2}, "from byte 0 to 3 of 2");
    check_bad_strings((const int32_t[]){2, 1, 4}, "from byte 2 to 1 of 4");
    check_bad_strings((const int32_t[]){-1, 1, 4}, "from byte -1 to 1");
    check_bad_strings((const int32_t[]){0, 1, -4}, "strings of column c end at byte -4");
    for (unsigned i = 0; i < sizeof views / sizeof views[0]; i++) {
        slc_produce(&p, "vz", 1);
        p.column.n_buffers = 4;
        p.column_buffers[1] = slc_copy_buffer(&p, views[i], sizeof views[i]);
        p.column_buffers[2] = slc_copy_buffer(&p, "abcdefghijklmn", 14);
        p.column_buffers[3] = slc_copy_buffer(&p, (const int64_t[]){14}, 8);
        CU_ASSERT_EQUAL(read_stream(&p, "c", NULL, &fields, &err), SLC_ERR_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "column c: the string is"));
        CU_ASSERT_EQUAL(err.column, 1);
    }
}

/* Without columns, all columns except that of the values are modes. */
static void test_all_columns(void)
{
    struct slc_producer p;
    struct slc_arrow *arrow = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    char items[SLC_ARROW_ITEMS_BYTES];

    slc_produce(&p, "i", 0);
    p.column_schema.name = "a \"b\", (c)";
    CU_ASSERT_EQUAL(slc_arrow_open(&p.stream, "t", &arrow, &err), SLC_OK);
    CU_ASSERT_EQUAL(slc_arrow_all_columns(arrow, NULL, items, &err), SLC_OK);
    CU_ASSERT_STRING_EQUAL(items, "\"a \"\"b\"\", (c)\"");
    CU_ASSERT_EQUAL(slc_arrow_all_columns(arrow, p.column_schema.name, items, &err), SLC_ERR_USAGE);
    slc_arrow_close(arrow);
}

/* Batches without rows are passed over; a column may lack its buffers in them. */
static void test_empty(void)
{
    struct slc_producer p;
    struct fields fields;
    struct slc_error err;

    slc_produce(&p, "u", 0);
    p.column.n_buffers = 3;
    CU_ASSERT_EQUAL(read_stream(&p, "c", NULL, &fields, &err), SLC_OK);
    CU_ASSERT_EQUAL(fields.count, 0);
    CU_ASSERT_EQUAL(p.batches, 1);
}

static const struct slc_test tests[] = {
    {"integers, floating-point numbers, booleans", test_numbers},
    {"decimals", test_decimals},
    {"dates and times", test_times},
    {"strings", test_strings},
    {"slices, nulls, dictionaries", test_slices},
    {"values and times in memory format", test_binary},
    {"malformed streams", test_malformed},
    {"strings beyond their buffers", test_bad_strings},
    {"batches without rows", test_empty},
    {"all columns as modes", test_all_columns},
};

SLC_SUITE(arrow)
{
    return slc_test_main("arrow", tests, SLC_COUNT(tests), argc, argv);
}
