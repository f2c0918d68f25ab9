/* See sheet.h. */
#include "convert/sheet_internal.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "convert/number.h"
#include "convert/sheet_record.h"
#include "storage/names.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    ROW_BYTES_MAX = 8 * (SLC_MAX_ORDER + 1),
    ROWS_BYTES = 64 << 10, /* written at a time */
    RECORD_BYTES_MAX = 1 << 20,
    NUMBER_BYTES = 64, /* of the longest field that is a number or a time */
    /* Numbers of consecutive bins, each of which gets a name. */
    BINS_MAX = 1 << 26
};

/* While the table is read. */
struct reading {
    const struct slc_sheet_request *request;
    const struct slc_sheet_spec *spec;
    struct slc_sheet *sheet;
    struct slc_input_info info;
    struct slc_sheet_report *report;
    struct slc_spool *spool;
    struct slc_sheet_field *fields;
    unsigned columns;
    unsigned at[SLC_MAX_ORDER + 1]; /* columns of modes and value; UINT_MAX: rows are counted */
    char delimiter;
    uint64_t line; /* where the record begins */
    uint64_t room_bytes;
    int64_t lowest[SLC_MAX_ORDER], highest[SLC_MAX_ORDER];
    size_t row_bytes, rows_bytes;
    uint8_t rows[ROWS_BYTES];
};

static bool is_consecutive(const struct slc_sheet_item *item)
{
    return item->rule == SLC_SHEET_BIN || item->rule == SLC_SHEET_LOG ||
           (item->rule == SLC_SHEET_TIME && slc_time_cycle(item->unit) == 0);
}

static const char *column_name(const struct reading *reading, unsigned m)
{
    return m < reading->spec->order ? reading->spec->items[m].column : reading->spec->value;
}

/* Adds where a field is. */
static enum slc_status located(const struct reading *reading,
                               enum slc_status status,
                               const struct slc_sheet_field *field,
                               struct slc_error *err)
{
    slc_error_locate_text(err, reading->info.name, reading->line + field->line, field->column);
    return status;
}

/* A field that is not what its column should have. */
static enum slc_status wrong_field(const struct reading *reading,
                                   unsigned m,
                                   const struct slc_sheet_field *field,
                                   const char *expected,
                                   struct slc_error *err)
{
    char shown[41];
    const size_t bytes = slc_sheet_unquote(field, shown, sizeof shown - 1);

    shown[bytes] = '\0';
    for (size_t i = 0; i < bytes; i++) {
        shown[i] = (unsigned char)shown[i] < ' ' || shown[i] == 127 ? '?' : shown[i];
    }
    return located(reading,
                   slc_fail(err, SLC_ERR_INPUT, "column %s has '%s'%s, expected %s",
                            column_name(reading, m), shown, field->bytes > bytes ? ".." : "",
                            expected),
                   field, err);
}

/* A number's or a time's text without blanks around it; false where it is too long for one. */
static bool short_text(const struct slc_sheet_field *field, char text[NUMBER_BYTES], size_t *bytes)
{
    size_t begin = 0;

    if (field->bytes > NUMBER_BYTES || field->doubled) {
        return false;
    }
    *bytes = field->bytes;
    while (begin < *bytes && field->text[begin] == ' ') {
        begin++;
    }
    while (*bytes > begin && field->text[*bytes - 1] == ' ') {
        (*bytes)--;
    }
    *bytes -= begin;
    memcpy(text, field->text + begin, *bytes);
    return true;
}

static bool parse_value(const struct slc_sheet_field *field, double *value)
{
    char text[NUMBER_BYTES];
    size_t bytes;

    return short_text(field, text, &bytes) && bytes > 0 &&
           slc_parse_f64(text, text + bytes, value) == text + bytes && isfinite(*value);
}

/* The index of a mode, of consecutive bins their number as two's complement. */
static enum slc_status read_index(struct reading *reading,
                                  unsigned m,
                                  const struct slc_sheet_field *field,
                                  uint64_t *index,
                                  struct slc_error *err)
{
    const struct slc_sheet_item *item = &reading->spec->items[m];
    char text[NUMBER_BYTES];
    int64_t bin = 0, seconds;
    double value;
    size_t bytes;

