#include "convert/ingest/csv/csv_rows.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "convert/ingest/csv/csv_field.h"
#include "convert/ingest/csv/csv_part.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

enum {
    /* The slot of a key is prefetched this number of keys before it is used. Memory latency is
     * about 100 ns, and a key needs about 10 ns. */
    AHEAD = 12,
    LONG_SECONDS = 13 /* digits of a time of this century in milliseconds */
};

static const char *column_name(const struct slc_csv_part *part, unsigned m)
{
    return m < part->table->spec->order ? part->table->spec->items[m].column
                                        : part->table->spec->value;
}

/* Adds the position of a field to an error. */
static enum slc_status located(const struct slc_csv_part *part,
                               enum slc_status status,
                               const struct slc_csv_field *field,
                               struct slc_error *err)
{
    slc_error_locate_text(err, part->table->name, part->lines + field->line, field->column);
    return status;
}

/* Records the fault of a field with unexpected content. */
static enum slc_status wrong_field(const struct slc_csv_part *part,
                                   unsigned m,
                                   const struct slc_csv_field *field,
                                   const char *expected,
                                   struct slc_error *err)
{
    char shown[41];
    struct slc_time time;
    size_t bytes = slc_csv_unquote(field, shown, sizeof shown - 1);

    if (slc_csv_is_binary(part->table, m, field->bytes)) {
        memcpy(&time, field->text, sizeof time);
        bytes = slc_time_name(SLC_TIME_DATEMINUTE, slc_time_bin(SLC_TIME_DATEMINUTE, &time), shown);
    }
    shown[bytes] = '\0';
    for (size_t i = 0; i < bytes; i++) {
        shown[i] = (unsigned char)shown[i] < ' ' || shown[i] == 127 ? '?' : shown[i];
    }
    const bool nan = strcasecmp(shown, "nan") == 0 && !part->table->spec->missing_fixed;
    const enum slc_status status =
        slc_fail(err, SLC_ERR_INPUT, "column %s has '%s'%s, expected %s%s", column_name(part, m),
                 shown, field->bytes > bytes ? ".." : "", expected,
                 nan ? "; to read it as an empty field, add it to the words for empty fields" : "");

    if (nan) {
        slc_error_set_field(err, SLC_FIELD_NULL);
    }
    return located(part, status, field, err);
}

static bool
parse_value(const struct slc_csv_part *part, const struct slc_csv_field *field, double *value)
{
    if (slc_csv_is_binary(part->table, part->table->spec->order, field->bytes)) {
        memcpy(value, field->text, sizeof *value);
        return true;
    }
    return !field->doubled && slc_csv_value(field->text, field->bytes, value);
}

/* Returns true if a field is a number, of any size. */
static bool is_number(const struct slc_csv_field *field)
{
    const char *at = field->text, *end = at + field->bytes;
    double value;

    while (at < end && *at == ' ') {
        at++;
    }
    while (end > at && end[-1] == ' ') {
        end--;
    }
    return !field->doubled && at < end && slc_parse_f64(at, end, &value) == end;
}

/* Parses the index of a mode. For consecutive bins, stores the bin number in two's complement. */
static enum slc_status read_index(struct slc_csv_part *part,
                                  unsigned m,
                                  const struct slc_csv_field *field,
                                  uint64_t *index,
                                  struct slc_error *err)
{
    const struct slc_csv_item *item = &part->table->spec->items[m];
    struct slc_time time;
    int64_t bin = 0;

