#include "convert/ingest/csv/csv_part.h"

#include "convert/ingest/csv/csv_field.h"

#include <limits.h>
#include <string.h>

/* ALL_RECORDS lists the numbers 0 to 255. */
#define FOUR(n)       (n), (n) + 1, (n) + 2, (n) + 3
#define SIXTEEN(n)    FOUR(n), FOUR((n) + 4), FOUR((n) + 8), FOUR((n) + 12)
#define SIXTY_FOUR(n) SIXTEEN(n), SIXTEEN((n) + 16), SIXTEEN((n) + 32), SIXTEEN((n) + 48)
#define ALL_RECORDS   SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128), SIXTY_FOUR(192)
_Static_assert(SLC_MAX_ORDER <= 32, "a row has a bit for each mode");
_Static_assert(SLC_CSV_BATCH == 256, "ALL_RECORDS must have this many");

/* A batch of records; those without missing fields become rows. */
struct batch {
    struct slc_csv_part *part;
    const struct slc_csv_table *table;
    unsigned found; /* number of records */
    /* number of rows; if it is less than the number of chosen records, the next chosen record must
     * be translated individually */
    unsigned count;
    /* contents that the records may have: SLC_CSV_QUOTED and others */
    unsigned marks;
    const uint16_t *records;      /* number of the record of each row */
    uint16_t kept[SLC_CSV_BATCH]; /* the chosen records, if not all records become rows */
};

struct span { /* text of a field */
    const char *text;
    size_t bytes;
    bool quoted;
};

/* A column of a batch. It copies members of other structs, because the compiler would otherwise
 * load them again after each write in a loop. */
struct column {
    const char *text;
    const uint32_t *starts;
    const uint16_t *records;
    unsigned columns;
    bool ends; /* true for the last column */
    bool quoted;
    const struct slc_csv_spec *null; /* NULL if no words are read as empty fields */
};

static struct column column_of(const struct batch *batch, unsigned m)
{
    const unsigned at = batch->table->at[m];

    return (struct column){.text = batch->part->text,
                           .starts = batch->part->starts + at,
                           .records = batch->records,
                           .columns = batch->table->columns,
                           .ends = at + 1 == batch->table->columns,
                           .quoted = (batch->marks & SLC_CSV_QUOTED) != 0,
                           .null = batch->table->spec->null_count > 0 &&
                                           !slc_csv_is_binary(batch->table, m, 8)
                                       ? batch->table->spec
                                       : NULL};
}

/* Returns the text of a field of the column, without enclosing quotes; a word that is read as an
 * empty field is empty. */
static inline struct span field_of(const struct column *column, unsigned record)
{
    const uint32_t *starts = column->starts + record * column->columns;
    const char *begin = column->text + starts[0];
    const char *end = column->text + starts[1] - 1;

    if (column->ends && end > begin && end[-1] == '\r') {
        end--;
    }
    const bool quoted = column->quoted && end > begin && *begin == '"';
    struct span span = {begin + quoted, (size_t)(end - begin) - 2 * quoted, quoted};

    if (column->null != NULL && slc_csv_is_null(column->null, span.text, span.bytes)) {
        span.bytes = 0;
    }
    return span;
}

static inline struct span field_at(const struct column *column, unsigned row)
{
    return field_of(column, column->records[row]);
}

/* Returns the address of the index of mode m in the first row. */
static uint8_t *first_cell(const struct batch *batch, unsigned m)
{
    return batch->part->rows + batch->table->row_bytes * batch->part->row_count +
           batch->table->offsets[m];
}

/* Chooses the records that become rows: all records, or only records without missing fields if the
 * others are to be skipped. If a missing field is an error, the error is found when its column is
 * read. */