    switch (item->rule) {
    case SLC_SHEET_INTEGER:
        if (!short_text(field, text, &bytes) || bytes == 0 ||
            slc_parse_index(text, text + bytes, index) != text + bytes ||
            *index >= SLC_MAX_MODE_LENGTH) {
            return wrong_field(reading, m, field, "an integer from 0 on", err);
        }
        bin = (int64_t)*index;
        break;
    case SLC_SHEET_TIME:
        if (!short_text(field, text, &bytes) || !slc_time_parse(text, bytes, &seconds)) {
            return wrong_field(reading, m, field,
                               "a time as 2023-04-01, 2023-04-01 13:45:30 or seconds since 1970",
                               err);
        }
        bin = slc_time_bin(item->unit, seconds);
        break;
    default:
        if (!parse_value(field, &value) || !slc_sheet_bin(item, value, &bin)) {
            return wrong_field(reading, m, field,
                               item->rule == SLC_SHEET_LOG ? "a number above 0" : "a number", err);
        }
    }
    *index = (uint64_t)bin;
    reading->lowest[m] = bin < reading->lowest[m] ? bin : reading->lowest[m];
    reading->highest[m] = bin > reading->highest[m] ? bin : reading->highest[m];
    return SLC_OK;
}

static enum slc_status read_string(struct reading *reading,
                                   unsigned m,
                                   const struct slc_sheet_field *field,
                                   uint64_t *index,
                                   struct slc_error *err)
{
    struct slc_dictionary *dictionary = reading->sheet->dictionaries[m];
    char plain[SLC_NAME_BYTES_MAX + 1];
    const char *text = field->text;
    size_t bytes = field->bytes;
    enum slc_status status;

    if (field->doubled) {
        bytes = slc_sheet_unquote(field, plain, sizeof plain);
        text = plain;
    }
    status = slc_dictionary_find(dictionary, text, bytes, index, err);
    return status == SLC_ERR_INPUT || status == SLC_ERR_BUDGET
               ? located(reading, status, field, err)
               : status;
}

static enum slc_status write_rows(struct reading *reading, struct slc_error *err)
{
    enum slc_status status =
        slc_spool_append(reading->spool, reading->rows, reading->rows_bytes, err);

    reading->rows_bytes = 0;
    return status;
}

/* Whether the record is to be left out; an error where it lacks something and must not. */
static enum slc_status
check_missing(const struct reading *reading, bool *skip, struct slc_error *err)
{
    const struct slc_sheet_spec *spec = reading->spec;

    *skip = false;
    for (unsigned m = 0; m <= spec->order; m++) {
        const struct slc_sheet_field *field =
            reading->at[m] < reading->columns ? &reading->fields[reading->at[m]] : NULL;

        if (field == NULL || field->bytes > 0) {
            continue;
        }
        *skip = *skip || spec->missing == SLC_SHEET_MISSING_SKIP;
        if (spec->missing == SLC_SHEET_MISSING_ERROR) {
            return wrong_field(reading, m, field,
                               "a field that is not empty; --missing skip leaves such rows out, "
                               "--missing name makes an empty string a name like others",
                               err);
        }
    }
    return SLC_OK;
}

/* Translates the record that is in the fields. */
static enum slc_status take_record(struct reading *reading, unsigned count, struct slc_error *err)
{
    const struct slc_sheet_spec *spec = reading->spec;
    uint8_t row[ROW_BYTES_MAX];
    double value = 1;
    bool skip;
    enum slc_status status;

    if (count != reading->columns) {
        status = slc_fail(err, SLC_ERR_INPUT, "%u fields, expected %u as in the first line", count,
                          reading->columns);
        slc_error_locate_text(err, reading->info.name, reading->line, 1);
        return status;
    }
    status = check_missing(reading, &skip, err);
    reading->report->rows++;
    reading->report->skipped += skip;
    for (unsigned m = 0; m < spec->order && status == SLC_OK && !skip; m++) {
        const struct slc_sheet_field *field = &reading->fields[reading->at[m]];
        uint64_t index = 0;

        status = spec->items[m].rule == SLC_SHEET_STRINGS
                     ? read_string(reading, m, field, &index, err)
                     : read_index(reading, m, field, &index, err);
        slc_store_u64(row + 8 * (size_t)m, index);
    }
    if (status != SLC_OK || skip) {
        return status;
    }
    if (spec->value[0] != '\0' &&
        !parse_value(&reading->fields[reading->at[spec->order]], &value)) {
        return wrong_field(reading, spec->order, &reading->fields[reading->at[spec->order]],
                           "a finite number", err);
    }
    slc_store_u64(row + 8 * (size_t)spec->order, slc_bits_f64(value));
    memcpy(reading->rows + reading->rows_bytes, row, reading->row_bytes);
    reading->rows_bytes += reading->row_bytes;
    return reading->rows_bytes + reading->row_bytes > ROWS_BYTES ? write_rows(reading, err)
                                                                 : SLC_OK;
}

