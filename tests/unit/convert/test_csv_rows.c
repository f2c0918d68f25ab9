/* The CSV reader, which reads many records at a time, against a reference that reads byte by byte,
 * record by record and field by field, written from [RFC4180] and the rules of --columns alone:
 * random CSV, mostly regular or mostly hostile (quotes in and around fields, line ends in them, CR
 * LF and lone CR, missing and surplus fields, zero bytes, no final line end), split anywhere, with
 * every instruction set. Rows, numbers of strings, and the line, column and kind of faults must be
 * the same. */
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "convert/ingest/csv/csv_index.h"
#include "convert/ingest/csv/csv_rows.h"
#include "slc_test.h"
#include "storage/manifest/names.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, TEXT_BYTES = 32 << 10, ROWS = 4096, STRINGS = 4096, NUMBER_BYTES = 64 };

/* The texts of the fields of a record. */
static char unquoted[TEXT_BYTES];

/* Result of a naive reader. */
struct field {
    const char *text; /* text of the field, in `unquoted` */
    size_t bytes;
    size_t at; /* start of the field, including the quote */
    unsigned line, column;
};

struct record {
    struct field fields[100];
    unsigned count, lines;
    size_t end;
    bool doubled;
    bool whole; /* the record ends with a line end */
    int fault;  /* 0, or the number of the faulty field, from 1 */
};

static uint64_t next_random(uint64_t *state)
{
    return slc_mix64((*state)++);
}

static void naive_record(const char *text, size_t bytes, size_t at, struct record *record)
{
    unsigned line = 0, column = 1;
    char *to = unquoted;

    memset(record, 0, sizeof *record);
    for (;;) {
        struct field *field = &record->fields[record->count++];
        bool quoted = false;

        field->text = to;
        field->at = at;
        field->line = line;
        field->column = column;
        if (at < bytes && text[at] == '"') {
            bool closed = false;

            quoted = true;
            at++;
            column++;
            for (; at < bytes && !closed; at++, column++) {
                if (text[at] == '"' && at + 1 < bytes && text[at + 1] == '"') {
                    at++;
                    column++;
                    record->doubled = true;
                } else if (text[at] == '"') {
                    closed = true;
                    continue;
                }
                *to++ = text[at];
                field->bytes++;
                if (text[at] == '\n') {
                    line++;
                    column = 0;
                }
            }
            if (!closed) {
                record->fault = (int)record->count;
                return;
            }
            if (at < bytes && text[at] == '\r' && (at + 1 == bytes || text[at + 1] == '\n')) {
                at++;
                column++;
            }
        }
        while (!quoted && at < bytes && text[at] != ',' && text[at] != '\n') {
            *to++ = text[at++];
            field->bytes++;
            column++;
        }
        if (!quoted && (at == bytes || text[at] == '\n') && field->bytes > 0 &&
            field->text[field->bytes - 1] == '\r') {
            field->bytes--;
        }
        if (at == bytes || text[at] == '\n') {
            record->whole = at < bytes;
            record->lines = line + record->whole;
            record->end = at + record->whole;
            return;
        }
        if (text[at] != ',') {
            record->fault = (int)record->count;
            return;
        }
        at++;
        column++;
    }
}

/* Random CSV of `bytes` bytes; of a thousand fields `hostile` are strange, and `irregular` of
 * those in some columns are irregular. */