    switch (item->rule) {
    case SLC_CSV_INTEGER:
        if (field->doubled || !slc_csv_integer(field->text, field->bytes, index)) {
            return wrong_field(part, m, field, "an integer from 0 to 2^62 - 1", err);
        }
        bin = (int64_t)*index;
        break;
    case SLC_CSV_TIME:
        if (slc_csv_is_binary(part->table, m, field->bytes)) {
            memcpy(&time, field->text, sizeof time);
            part->days[m] = (struct slc_time_range){INT32_MIN, INT32_MAX};
            bin = slc_time_bin(item->unit, &time);
            break;
        }
        if (field->doubled || !slc_csv_time(field->text, field->bytes, &time)) {
            return wrong_field(
                part, m, field,
                field->bytes >= LONG_SECONDS
                    ? "a time such as 2023-04-01, or seconds since 1970 (divide milliseconds by "
                      "1000, and microseconds by 1000000)"
                    : "a time such as 2023-04-01, 2023-04-01 13:45:30 or seconds since 1970",
                err);
        }
        bin = slc_time_bin(item->unit, &time);
        slc_time_range_add(&part->days[m], field->text, field->bytes, &time);
        break;
    default:
        if (field->doubled || !slc_csv_bin(item, field->text, field->bytes, &bin)) {
            return wrong_field(part, m, field,
                               !is_number(field) ? "a number"
                               : item->rule == SLC_CSV_LOG
                                   ? "a number from 2.3e-308 to 1.8e308"
                                   : "a number within 2^52 bins of ORIGIN: increase WIDTH",
                               err);
        }
    }
    if (bin < part->table->floor[m]) {
        return wrong_field(
            part, m, field,
            "no value below the first bin of the store, because its indices keep their "
            "numbers: convert all tables together",
            err);
    }
    *index = (uint64_t)bin;
    part->lowest[m] = bin < part->lowest[m] ? bin : part->lowest[m];
    part->highest[m] = bin > part->highest[m] ? bin : part->highest[m];
    return SLC_OK;
}

/* Writes the number of a string to the row of the string. */
static void
write_number(const struct slc_csv_part *part, const struct slc_csv_key *key, uint64_t number)
{
    const struct slc_csv_table *table = part->table;

    slc_csv_write_index(part->rows + table->row_bytes * key->row + table->offsets[key->mode],
                        table->widths[key->mode], number);
}

/* Looks up a string, and appends it to the keys if it has no number yet. */
static void look_up(struct slc_csv_part *part, unsigned m, struct slc_csv_field *field)
{
    struct slc_csv_key key = {.row = part->row_count,
                              .line = (uint32_t)part->lines + field->line,
                              .column = field->column,
                              .mode = m};
    uint64_t number;

    if (field->doubled) {
        /* The field is unquoted in place, because the result is shorter. Afterwards it has no
         * doubled quotes. */
        field->bytes =
            slc_csv_unquote(field, part->text + (field->text - part->text), field->bytes);
        field->doubled = false;
    }
    key.key = (struct slc_dictionary_key){.hash = slc_dictionary_hash(field->text, field->bytes),
                                          .at = (uint32_t)(field->text - part->text),
                                          .bytes = (uint32_t)field->bytes};
    slc_csv_look_up(part->table, m, part->text, &key.key, 1, &number);
    if (number == UINT64_MAX) {
        part->keys[part->key_count++] = key;
    } else {
        write_number(part, &key, number);
    }
}

/* Checks for missing fields. If the record has one, sets *skip, makes the field empty, or fails, as
 * the specification requires. */
static enum slc_status
check_missing(const struct slc_csv_part *part, bool *skip, struct slc_error *err)
{
    const struct slc_csv_spec *spec = part->table->spec;

    *skip = false;
    for (unsigned m = 0; m <= spec->order; m++) {
        struct slc_csv_field *field =
            part->table->at[m] < part->table->columns ? &part->fields[part->table->at[m]] : NULL;
        const bool strings = m < spec->order && spec->items[m].rule == SLC_CSV_STRINGS;

        if (field == NULL ||
            (field->bytes > 0 && (slc_csv_is_binary(part->table, m, field->bytes) ||
                                  !slc_csv_is_null(spec, field->text, field->bytes)))) {
            continue;
        }
        *skip = *skip || spec->missing == SLC_CSV_MISSING_SKIP;
        if (spec->missing == SLC_CSV_MISSING_ERROR ||
            (spec->missing == SLC_CSV_MISSING_NAME && !strings)) {
            (void)wrong_field(part, m, field,
                              spec->missing_fixed
                                  ? "a nonempty field, as in the table of the store; remove the row"
                              : strings ? "a nonempty field; skip omits such rows, name accepts "
                                          "the empty string as a name"
                                        : "a nonempty field; skip omits such rows",
                              err);
            slc_error_set_field(err, spec->missing_fixed ? SLC_FIELD_NONE : SLC_FIELD_MISSING);
            return SLC_ERR_INPUT;
        }
        *field = (struct slc_csv_field){
            .text = field->text, .line = field->line, .column = field->column};
    }
    return SLC_OK;
}