/* The column that the header or, without one, its number calls so; `nearest` gets the next best. */
static unsigned find_column(
    const struct reading *reading, const char *name, unsigned count, char *nearest, bool *twice)
{
    unsigned found = UINT_MAX, least = (unsigned)strlen(name) / 3 + 2;

    nearest[0] = '\0';
    *twice = false;
    for (unsigned i = 0; i < count; i++) {
        char own[SLC_SHEET_NAME_BYTES];
        unsigned distance;

        if (reading->spec->no_header) {
            (void)snprintf(own, sizeof own, "%u", i + 1);
        } else {
            own[slc_sheet_unquote(&reading->fields[i], own, sizeof own - 1)] = '\0';
        }
        if (strcmp(own, name) == 0) {
            *twice = *twice || found != UINT_MAX;
            found = i;
        } else if (found == UINT_MAX && !reading->spec->no_header &&
                   (distance = slc_sheet_distance(own, name)) < least) {
            least = distance;
            memcpy(nearest, own, sizeof own);
        }
    }
    return found;
}

/* Finds the columns by the first record. */
static enum slc_status take_header(struct reading *reading, unsigned count, struct slc_error *err)
{
    const struct slc_sheet_spec *spec = reading->spec;

    reading->columns = count;
    for (unsigned m = 0; m <= spec->order; m++) {
        char nearest[SLC_SHEET_NAME_BYTES];
        enum slc_status status;
        bool twice;

        reading->at[m] = UINT_MAX;
        if (m == spec->order && spec->value[0] == '\0') {
            break;
        }
        reading->at[m] = find_column(reading, column_name(reading, m), count, nearest, &twice);
        if (reading->at[m] != UINT_MAX && !twice) {
            continue;
        }
        status = slc_fail(err, SLC_ERR_USAGE, "%s column '%s' among the %u of the first line%s%s%s",
                          twice ? "more than one" : "no", column_name(reading, m), count,
                          nearest[0] != '\0' && !twice ? "; there is '" : "", twice ? "" : nearest,
                          nearest[0] != '\0' && !twice ? "'" : "");
        slc_error_locate_text(err, reading->info.name, reading->line, 1);
        return status;
    }
    return SLC_OK;
}

static enum slc_status scan_fault(const struct reading *reading,
                                  enum slc_sheet_scan scan,
                                  unsigned count,
                                  struct slc_error *err)
{
    const struct slc_sheet_field *field = &reading->fields[count - 1];
    enum slc_status status;

    switch (scan) {
    case SLC_SHEET_WIDE:
        status = slc_fail(err, SLC_ERR_INPUT, "more than %d fields", (int)SLC_SHEET_COLUMNS_MAX);
        break;
    case SLC_SHEET_AFTER_QUOTE:
        status = slc_fail(err, SLC_ERR_INPUT,
                          "a field in quotes goes on behind them: expected a delimiter or the end "
                          "of the line; a quote within is written twice");
        break;
    case SLC_SHEET_UNCLOSED:
        status = slc_fail(err, SLC_ERR_INPUT,
                          "the quote that begins this field is not closed before the file ends");
        break;
    default:
        status = slc_fail(err, SLC_ERR_INPUT,
                          "a record of more than %d bytes: is a quote in it not closed?",
                          (int)RECORD_BYTES_MAX);
    }
    return located(reading, status, field, err);
}

/* Records from text[*at] on, as far as they are whole. */
static enum slc_status
take_records(struct reading *reading, size_t filled, bool last, size_t *at, struct slc_error *err)
{
    const char *text = reading->request->room;
    enum slc_status status = SLC_OK;

    while (status == SLC_OK && *at < filled) {
        unsigned count;
        uint32_t lines;
        const size_t begin = *at;
        const enum slc_sheet_scan scan = slc_sheet_scan(text, filled, last, reading->delimiter, at,
                                                        reading->fields, &count, &lines);

        if (scan == SLC_SHEET_PARTIAL && filled - *at <= RECORD_BYTES_MAX) {
            return SLC_OK;
        }
        if (scan != SLC_SHEET_RECORD || *at - begin > RECORD_BYTES_MAX) {
            return scan_fault(reading, scan == SLC_SHEET_RECORD ? SLC_SHEET_PARTIAL : scan, count,
                              err);
        }
        /* An empty line is no record. */
        if (count > 1 || reading->fields[0].bytes > 0 || text[begin] == '"') {
            const bool first = reading->columns == 0;

            if (first) {
                status = take_header(reading, count, err);
            }
            if (status == SLC_OK && (!first || reading->spec->no_header)) {
                status = take_record(reading, count, err);
            }
        }
        reading->line += lines;
    }
    return status;
}