static size_t
make_text(uint64_t *state, size_t bytes, unsigned hostile, unsigned irregular, char *text)
{
    static const char *const strange[] = {
        "\"",      "a\"b", "\"a\"\"b\"", "\"x\ny\"", "\"\"",    "",     "\r", "\"a\"b", "a\rb",
        "\"c,d\"", "\n",   "x,y",        "\"\"\"\"", "\"q\"\r", "\"ab", "--", "1e400",  "\"\r\n\""};
    static const char *const fair[] = {"7",
                                       "42",
                                       "\"19\"",
                                       "2023-04-01",
                                       "2023-04-01 13:05:59",
                                       "1969-12-31T23:59:59",
                                       "12.5",
                                       "3.25",
                                       "\"0.5\"",
                                       " 8 ",
                                       "Place 0123 St",
                                       "ab",
                                       "\"ab\"",
                                       "zebra-zebra-zebra",
                                       "a b"};
    /* Irregular but valid. */
    static const char *const sound[] = {"\"a\"\"b\"", "\"x\ny\"",     "\"c,d\"", "\"\"\"\"",
                                        "a\rb",       "\"\r\n\"",     "c\"d",    "",
                                        "\"\"",       "\"\n\"\"\n,\""};
    const bool crlf = next_random(state) % 3 == 0;
    size_t at = 0;

    while (at + 128 < bytes) {
        for (unsigned c = 0; c < COLUMNS; c++) {
            const bool odd = next_random(state) % 1000 < hostile;
            const uint64_t pick = next_random(state);
            const bool is_irregular = c % 4 == 0 && next_random(state) % 1000 < irregular;
            const char *what = odd            ? strange[pick % SLC_COUNT(strange)]
                               : is_irregular ? sound[pick % SLC_COUNT(sound)]
                               /* Usually of the kind that the column requires. */
                               : c == 1 ? fair[pick % 3]
                               : c == 2 ? fair[3 + pick % 3]
                               : c == 3 ? fair[6 + pick % 4]
                                        : fair[pick % SLC_COUNT(fair)];
            const size_t length = strlen(what);

            memcpy(text + at, what, length);
            at += length;
            text[at++] = ',';
        }
        text[at - 1] = '\n';
        if (crlf) {
            text[at - 1] = '\r';
            text[at++] = '\n';
        }
        if (hostile > 0 && next_random(state) % 5000 < hostile) {
            text[next_random(state) % at] = '\0';
        }
    }
    return at - next_random(state) % 3;
}