static void choose_records(struct batch *batch)
{
    static const uint16_t all[SLC_CSV_BATCH] = {ALL_RECORDS};
    const struct slc_csv_table *table = batch->table;
    uint8_t lacking[SLC_CSV_BATCH] = {0};

    batch->records = all;
    batch->count = batch->found;
    if (table->spec->missing != SLC_CSV_MISSING_SKIP) {
        return;
    }
    for (unsigned m = 0; m <= table->spec->order && table->at[m] != UINT_MAX; m++) {
        const struct column column = column_of(batch, m);

        for (unsigned r = 0; r < batch->found; r++) {
            lacking[r] |= field_of(&column, r).bytes == 0;
        }
    }
    batch->records = batch->kept;
    batch->count = 0;
    for (unsigned r = 0; r < batch->found; r++) {
        batch->kept[batch->count] = (uint16_t)r;
        batch->count += !lacking[r];
    }
}

/* Returns true if an earlier mode uses the same column and rule. */
static bool is_repeated(const struct slc_csv_table *table, unsigned m)
{
    for (unsigned i = 0; i < m; i++) {
        if (table->at[i] == table->at[m] &&
            table->spec->items[i].rule == table->spec->items[m].rule) {
            return true;
        }
    }
    return false;
}

/* Writes the bin numbers of a mode to the rows. */
static void write_bins(struct batch *batch, unsigned m, const int64_t *bins, unsigned count)
{
    struct slc_csv_part *part = batch->part;
    const size_t row_bytes = batch->table->row_bytes;
    const unsigned width = batch->table->widths[m];
    const int64_t floor = batch->table->floor[m];
    int64_t lowest = part->lowest[m], highest = part->highest[m];
    uint8_t *to = first_cell(batch, m);

    for (unsigned i = 0; i < count; i++, to += row_bytes) {
        if (bins[i] < floor) {
            count = i;
            break;
        }
        lowest = bins[i] < lowest ? bins[i] : lowest;
        highest = bins[i] > highest ? bins[i] : highest;
        slc_csv_write_index(to, width, (uint64_t)bins[i]);
    }
    part->lowest[m] = lowest;
    part->highest[m] = highest;
    batch->count = count;
}

/* Translates all modes whose bins derive from the times of one column; `m` is the first of these
 * modes. */
static void translate_times(struct batch *batch, unsigned m)
{
    const struct slc_csv_table *table = batch->table;
    const struct column column = column_of(batch, m);
    const unsigned at = table->at[m];
    const bool binary = slc_csv_is_binary(table, m, 8);
    struct slc_time times[SLC_CSV_BATCH];
    int64_t bins[SLC_CSV_BATCH];
    struct slc_time_range days = SLC_TIME_RANGE_EMPTY;

    for (unsigned i = 0; i < batch->count; i++) {
        const struct span field = field_at(&column, i);

        if (binary && field.bytes == sizeof times[i]) {
            memcpy(&times[i], field.text, sizeof times[i]);
            days = (struct slc_time_range){INT32_MIN, INT32_MAX};
        } else if (slc_csv_time(field.text, field.bytes, &times[i])) {
            slc_time_range_add(&days, field.text, field.bytes, &times[i]);
        } else {
            batch->count = i;
        }
    }
    for (; m < table->spec->order; m++) {
        const struct slc_csv_item *item = &table->spec->items[m];

        if (table->at[m] != at || item->rule != SLC_CSV_TIME) {
            continue;
        }
        for (unsigned i = 0; i < batch->count; i++) {
            bins[i] = slc_time_bin(item->unit, &times[i]);
        }
        slc_time_range_merge(&batch->part->days[m], days);
        write_bins(batch, m, bins, batch->count);
    }
}

static void translate_integers(struct batch *batch, unsigned m)
{
    const struct column column = column_of(batch, m);
    int64_t bins[SLC_CSV_BATCH];
    unsigned count = 0;

    for (; count < batch->count; count++) {
        const struct span field = field_at(&column, count);
        uint64_t index;

        if (!slc_csv_integer(field.text, field.bytes, &index)) {
            break;
        }
        bins[count] = (int64_t)index;
    }
    write_bins(batch, m, bins, count);
}