static enum slc_status read_table(struct reading *reading, struct slc_error *err)
{
    const struct slc_sheet_request *request = reading->request;
    char *text = request->room;
    size_t filled = 0, got = 1;
    bool first = true;
    enum slc_status status = SLC_OK;

    while (status == SLC_OK && got > 0) {
        size_t at = 0;

        status =
            slc_input_read(request->input, text + filled, request->room_bytes - filled, &got, err);
        if (status != SLC_OK) {
            break;
        }
        filled += got;
        if (first && filled >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
            at = 3;
        }
        first = false;
        status = take_records(reading, filled, got == 0, &at, err);
        filled -= at;
        memmove(text, text + at, filled);
        if (request->progress) {
            request->progress(request->context, "parse", slc_input_consumed(request->input),
                              reading->info.stored_bytes);
        }
    }
    if (status == SLC_OK) {
        status = slc_input_check(request->input, err);
    }
    return status == SLC_OK ? write_rows(reading, err) : status;
}

static bool is_tab_separated(const char *name)
{
    static const char *const packed[] = {"", ".gz", ".bz2", ".xz", ".zst", ".lz4"};
    const size_t length = strlen(name);

    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        const size_t suffix = strlen(packed[i]) + 4;

        if (length > suffix && strcmp(name + length - suffix + 4, packed[i]) == 0 &&
            (strncmp(name + length - suffix, ".tsv", 4) == 0 ||
             strncmp(name + length - suffix, ".tab", 4) == 0)) {
            return true;
        }
    }
    return false;
}

/* What the modes turned out to be. */
static enum slc_status settle_modes(struct reading *reading, struct slc_error *err)
{
    struct slc_sheet *sheet = reading->sheet;
    enum slc_status status = SLC_OK;
    uint64_t named = 0;

    if (reading->report->rows == reading->report->skipped) {
        status = slc_fail(err, SLC_ERR_INPUT, "no rows%s",
                          reading->report->rows > 0 ? " without empty fields" : "");
        slc_error_locate_file(err, reading->info.name);
        return status;
    }
    for (unsigned m = 0; m < sheet->spec->order && status == SLC_OK; m++) {
        const struct slc_sheet_item *item = &sheet->spec->items[m];
        const uint64_t span = (uint64_t)reading->highest[m] - (uint64_t)reading->lowest[m] + 1;

        if (item->rule == SLC_SHEET_STRINGS) {
            status = slc_dictionary_finish(sheet->dictionaries[m], err);
            sheet->dims[m] = slc_dictionary_count(sheet->dictionaries[m]);
            reading->report->spooled_bytes += slc_dictionary_bytes(sheet->dictionaries[m]);
        } else if (is_consecutive(item)) {
            sheet->lowest[m] = reading->lowest[m];
            sheet->dims[m] = span;
            if (span > BINS_MAX) {
                status = slc_fail(err, SLC_ERR_INPUT,
                                  "%s makes %" PRIu64 " bins from the lowest to the highest: at "
                                  "most %d are possible",
                                  item->title, span, (int)BINS_MAX);
                slc_error_locate_file(err, reading->info.name);
            }
        } else {
            sheet->dims[m] = item->rule == SLC_SHEET_TIME ? slc_time_cycle(item->unit)
                                                          : (uint64_t)reading->highest[m] + 1;
        }
        named = slc_max_u64(named, sheet->dims[m]);
    }
    reading->report->memory_bytes =
        sheet->spec->order * (uint64_t)SLC_DICTIONARY_BESIDE_BYTES + slc_names_memory_bytes(named);
    return status;
}

/* The temporary file of rows as a binary tensor. Takes over the spool. */
static enum slc_status open_rows(struct reading *reading,
                                 struct slc_text_header *header,
                                 struct slc_row_source **source,
                                 struct slc_error *err)
{
    const struct slc_sheet *sheet = reading->sheet;
    const unsigned order = sheet->spec->order;
    const uint64_t nnz = reading->report->rows - reading->report->skipped;
    struct slc_spool *spool = reading->spool;
    struct slc_binary binary = {
        .dialect = SLC_DIALECT_CSV, .order = order, .has_dims = true, .nnz = nnz, .band_count = 1};