/* Every instruction set finds the positions of the longest run of regular records. */
static void test_index(void)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    static char text[2048 + SLC_CSV_SLACK];
    static uint32_t starts[SLC_CSV_STARTS], wanted[SLC_CSV_STARTS];
    static struct record record;
    uint64_t state = 5, wrong = 0, regular = 0, short_runs = 0, irregular = 0;

    for (unsigned turn = 0; turn < 3000; turn++) {
        static const unsigned rates[] = {0, 5, 50, 400};
        const size_t bytes = make_text(&state, 300 + next_random(&state) % 1700,
                                       rates[turn % SLC_COUNT(rates)], turn % 3 * 20, text);
        const char *line = memchr(text + next_random(&state) % 60, '\n', bytes - 60);
        const size_t begin = line != NULL && turn % 2 == 0 ? (size_t)(line + 1 - text) : 0;
        const unsigned most = 1 + (unsigned)(next_random(&state) % 40);
        unsigned count = 0;
        unsigned marks = 0;

        wanted[0] = (uint32_t)begin;
        for (size_t at = begin; count < most && at < bytes; at = record.end, count++) {
            naive_record(text, bytes, at, &record);
            if (record.fault != 0 || !record.whole || record.count != COLUMNS) {
                break;
            }
            for (unsigned f = 0; f < COLUMNS; f++) {
                wanted[count * COLUMNS + f] = (uint32_t)record.fields[f].at;
            }
            wanted[(count + 1) * COLUMNS] = (uint32_t)record.end;
            marks |= (memchr(text + at, '"', record.end - at) != NULL ? SLC_CSV_QUOTED : 0) |
                     (record.doubled ? SLC_CSV_DOUBLED : 0) |
                     (record.lines > 1 ? SLC_CSV_LINES : 0);
        }
        regular += count;
        short_runs += count < most;
        for (unsigned s = 0; s < SLC_COUNT(sets); s++) {
            slc_csv_index_fn *index = slc_csv_index_by(sets[s]);
            slc_csv_last_fn *last = slc_csv_last_by(sets[s]);
            unsigned found = 0;
            bool is_regular[2];

            memset(starts, 0xff, sizeof starts);
            memset(text + bytes, s == 1 ? '\n' : '"', SLC_CSV_SLACK);
            wrong += index != NULL &&
                     (index(text, begin, bytes, ',', COLUMNS, most, starts, &found) != count ||
                      memcmp(starts, wanted, (count * COLUMNS + 1) * sizeof *starts) != 0 ||
                      (marks & ~found) != 0);
            /* test_csv.c compares the end of the last record, with the widest set. */
            wrong +=
                last != NULL && (last(text, bytes, ',', &is_regular[0]) !=
                                     slc_csv_last_by("plain")(text, bytes, ',', &is_regular[1]) ||
                                 is_regular[0] != is_regular[1]);
            irregular += s == 0 && !is_regular[0];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(irregular > 100 && irregular < 2900);
    CU_ASSERT_TRUE(regular > 10000 && short_runs > 1000);
    CU_ASSERT_PTR_NOT_NULL(slc_csv_index_by(NULL));
    CU_ASSERT_PTR_NULL(slc_csv_index_by("none"));
}

/* With one column, an empty line is no record, and an empty quoted field is one. */
static void test_one_column(void)
{
    static const struct {
        const char *text;
        unsigned want;
    } lines[] = {{"a\nb\n\nc\n", 2},    {"\n", 0},     {"\r\n", 0},
                 {"\"\"\n\"\"\r\n", 2}, {"\r\r\n", 1}, {"\"\n\"\n\n", 1}};
    static uint32_t starts[SLC_CSV_STARTS];
    slc_csv_index_fn *index = slc_csv_index_by(NULL);
    unsigned marks;

    for (size_t i = 0; i < SLC_COUNT(lines); i++) {
        char text[16 + SLC_CSV_SLACK] = "";

        memcpy(text, lines[i].text, strlen(lines[i].text));
        CU_ASSERT_EQUAL(index(text, 0, strlen(lines[i].text), ',', 1, 9, starts, &marks),
                        lines[i].want);
    }
}

/* Records with more fields than positions, and many fields beyond. */
static void test_wide_index(void)
{
    static char text[64 << 10];
    static uint32_t starts[SLC_CSV_STARTS];
    slc_csv_index_fn *index = slc_csv_index_by(NULL);
    unsigned marks;

    memset(text, ',', sizeof text);
    for (unsigned columns = 1000; columns <= 9000; columns += 1000) {
        const unsigned fit = (SLC_CSV_STARTS - 64) / columns;
        unsigned found;

        for (unsigned i = 1; i <= 5; i++) {
            text[i * columns - 1] = '\n';
        }
        found = index(text, 0, 5 * columns, ',', columns, 100, starts, &marks);
        CU_ASSERT_TRUE(found <= 5 && found + 1 >= (fit < 5 ? fit : 5));
        CU_ASSERT_EQUAL(starts[found * columns], found * columns);
        memset(text, ',', 5 * columns);
    }
}

/* Result of reading a CSV. */
struct outcome {
    uint64_t rows[ROWS][5]; /* four modes and the value */
    unsigned count, skipped;
    enum slc_status fault;
    uint64_t line, column;
};

struct strings {
    char pool[TEXT_BYTES];
    size_t used;
    const char *text[STRINGS];
    size_t bytes[STRINGS];
    unsigned count;
};

static uint64_t naive_number(struct strings *strings, const struct field *field)
{
    unsigned i = 0;

    while (i < strings->count && (strings->bytes[i] != field->bytes ||
                                  memcmp(strings->text[i], field->text, field->bytes) != 0)) {
        i++;
    }
    if (i == strings->count) {
        strings->text[i] = memcpy(strings->pool + strings->used, field->text, field->bytes);
        strings->used += field->bytes;
        strings->bytes[i] = field->bytes;
        strings->count++;
    }
    return i;
}

/* The text without surrounding blanks, at most 64 bytes. */
static const char *trimmed(const struct field *field, char copy[NUMBER_BYTES + 1])
{
    size_t begin = 0, end = field->bytes;

    if (end > NUMBER_BYTES) {
        return "x";
    }
    while (begin < end && field->text[begin] == ' ') {
        begin++;
    }
    while (end > begin && field->text[end - 1] == ' ') {
        end--;
    }
    memcpy(copy, field->text + begin, end - begin);
    copy[end - begin] = '\0';
    return strlen(copy) == end - begin && end > begin ? copy : "x";
}

/* By mode: a string, an integer, an hour, another string (of column 0 again); then the value. */
static const unsigned columns_of[5] = {0, 1, 2, 0, 3};

static bool
naive_cell(struct strings strings[4], unsigned m, const struct field *field, uint64_t *cell)
{
    char copy[NUMBER_BYTES + 1], *end;
    const char *text = trimmed(field, copy);
    struct slc_time time;
    double value;

    switch (m) {
    case 0:
    case 3:
        if (field->bytes > SLC_NAME_BYTES_MAX || memchr(field->text, 0, field->bytes) != NULL) {
            return false;
        }
        *cell = naive_number(&strings[m], field);
        return true;
    case 1:
        if (strspn(text, "0123456789") != strlen(text)) {
            return false;
        }
        *cell = strtoull(text, NULL, 10);
        return true;
    case 2:
        if (!slc_time_parse(text, strlen(text), &time)) {
            return false;
        }
        *cell = (uint64_t)time.second / 3600;
        return true;
    default:
        if (strspn(text, "0123456789.eE+-") != strlen(text)) {
            return false;
        }
        value = strtod(text, &end);
        *cell = slc_bits_f64(value);
        return *end == '\0' && value - value == 0;
    }
}

static void set_fault(struct outcome *outcome, uint64_t line, const struct field *field)
{
    outcome->fault = SLC_ERR_INPUT;
    outcome->line = line + field->line;
    outcome->column = field->column;
}

static void
naive_table(const char *text, size_t bytes, enum slc_csv_missing missing, struct outcome *outcome)
{
    static struct strings strings[4];
    static struct record record;
    uint64_t line = 1;

    memset(outcome, 0, sizeof *outcome);
    for (unsigned m = 0; m < 4; m++) {
        strings[m].count = 0;
        strings[m].used = 0;
    }
    for (size_t at = 0; at < bytes; at = record.end, line += record.lines) {
        bool skip = false;

        naive_record(text, bytes, at, &record);
        if (record.fault != 0) {
            set_fault(outcome, line, &record.fields[record.fault - 1]);
            return;
        }
        if (record.count == 1 && record.fields[0].bytes == 0 && text[at] != '"') {
            continue;
        }
        if (record.count != COLUMNS) {
            set_fault(outcome, line, &record.fields[0]);
            return;
        }
        for (unsigned m = 0; m < 5; m++) {
            if (record.fields[columns_of[m]].bytes == 0 && missing == SLC_CSV_MISSING_ERROR) {
                set_fault(outcome, line, &record.fields[columns_of[m]]);
                return;
            }
            skip = skip ||
                   (record.fields[columns_of[m]].bytes == 0 && missing == SLC_CSV_MISSING_SKIP);
        }
        for (unsigned m = 0; m < 5 && !skip; m++) {
            if (!naive_cell(strings, m, &record.fields[columns_of[m]],
                            &outcome->rows[outcome->count][m])) {
                set_fault(outcome, line, &record.fields[columns_of[m]]);
                return;
            }
        }
        outcome->skipped += skip;
        outcome->count += !skip;
    }
}

/* The rows of a part as 8-byte numbers. */
static void decode_rows(const struct slc_csv_part *part, uint64_t (*rows)[5])
{
    const struct slc_csv_table *table = part->table;

    for (unsigned i = 0; i < part->row_count; i++) {
        for (unsigned m = 0; m < 5; m++) {
            const uint8_t *at = part->rows + i * table->row_bytes + table->offsets[m];

            rows[i][m] = table->widths[m] == 1   ? *at
                         : table->widths[m] == 4 ? slc_load_u32(at)
                                                 : slc_load_u64(at);
        }
    }
}

/* Reads the rows with the CSV reader, in parts of the text with random borders. */
static void read_table(struct slc_csv_part *part,
                       const char *text,
                       size_t bytes,
                       uint64_t *state,
                       struct outcome *outcome)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t line = 1;

    memset(outcome, 0, sizeof *outcome);
    for (size_t at = 0; at < bytes && outcome->fault == SLC_OK; at += part->bytes) {
        size_t length = 1 + next_random(state) % (next_random(state) % 4 == 0 ? 100 : bytes);

        part->bytes = 0;
        while (at + length < bytes && (part->bytes = slc_csv_cut(text + at, length, ',')) == 0) {
            length += 50;
        }
        part->last = at + length >= bytes;
        part->bytes = part->last ? bytes - at : part->bytes;
        memcpy(part->text, text + at, part->bytes);
        memset(part->text + part->bytes, next_random(state) % 2 ? '\n' : '"', SLC_CSV_SLACK);
        part->position = 0;
        part->lines = 0;
        /* The space for strings with doubled quotes is often too small for all of them. */
        part->spare_begin = part->bytes + SLC_CSV_SLACK;
        part->spare_end =
            part->spare_begin + next_random(state) % 2 * TEXT_BYTES + next_random(state) % 40;
        do {
            slc_csv_part_clear(part);
            slc_csv_translate(part);
            outcome->fault = slc_csv_commit(part, line, &err);
            if (outcome->fault == SLC_OK) {
                decode_rows(part, outcome->rows + outcome->count);
                outcome->count += part->row_count;
                outcome->skipped += (unsigned)part->skipped;
            }
        } while (outcome->fault == SLC_OK && part->position < part->bytes);
        line += part->lines;
    }
    outcome->line = err.line;
    outcome->column = err.column;
}