static void translate_numbers(struct batch *batch, unsigned m)
{
    const struct slc_csv_item *item = &batch->table->spec->items[m];
    const struct column column = column_of(batch, m);
    int64_t bins[SLC_CSV_BATCH];
    unsigned count = 0;

    for (; count < batch->count; count++) {
        const struct span field = field_at(&column, count);

        if (!slc_csv_bin(item, field.text, field.bytes, &bins[count])) {
            break;
        }
    }
    write_bins(batch, m, bins, count);
}

static void translate_values(struct batch *batch)
{
    const unsigned order = batch->table->spec->order, count = batch->count;
    const bool counted = batch->table->at[order] == UINT_MAX;
    const bool binary = slc_csv_is_binary(batch->table, order, 8);
    const struct column column = column_of(batch, counted ? 0 : order);
    const size_t row_bytes = batch->table->row_bytes;
    uint8_t *to = first_cell(batch, order);

    for (unsigned i = 0; i < count; i++, to += row_bytes) {
        double value = 1;

        if (!counted) {
            const struct span field = field_at(&column, i);

            if (binary && field.bytes == sizeof value) {
                memcpy(&value, field.text, sizeof value);
            } else if (!slc_csv_value(field.text, field.bytes, &value)) {
                batch->count = i;
                break;
            }
        }
        slc_store_u64(to, slc_bits_f64(value));
    }
}

static uint32_t count_lines(const char *text, size_t bytes)
{
    const char *end = text + bytes;
    uint32_t count = 0;

    while ((text = memchr(text, '\n', (size_t)(end - text))) != NULL) {
        text++;
        count++;
    }
    return count;
}

/* A position in the text, and the number of lines of the part before this position. */
struct place {
    size_t at;
    uint32_t line;
};

/* Records a string that has no number yet: appends it to the keys of the part. `last` is the place
 * of the previous key. */
static void record_unknown(struct batch *batch, unsigned m, unsigned row, struct place *last)
{
    struct slc_csv_part *part = batch->part;
    const unsigned record = batch->records[row];
    const uint32_t *starts = part->starts + record * batch->table->columns;
    const size_t begin = starts[0], at = starts[batch->table->at[m]];
    const char *line = part->text + begin;

    if ((batch->marks & SLC_CSV_LINES) == 0) {
        last->line = (uint32_t)part->lines + record;
    } else {
        const char *before = memrchr(line, '\n', at - begin);

        line = before != NULL ? before + 1 : line;
        /* The string may be before the previous key, because modes may use columns in any order. */
        last->line += at >= last->at ? count_lines(part->text + last->at, at - last->at)
                                     : 0 - count_lines(part->text + at, last->at - at);
        last->at = at;
    }
    part->keys[part->key_count++] = (struct slc_csv_key){
        .key = part->strings[m * SLC_CSV_BATCH + row],
        .row = part->row_count + row,
        .line = last->line,
        .column = batch->table->feed != NULL ? batch->table->numbers[m]
                                             : (uint32_t)(part->text + at - line) + 1,
        .mode = m};
}

/* Copies a string with doubled quotes to the spare space and unquotes it. Returns false if it does
 * not fit. */
static bool unquote(struct slc_csv_part *part, struct span *field)
{
    const struct slc_csv_field quoted = {
        .text = field->text, .bytes = field->bytes, .doubled = true};
    char *to = part->text + part->spare;

    if (part->spare_end < part->spare || part->spare_end - part->spare < field->bytes) {
        return false;
    }
    *field = (struct span){to, slc_csv_unquote(&quoted, to, field->bytes), true};
    part->spare += field->bytes;
    return true;
}

/* Finds the strings of a mode in all records. Stops at a missing field that is an error, or at a
 * string whose unquoted copy does not fit. */