/* Translates the record that was scanned last. */
static enum slc_status
translate_record(struct slc_csv_part *part, unsigned count, struct slc_error *err)
{
    const struct slc_csv_table *table = part->table;
    const struct slc_csv_spec *spec = table->spec;
    uint8_t *row = part->rows + table->row_bytes * part->row_count;
    double value = 1;
    bool skip;
    enum slc_status status;

    if (count != table->columns) {
        status =
            slc_fail(err, SLC_ERR_INPUT, "the row has %u fields, expected %u as in the first line",
                     count, table->columns);
        slc_error_locate_text(err, table->name, part->lines, 1);
        return status;
    }
    status = check_missing(part, &skip, err);
    part->records++;
    part->skipped += skip;
    for (unsigned m = 0; m < spec->order && status == SLC_OK && !skip; m++) {
        struct slc_csv_field *field = &part->fields[table->at[m]];
        uint64_t index = 0;

        if (spec->items[m].rule == SLC_CSV_STRINGS) {
            look_up(part, m, field);
        } else {
            status = read_index(part, m, field, &index, err);
            slc_csv_write_index(row + table->offsets[m], table->widths[m], index);
        }
    }
    if (status != SLC_OK || skip) {
        return status;
    }
    if (spec->value[0] != '\0' &&
        !parse_value(part, &part->fields[table->at[spec->order]], &value)) {
        return wrong_field(part, spec->order, &part->fields[table->at[spec->order]],
                           is_number(&part->fields[table->at[spec->order]])
                               ? "a number below 1.8e308"
                               : "a finite number",
                           err);
    }
    slc_store_u64(row + table->offsets[spec->order], slc_bits_f64(value));
    part->row_count++;
    return SLC_OK;
}

static enum slc_status scan_fault(const struct slc_csv_part *part,
                                  enum slc_csv_scan scan,
                                  unsigned count,
                                  struct slc_error *err)
{
    const struct slc_csv_field *field = &part->fields[count - 1];
    enum slc_status status;

    switch (scan) {
    case SLC_CSV_WIDE:
        status = slc_fail(err, SLC_ERR_INPUT, "the row has more than %d fields",
                          (int)SLC_CSV_COLUMNS_MAX);
        break;
    case SLC_CSV_AFTER_QUOTE:
        status = slc_fail(err, SLC_ERR_INPUT,
                          "text after a closing quote: expected a delimiter or the end of the "
                          "line; write a quote inside a field twice");
        break;
    case SLC_CSV_UNCLOSED:
        status =
            slc_fail(err, SLC_ERR_INPUT,
                     "the quote that begins this field is not closed before the end of the file");
        break;
    default:
        status = slc_fail(err, SLC_ERR_INPUT,
                          "a record of more than %d bytes: perhaps a quote in it is not closed",
                          (int)SLC_CSV_RECORD_BYTES_MAX);
    }
    return located(part, status, field, err);
}

/* Like slc_csv_next_record, for a table with a feed. */
static bool render_record(struct slc_csv_part *part, unsigned *count, size_t *end)
{
    const struct slc_csv_table *table = part->table;

    if (table->feed->render(table->feed->context, part, 1) == 0) {
        return false;
    }
    for (unsigned m = 0; m <= table->spec->order && table->at[m] != UINT_MAX; m++) {
        const uint32_t *starts = part->starts + table->at[m];

        part->fields[table->at[m]] = (struct slc_csv_field){.text = part->text + starts[0],
                                                            .bytes = starts[1] - 1 - starts[0],
                                                            .column = table->numbers[m]};
    }
    *count = table->columns;
    *end = part->position + 1;
    part->record_lines = 1;
    return true;
}