    reading->spool = NULL;
    binary.bands[0] = (struct slc_band){.view = {.files = sheet->files,
                                                 .fd = slc_spool_fd(spool),
                                                 .name = reading->info.name,
                                                 .bytes = slc_spool_bytes(spool)},
                                        .record_bytes = (uint32_t)reading->row_bytes};
    for (unsigned m = 0; m <= order; m++) {
        binary.fields[m] =
            (struct slc_field){.kind = m < order ? SLC_FIELD_UNSIGNED : SLC_FIELD_FLOAT,
                               .bytes = 8,
                               .offset = 8 * m,
                               .origin = m < order ? (uint64_t)sheet->lowest[m] : 0};
    }
    memcpy(binary.dims, sheet->dims, sizeof binary.dims);
    *header = (struct slc_text_header){.dialect = SLC_DIALECT_CSV,
                                       .order = order,
                                       .has_dims = true,
                                       .has_nnz = true,
                                       .nnz = nnz,
                                       .has_values = true};
    memcpy(header->dims, sheet->dims, sizeof header->dims);
    return slc_binary_source_open(&binary, spool, reading->info.name, reading->info.stored_bytes,
                                  header, source, err);
}

/* Files and memory for all there will be. */
static enum slc_status prepare(struct reading *reading, struct slc_error *err)
{
    const struct slc_sheet_spec *spec = reading->spec;
    struct slc_dictionary_options options = {.spool = reading->request->spool,
                                             .room_bytes = &reading->room_bytes};
    unsigned strings = 0;
    enum slc_status status = slc_spool_create(&options.spool, &reading->spool, err);

    for (unsigned m = 0; m < spec->order; m++) {
        strings += spec->items[m].rule == SLC_SHEET_STRINGS;
        reading->lowest[m] = INT64_MAX;
        reading->highest[m] = INT64_MIN;
    }
    options.text_bytes = strings > 0 ? reading->request->memory_bytes / 4 / strings : 0;
    options.text_bytes = slc_max_u64(options.text_bytes, SLC_DICTIONARY_BESIDE_BYTES);
    reading->room_bytes = reading->request->memory_bytes / 4 * 3;
    for (unsigned m = 0; m < spec->order && status == SLC_OK; m++) {
        if (spec->items[m].rule == SLC_SHEET_STRINGS) {
            status = slc_dictionary_create(&options, &reading->sheet->dictionaries[m], err);
        }
    }
    return status;
}

enum slc_status slc_sheet_open(const struct slc_sheet_request *request,
                               struct slc_text_header *header,
                               struct slc_sheet **sheet,
                               struct slc_row_source **source,
                               struct slc_sheet_report *report,
                               struct slc_error *err)
{
    struct reading *reading = slc_calloc(1, sizeof *reading);
    enum slc_status status = SLC_OK;

    *source = NULL;
    *report = (struct slc_sheet_report){.rows = 0};
    *sheet = slc_calloc(1, sizeof **sheet);
    if (reading != NULL) {
        reading->fields = slc_malloc(SLC_SHEET_COLUMNS_MAX * sizeof *reading->fields);
    }
    if (reading == NULL || *sheet == NULL || reading->fields == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory to read a table");
        goto done;
    }
    (*sheet)->spec = request->spec;
    (*sheet)->files = slc_files_or_system(request->spool.files);
    reading->request = request;
    reading->spec = request->spec;
    reading->sheet = *sheet;
    reading->report = report;
    reading->line = 1;
    reading->row_bytes = 8 * ((size_t)request->spec->order + 1);
    slc_input_info(request->input, &reading->info);
    reading->delimiter = request->spec->delimiter               ? request->spec->delimiter
                         : is_tab_separated(reading->info.name) ? '\t'
                                                                : ',';
    status = prepare(reading, err);
    if (status == SLC_OK) {
        status = read_table(reading, err);
    }
    if (status == SLC_OK) {
        status = settle_modes(reading, err);
    }
    if (status == SLC_OK) {
        report->spooled_bytes += slc_spool_bytes(reading->spool);
        status = open_rows(reading, header, source, err);
    }

done:
    if (reading != NULL) {
        slc_spool_destroy(reading->spool);
        slc_free(reading->fields);
        slc_free(reading);
    }
    return status;
}

void slc_sheet_destroy(struct slc_sheet *sheet)
{
    for (unsigned m = 0; sheet != NULL && m < SLC_MAX_ORDER; m++) {
        slc_dictionary_destroy(sheet->dictionaries[m]);
    }
    slc_free(sheet);
}