static void find_strings(struct batch *batch, unsigned m)
{
    const bool needed = batch->table->spec->missing == SLC_CSV_MISSING_ERROR;
    const bool doubled = (batch->marks & SLC_CSV_DOUBLED) != 0;
    const struct column column = column_of(batch, m);
    struct slc_dictionary_key *keys = batch->part->strings + m * SLC_CSV_BATCH;
    const unsigned count = batch->count;

    for (unsigned i = 0; i < count; i++) {
        struct span field = field_at(&column, i);

        if ((needed && field.bytes == 0) ||
            (doubled && field.quoted && memchr(field.text, '"', field.bytes) != NULL &&
             !unquote(batch->part, &field))) {
            batch->count = i;
            break;
        }
        keys[i] = (struct slc_dictionary_key){.hash = slc_dictionary_hash(field.text, field.bytes),
                                              .at = (uint32_t)(field.text - column.text),
                                              .bytes = (uint32_t)field.bytes};
    }
}

/* Looks up all strings, and appends the unknown strings to the keys in row order. */
static void translate_strings(struct batch *batch)
{
    const struct slc_csv_table *table = batch->table;
    const struct slc_csv_item *items = table->spec->items;
    const size_t row_bytes = table->row_bytes;
    struct place last = {batch->part->position, (uint32_t)batch->part->lines};
    uint64_t numbers[SLC_CSV_BATCH];
    uint32_t unknown[SLC_CSV_BATCH] = {0}; /* per row: a bit for each mode with an unknown string */

    for (unsigned m = 0; m < table->spec->order; m++) {
        const unsigned width = table->widths[m];
        uint8_t *to = first_cell(batch, m);

        if (items[m].rule != SLC_CSV_STRINGS) {
            continue;
        }
        find_strings(batch, m);
        slc_csv_look_up(table, m, batch->part->text, batch->part->strings + m * SLC_CSV_BATCH,
                        batch->count, numbers);
        for (unsigned i = 0; i < batch->count; i++, to += row_bytes) {
            slc_csv_write_index(to, width, numbers[i]);
            unknown[i] |= (uint32_t)(numbers[i] == UINT64_MAX) << m;
        }
    }
    for (unsigned i = 0; i < batch->count; i++) {
        for (uint32_t rest = unknown[i]; rest != 0; rest &= rest - 1) {
            record_unknown(batch, (unsigned)__builtin_ctz(rest), i, &last);
        }
    }
}

bool slc_csv_translate_batch(struct slc_csv_part *part, unsigned most)
{
    const struct slc_csv_table *table = part->table;
    struct batch batch = {.part = part, .table = table};
    const size_t spare = part->spare;

    most = most < SLC_CSV_BATCH ? most : SLC_CSV_BATCH;
    batch.found = table->feed != NULL
                      ? table->feed->render(table->feed->context, part, most)
                      : table->index(part->text, part->position, part->bytes, table->delimiter,
                                     table->columns, most, part->starts, &batch.marks);
    if (batch.found == 0) {
        return false;
    }
    choose_records(&batch);
    unsigned chosen = batch.count;
    for (unsigned m = 0; m < table->spec->order; m++) {
        switch (table->spec->items[m].rule) {
        case SLC_CSV_STRINGS:
            break;
        case SLC_CSV_TIME:
            if (!is_repeated(table, m)) {
                translate_times(&batch, m);
            }
            break;
        case SLC_CSV_INTEGER:
            translate_integers(&batch, m);
            break;
        default:
            translate_numbers(&batch, m);
        }
    }
    translate_values(&batch);
    translate_strings(&batch);
    unsigned done = batch.count < chosen ? batch.records[batch.count] : batch.found;
    part->lines += (batch.marks & SLC_CSV_LINES) == 0
                       ? done
                       : count_lines(part->text + part->position,
                                     part->starts[done * table->columns] - part->position);
    part->position =
        table->feed != NULL ? part->position + done : part->starts[done * table->columns];
    part->row_count += batch.count;
    part->records += done;
    part->skipped += done - batch.count;
    if (batch.count == 0) {
        part->spare = spare; /* so that the record with the fault fits when it is read alone */
    }
    /* If this batch ended only because it was full (`most` records, or no space for more
     * positions), the next record can be translated in a batch. */
    return batch.count == chosen &&
           (batch.found == most || table->feed != NULL ||
            (batch.found > 0 && (batch.found + 1) * table->columns > SLC_CSV_STARTS / 2));
}