bool slc_csv_next_record(struct slc_csv_part *part, unsigned *count, size_t *end)
{
    const size_t begin = part->position;
    /* Limit the search to the maximum length of a record, so that the reported fault does not
     * depend on where the text was cut. */
    const size_t most = slc_min_u64(begin + SLC_CSV_RECORD_BYTES_MAX + 1, part->bytes);
    uint32_t lines;

    if (begin == part->bytes) {
        return false;
    }
    if (part->table->feed != NULL) {
        return render_record(part, count, end);
    }
    *end = begin;
    enum slc_csv_scan scan = slc_csv_scan(part->text, most, part->last && most == part->bytes,
                                          part->table->delimiter, end, part->fields, count, &lines);
    scan = *end - begin > SLC_CSV_RECORD_BYTES_MAX ? SLC_CSV_PARTIAL : scan;
    if (scan != SLC_CSV_RECORD) {
        part->fault.status = scan_fault(part, scan, *count, &part->fault);
        return false;
    }
    part->record_lines = lines;
    if (*count == 1 && part->fields[0].bytes == 0 && part->text[begin] != '"') {
        *count = 0;
    }
    return true;
}

void slc_csv_pass_record(struct slc_csv_part *part, size_t end)
{
    part->position = end;
    part->lines += part->record_lines;
}

void slc_csv_translate(struct slc_csv_part *part)
{
    const unsigned order = part->table->spec->order;
    const uint32_t row_limit = (uint32_t)(SLC_CSV_ROWS_BYTES / part->table->row_bytes);
    uint64_t capacity;
    size_t end;
    unsigned count;

    while ((capacity = slc_min_u64(row_limit - part->row_count,
                                   (SLC_CSV_KEYS - part->key_count) / order)) > 0) {
        if (slc_csv_translate_batch(part, (unsigned)capacity)) {
            continue;
        }
        /* The last batch may have used the remaining space. */
        if (part->row_count == row_limit || part->key_count + order > SLC_CSV_KEYS) {
            break;
        }
        if (!slc_csv_next_record(part, &count, &end) ||
            (count > 0 && translate_record(part, count, &part->fault) != SLC_OK)) {
            break;
        }
        slc_csv_pass_record(part, end);
    }
}

enum slc_status slc_csv_commit(struct slc_csv_part *part, uint64_t line, struct slc_error *err)
{
    const struct slc_csv_table *table = part->table;

    for (unsigned i = 0; i < part->key_count; i++) {
        const struct slc_csv_key *key = &part->keys[i];
        uint64_t number;

        if (i + AHEAD < part->key_count) {
            const struct slc_csv_key *later = key + AHEAD;

            slc_dictionary_expect(table->dictionaries[later->mode], &later->key);
        }
        enum slc_status status =
            slc_dictionary_add(table->dictionaries[key->mode], part->text, &key->key, &number, err);
        if (status != SLC_OK) {
            struct slc_error fault = err != NULL ? *err : (struct slc_error)SLC_ERROR_INIT;

            if (status == SLC_ERR_INPUT) {
                slc_error_clear(err);
                (void)slc_fail(err, status, "column %s has %s", column_name(part, key->mode),
                               fault.message);
            }
            if (status == SLC_ERR_INPUT || status == SLC_ERR_BUDGET) {
                slc_error_locate_text(err, table->name, line + key->line, key->column);
            }
            return status;
        }
        write_number(part, key, number);
    }
    if (part->fault.status != SLC_OK) {
        part->fault.line += line;
        if (err != NULL) {
            *err = part->fault;
        }
    }
    return part->fault.status;
}