static bool is_same(const struct outcome *one, const struct outcome *other)
{
    if (one->fault != other->fault) {
        return false;
    }
    return one->fault != SLC_OK
               ? one->line == other->line && one->column == other->column
               : one->count == other->count && one->skipped == other->skipped &&
                     memcmp(one->rows, other->rows, one->count * sizeof one->rows[0]) == 0;
}

static void compare_tables(const char *set, unsigned turns, uint64_t counts[3])
{
    static char text[TEXT_BYTES];
    static struct outcome wanted, got;
    struct slc_csv_spec spec = {.order = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_dictionary *dictionaries[SLC_MAX_ORDER] = {NULL};
    struct slc_csv_table table = {.spec = &spec,
                                  .name = "table",
                                  .dictionaries = dictionaries,
                                  .index = slc_csv_index_by(set),
                                  .delimiter = ',',
                                  .columns = COLUMNS,
                                  .floor = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN}};
    struct slc_csv_part part = {.text = NULL};
    uint64_t state = 17, room = 4 << 20;
    const struct slc_dictionary_options options = {.text_bytes = 8 << 10, .left_bytes = &room};

    SLC_ASSERT_OK(slc_csv_spec_parse("a,int(b),hour(c),a", &spec, &err), &err);
    memcpy(spec.value, "d", 2);
    memcpy(table.at, columns_of, sizeof columns_of);
    slc_csv_lay_out_rows(&table, 1 << 30);
    CU_ASSERT_EQUAL(table.row_bytes, 4 + 8 + 1 + 4 + 8);
    if (strcmp(set, "plain") == 0) {
        /* The memory is sufficient for more strings than 4-byte numbers can count. */
        slc_csv_lay_out_rows(&table, UINT64_C(1) << 40);
        CU_ASSERT_EQUAL(table.row_bytes, 8 + 8 + 1 + 8 + 8);
    }
    SLC_ASSERT_OK(slc_csv_part_create(&table, 2 * TEXT_BYTES + 4 * SLC_CSV_SLACK, &part, &err),
                  &err);
    for (unsigned turn = 0; turn < turns; turn++) {
        static const unsigned rates[] = {0, 0, 1, 100};
        const unsigned rate = rates[turn % SLC_COUNT(rates)];
        const size_t bytes = make_text(&state, rate > 10 ? 500 : 1000 + next_random(&state) % 30000,
                                       rate, COLUMNS, text);

        room = 4 << 20;
        spec.missing = (enum slc_csv_missing)(next_random(&state) % 3);
        for (unsigned m = 0; m < 4; m += 3) {
            SLC_ASSERT_OK(slc_dictionary_create(&options, &dictionaries[m], &err), &err);
        }
        naive_table(text, bytes, spec.missing, &wanted);
        read_table(&part, text, bytes, &state, &got);
        if (!is_same(&wanted, &got)) {
            if (counts[0]++ < 10) {
                printf("# %s turn %u: %u rows, fault %d at %" PRIu64 ":%" PRIu64
                       ", wanted %u, %d at %" PRIu64 ":%" PRIu64 "\n",
                       set, turn, got.count, (int)got.fault, got.line, got.column, wanted.count,
                       (int)wanted.fault, wanted.line, wanted.column);
            }
        }
        counts[1] += wanted.fault == SLC_OK;
        counts[2] += wanted.fault == SLC_OK && wanted.skipped > 0;
        for (unsigned m = 0; m < 4; m += 3) {
            slc_dictionary_destroy(dictionaries[m]);
        }
    }
    slc_csv_part_destroy(&part);
}

static void test_tables(void)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};

    for (unsigned s = 0; s < SLC_COUNT(sets); s++) {
        const unsigned turns = slc_test_quick() ? 60 : 400;
        uint64_t counts[3] = {0};

        if (slc_csv_index_by(sets[s]) != NULL) {
            compare_tables(sets[s], turns, counts);
            CU_ASSERT_EQUAL(counts[0], 0);
            /* Enough of the texts are valid, enough are faulty, and in some, rows are skipped. */
            CU_ASSERT_TRUE(counts[1] > turns / 8 && counts[1] < turns * 7 / 8);
            CU_ASSERT_TRUE(counts[2] > 0);
        }
    }
}

static const struct slc_test tests[] = {
    {"places of fields", test_index},
    {"records of one field", test_one_column},
    {"places of wide records", test_wide_index},
    {"tables as a naive reader reads them", test_tables},
};

SLC_SUITE(csv_rows)
{
    return slc_test_main("csv rows", tests, SLC_COUNT(tests), argc, argv);
}
