#include "convert/ingest/csv/csv_internal.h"

#include "base/error/log.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "convert/ingest/csv/csv_remember.h"
#include "storage/manifest/names.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Maximum number of bins of a mode. The number is limited because each bin has a name. */
enum { BINS_MAX = 1 << 26 };

/* State while the table is read. */
struct opening {
    const struct slc_csv_request *request;
    struct slc_csv *csv;
    struct slc_csv_report *report;
    struct slc_csv_reading reading;
    uint64_t left_bytes;
};

enum slc_status slc_csv_check_bins(const struct slc_csv_item *item,
                                   uint64_t span,
                                   const char *name,
                                   struct slc_error *err)
{
    return span <= BINS_MAX || !slc_csv_is_consecutive(item)
               ? SLC_OK
               : slc_fail_file(err, SLC_ERR_INPUT, name,
                               "%s makes %" PRIu64
                               " bins from the lowest to the highest: at most %d are supported",
                               item->title, span, (int)BINS_MAX);
}

static bool has_byte(const struct slc_csv_field *field, char byte)
{
    return memchr(field->text, byte, field->bytes) != NULL;
}

/* Finds a column by its name in the header or, without a header, by its number. Sets `nearest` to
 * the most similar name. */
static unsigned find_column(const struct slc_csv_spec *spec,
                            const struct slc_csv_field *fields,
                            unsigned count,
                            const char *name,
                            char *nearest,
                            bool *twice)
{
    unsigned found = UINT_MAX, least = (unsigned)strlen(name) / 3 + 2;

    nearest[0] = '\0';
    *twice = false;
    for (unsigned i = 0; i < count; i++) {
        char own[SLC_CSV_NAME_BYTES];
        unsigned distance;

        if (spec->no_header) {
            (void)snprintf(own, sizeof own, "%u", i + 1);
        } else if (has_byte(&fields[i], '\0')) {
            continue;
        } else {
            own[slc_csv_unquote(&fields[i], own, sizeof own - 1)] = '\0';
        }
        if (strcmp(own, name) == 0) {
            *twice = *twice || found != UINT_MAX;
            found = i;
        } else if (found == UINT_MAX && !spec->no_header &&
                   (distance = slc_csv_distance(own, name)) < least) {
            least = distance;
            memcpy(nearest, own, sizeof own);
        }
    }
    return found;
}

/* Lists the columns of the first line, as many as fit. */
static void
list_columns(const struct slc_csv_field *fields, unsigned count, char *text, size_t capacity)
{
    size_t used = 0;

    for (unsigned i = 0; i < count; i++) {
        char name[33];

        name[slc_csv_unquote(&fields[i], name, sizeof name - 1)] = '\0';
        if (used + strlen(name) + sizeof "; there are '', .." > capacity) {
            (void)snprintf(text + used, capacity - used, ", ..");
            break;
        }
        used += (size_t)snprintf(text + used, capacity - used, "%s'%s'",
                                 i == 0 ? "; there are " : ", ", name);
    }
}

/* Adds advice to the message that the first line lacks a column: a probable cause, or the most
 * similar column and the list of all columns. */
static enum slc_error_field advise_columns(const struct slc_csv_spec *spec,
                                           const struct slc_csv_field *fields,
                                           unsigned count,
                                           const char *nearest,
                                           char *text,
                                           size_t capacity)
{
    static const char others[] = ";\t|,";
    const struct slc_csv_field *first = &fields[0];
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        if (has_byte(&fields[i], '\r')) {
            (void)snprintf(text, capacity,
                           "; lines end in CR alone: convert them with tr '\\r' '\\n'");
            return SLC_FIELD_NONE;
        }
        if (has_byte(&fields[i], '\0')) {
            (void)snprintf(text, capacity, "; the name of column %u has a zero byte", i + 1);
            return SLC_FIELD_NONE;
        }
    }
    for (const char *other = others; count == 1 && *other != '\0'; other++) {
        if (*other != spec->delimiter && has_byte(first, *other)) {
            (void)snprintf(text, capacity, "; the delimiter %s%c%s would give several columns",
                           *other == '\t' ? "ta" : "'", *other == '\t' ? 'b' : *other,
                           *other == '\t' ? "" : "'");
            return SLC_FIELD_DELIMITER;
        }
    }
    if (spec->no_header) {
        (void)snprintf(text, capacity, "; without a header, columns are called 1 to %u", count);
        return SLC_FIELD_NONE;
    }
    if (nearest[0] != '\0') {
        used = (size_t)snprintf(text, capacity, "; the most similar is '%s'", nearest);
    }
    list_columns(fields, count, text + used, capacity - used);
    return SLC_FIELD_NONE;
}

/* Records the fault that no column, or more than one column, has the name of an item. */
static enum slc_status no_column(const struct slc_csv_spec *spec,
                                 unsigned m,
                                 const struct slc_csv_field *fields,
                                 unsigned count,
                                 bool twice,
                                 const char *nearest,
                                 struct slc_error *err)
{
    const char *name = m < spec->order ? spec->items[m].column : spec->value;
    char advice[SLC_CSV_NAME_BYTES + 480];
    unsigned letters = 0;
    const char *rule = m < spec->order && !twice && spec->items[m].rule == SLC_CSV_STRINGS
                           ? slc_csv_nearest_rule(name, &letters)
                           : NULL;

    if (twice) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "more than one column '%s' among the %u columns of the table", name, count);
    }
    if (rule != NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "no column '%s' among the %u columns of the table, and no rule '%.*s': "
                        "the most similar rule is %s(NAME)",
                        name, count, (int)letters, name, rule);
    }
    enum slc_error_field field =
        advise_columns(spec, fields, count, nearest, advice, sizeof advice);
    return slc_fail_fields(
        err, SLC_ERR_USAGE, field, m == spec->order ? SLC_FIELD_VALUE_COLUMN : SLC_FIELD_NONE,
        "no column '%s' among the %u columns of the table%s%s", name, count, advice,
        m == spec->order ? "; without a column of values, rows are counted" : "");
}

enum slc_status slc_csv_bind_columns(struct slc_csv_table *table,
                                     const struct slc_csv_field *fields,
                                     unsigned count,
                                     uint64_t line,
                                     struct slc_error *err)
{
    const struct slc_csv_spec *spec = table->spec;

    table->columns = count;
    for (unsigned m = 0; m <= spec->order; m++) {
        const char *name = m < spec->order ? spec->items[m].column : spec->value;
        char nearest[SLC_CSV_NAME_BYTES];
        bool twice;

        table->at[m] = UINT_MAX;
        if (m == spec->order && spec->value[0] == '\0') {
            break;
        }
        table->at[m] = find_column(spec, fields, count, name, nearest, &twice);
        if (table->at[m] != UINT_MAX && !twice) {
            continue;
        }
        enum slc_status status = no_column(spec, m, fields, count, twice, nearest, err);
        if (table->feed != NULL) {
            slc_error_locate_file(err, table->name);
        } else {
            slc_error_locate_text(err, table->name, line, 1);
        }
        return status;
    }
    return SLC_OK;
}

/* Returns true if a file name has this suffix, optionally followed by the suffix of a compression
 * format. */
static bool has_suffix(const char *name, const char *suffix)
{
    static const char *const packed[] = {"", ".gz", ".bz2", ".xz", ".zst", ".lz4"};
    const size_t length = strlen(name);

    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        const size_t both = strlen(packed[i]) + 4;

        if (length > both && strcmp(name + length - both + 4, packed[i]) == 0 &&
            strncmp(name + length - both, suffix, 4) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_tab_separated(const char *name)
{
    return has_suffix(name, ".tsv") || has_suffix(name, ".tab");
}

bool slc_csv_is_name(const char *name)
{
    return has_suffix(name, ".csv") || is_tab_separated(name);
}

void slc_csv_table_init(struct slc_csv_table *table,
                        const struct slc_csv_spec *spec,
                        const char *name)
{
    *table = (struct slc_csv_table){.spec = spec,
                                    .name = name,
                                    .delimiter = spec->delimiter          ? spec->delimiter
                                                 : is_tab_separated(name) ? '\t'
                                                                          : ',',
                                    .index = slc_csv_index_by(NULL)};
}

void slc_csv_describe(const struct slc_csv *csv, char text[SLC_TABLE_BYTES])
{
    slc_csv_remember(csv->spec, csv->lowest, text);
}

/* Adds the strings of a mode of the old store to the dictionary of the mode. */
static enum slc_status recall_strings(struct opening *opening, unsigned m, struct slc_error *err)
{
    const struct slc_csv_old *old = opening->request->old;
    const struct slc_store_names *listed = slc_manifest_names(old->manifest, m);
    const uint64_t count = listed != NULL ? listed->count : 0;
    struct slc_names *names = NULL;
    enum slc_status status = SLC_OK;

    if (count != old->manifest->dims[m]) {
        return slc_fail_file(err, SLC_ERR_INPUT, old->store,
                             "mode %u has %" PRIu64 " indices, but only %" PRIu64
                             " have a name: the strings of the other indices are unknown",
                             m + 1, old->manifest->dims[m], count);
    }
    status = slc_names_open(opening->csv->files, old->store, listed, &names, err);
    for (uint64_t i = 0; i < count && status == SLC_OK; i++) {
        const char *name = NULL;
        size_t bytes = 0;
        uint64_t number = i;

        status = slc_names_get(names, i, &name, &bytes, err);
        SLC_THEN(status, slc_dictionary_find(opening->csv->dictionaries[m],
                                             name != NULL ? name : "", bytes, &number, err));
        if (status == SLC_OK && number != i) {
            status =
                slc_fail_file(err, SLC_ERR_INPUT, old->store,
                              "indices %" PRIu64 " and %" PRIu64 " of mode %u have the same name",
                              number + 1, i + 1, m + 1);
        }
    }
    slc_names_close(names);
    return status;
}

/* Adds the strings and bins of the old store to the table. */
static enum slc_status recall_modes(struct opening *opening, struct slc_error *err)
{
    const struct slc_csv_old *old = opening->request->old;
    struct slc_csv_table *table = &opening->reading.table;

    for (unsigned m = 0; m < table->spec->order; m++) {
        table->floor[m] = old != NULL ? old->lowest[m] : INT64_MIN;
        if (old != NULL && table->spec->items[m].rule == SLC_CSV_STRINGS) {
            SLC_TRY(recall_strings(opening, m, err));
        }
    }
    return SLC_OK;
}

/* Extends the ranges of bins to all bins of the old store, because the new table may not contain
 * them. */
static void add_old_bins(struct opening *opening)
{
    const struct slc_csv_old *old = opening->request->old;
    struct slc_csv_reading *reading = &opening->reading;

    for (unsigned m = 0; old != NULL && m < reading->table.spec->order; m++) {
        const int64_t last = old->lowest[m] + (int64_t)old->manifest->dims[m] - 1;

        reading->lowest[m] = old->lowest[m];
        reading->highest[m] = last > reading->highest[m] ? last : reading->highest[m];
    }
}

/* Warns about times that are probably not seconds since 1970. Numbers that are all in the first
 * days of 1970 are often prices or counts. Dates such as 20230401, read as seconds, are in August
 * or September 1970. */
static void
check_days(const struct slc_csv_spec *spec, unsigned m, const struct slc_time_range *days)
{
    const struct slc_csv_item *item = &spec->items[m];
    enum { DATES_FIRST = 19000101 / 86400, DATES_LAST = 21001231 / 86400 };
    const bool dates = days->first >= DATES_FIRST && days->last <= DATES_LAST;
    char first[SLC_TIME_NAME_BYTES], last[SLC_TIME_NAME_BYTES];

    if (days->first > days->last || (!dates && (days->first < -1 || days->last > 1))) {
        return;
    }
    for (unsigned n = 0; n < m; n++) {
        if (spec->items[n].rule == SLC_CSV_TIME &&
            strcmp(spec->items[n].column, item->column) == 0) {
            return; /* already warned */
        }
    }
    (void)slc_time_name(SLC_TIME_DATE, days->first, first);
    (void)slc_time_name(SLC_TIME_DATE, days->last, last);
    slc_log(SLC_LOG_WARNING,
            "%s: all times are from %s to %s, because numbers are seconds since 1970%s",
            item->title, first, last,
            dates ? "; write dates such as 20230401 as 2023-04-01"
                  : ": does the column contain times?");
}

/* Ends the look-ups of all dictionaries, then sorts the dictionaries of sorted columns; the sort
 * may use the memory of all hash tables. Strings of an old store keep their numbers. */
static enum slc_status finish_strings(struct opening *opening, struct slc_error *err)
{
    const struct slc_csv *csv = opening->csv;
    const struct slc_csv_old *old = opening->request->old;

    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned m = 0; m < csv->spec->order; m++) {
            const struct slc_csv_item *item = &csv->spec->items[m];

            if (item->rule != SLC_CSV_STRINGS || item->sorted != (turn == 1)) {
                continue;
            }
            if (!item->sorted) {
                SLC_TRY(slc_dictionary_finish(csv->dictionaries[m], err));
                continue;
            }
            SLC_TRY(slc_dictionary_finish_sorted(csv->dictionaries[m],
                                                 old != NULL ? old->manifest->dims[m] : 0, err));
            opening->report->memory_bytes +=
                slc_dictionary_labels_bytes(slc_dictionary_count(csv->dictionaries[m]));
        }
    }
    return SLC_OK;
}

/* Sets the sizes of the modes, and the offsets by which bin numbers become indices. */
static enum slc_status set_modes(struct opening *opening, struct slc_error *err)
{
    struct slc_csv *csv = opening->csv;
    enum slc_status status = SLC_OK;
    uint64_t named = 0;

    if (opening->report->rows == opening->report->skipped) {
        return slc_fail_file(err, SLC_ERR_INPUT, opening->reading.table.name,
                             "the table has no rows%s",
                             opening->report->rows > 0 ? " without empty fields" : "");
    }
    opening->report->memory_bytes = csv->spec->order * (uint64_t)SLC_DICTIONARY_FIXED_BYTES;
    SLC_TRY(finish_strings(opening, err));
    for (unsigned m = 0; m < csv->spec->order && status == SLC_OK; m++) {
        const struct slc_csv_item *item = &csv->spec->items[m];
        check_days(csv->spec, m, &opening->reading.days[m]);
        const uint64_t span =
            (uint64_t)opening->reading.highest[m] - (uint64_t)opening->reading.lowest[m] + 1;

        if (item->rule == SLC_CSV_STRINGS) {
            csv->dims[m] = slc_dictionary_count(csv->dictionaries[m]);
            opening->report->spooled_bytes += slc_dictionary_bytes(csv->dictionaries[m]);
        } else if (slc_csv_is_consecutive(item)) {
            csv->lowest[m] = opening->reading.lowest[m];
            csv->dims[m] = span;
            status = slc_csv_check_bins(item, span, opening->reading.table.name, err);
        } else {
            csv->dims[m] = item->rule == SLC_CSV_TIME ? slc_time_cycle(item->unit)
                                                      : (uint64_t)opening->reading.highest[m] + 1;
        }
        if (slc_csv_is_named(item, csv->dims[m])) {
            named = slc_max_u64(named, csv->dims[m]);
        }
    }
    opening->report->names_bytes = slc_names_memory_bytes(named);
    return status;
}

/* Opens the temporary file of rows as a binary tensor. The function owns the spool from now on. */
static enum slc_status open_rows(struct opening *opening,
                                 struct slc_text_header *header,
                                 struct slc_row_source **source,
                                 struct slc_error *err)
{
    const struct slc_csv *csv = opening->csv;
    const unsigned order = csv->spec->order;
    const uint64_t nnz = opening->report->rows - opening->report->skipped;
    struct slc_spool *spool = opening->reading.spool;
    struct slc_binary binary = {
        .dialect = SLC_DIALECT_CSV, .order = order, .has_dims = true, .nnz = nnz, .band_count = 1};

    opening->reading.spool = NULL;
    binary.bands[0] = (struct slc_band){.view = {.files = csv->files,
                                                 .fd = slc_spool_fd(spool),
                                                 .name = opening->reading.table.name,
                                                 .bytes = slc_spool_bytes(spool)},
                                        .record_bytes = (uint32_t)opening->reading.table.row_bytes};
    for (unsigned m = 0; m <= order; m++) {
        binary.fields[m] =
            (struct slc_field){.kind = m < order ? SLC_FIELD_UNSIGNED : SLC_FIELD_FLOAT,
                               .bytes = opening->reading.table.widths[m],
                               .offset = opening->reading.table.offsets[m],
                               .origin = m < order ? (uint64_t)csv->lowest[m] : 0,
                               .labels = m < order && csv->dictionaries[m] != NULL
                                             ? slc_dictionary_labels(csv->dictionaries[m])
                                             : NULL};
    }
    memcpy(binary.dims, csv->dims, sizeof binary.dims);
    *header = (struct slc_text_header){.dialect = SLC_DIALECT_CSV,
                                       .order = order,
                                       .has_dims = true,
                                       .has_nnz = true,
                                       .nnz = nnz,
                                       .has_values = true};
    memcpy(header->dims, csv->dims, sizeof header->dims);
    return slc_binary_source_open(&binary, spool, opening->reading.table.name,
                                  opening->reading.stored_bytes, header, source, err);
}

void slc_csv_divide(const struct slc_csv_request *request,
                    unsigned workers,
                    uint64_t *text_bytes,
                    uint64_t *left_bytes)
{
    const struct slc_csv_spec *spec = request->spec;
    const uint64_t memory_bytes = request->memory_bytes - (workers - 1) * slc_csv_worker_bytes();
    unsigned strings = 0;

    for (unsigned m = 0; m < spec->order; m++) {
        strings += spec->items[m].rule == SLC_CSV_STRINGS;
    }
    *text_bytes = strings > 0 ? memory_bytes / 4 / strings : 0;
    *text_bytes = slc_max_u64(*text_bytes, SLC_DICTIONARY_FIXED_BYTES);
    *left_bytes = memory_bytes / 4 * 3;
}

/* Creates the temporary file and allocates the memory for reading the table. */
static enum slc_status prepare_reading(struct opening *opening, struct slc_error *err)
{
    const struct slc_csv_spec *spec = opening->request->spec;
    struct slc_dictionary_options options = {.spool = opening->request->spool,
                                             .left_bytes = &opening->left_bytes};
    enum slc_status status = slc_spool_create(&options.spool, &opening->reading.spool, err);

    slc_csv_divide(opening->request, opening->reading.workers, &options.text_bytes,
                   &opening->left_bytes);
    for (unsigned m = 0; m < spec->order && status == SLC_OK; m++) {
        if (spec->items[m].rule == SLC_CSV_STRINGS) {
            status = slc_dictionary_create(&options, &opening->csv->dictionaries[m], err);
        }
    }
    return status;
}

unsigned slc_csv_workers(const struct slc_csv_request *request)
{
    const uint64_t most = 1 + request->memory_bytes / 4 / slc_csv_worker_bytes();

    return (unsigned)slc_min_u64(slc_max_u64(request->threads, 1), most);
}

enum slc_status slc_csv_open(const struct slc_csv_request *request,
                             struct slc_text_header *header,
                             struct slc_csv **csv,
                             struct slc_row_source **source,
                             struct slc_csv_report *report,
                             struct slc_error *err)
{
    struct opening opening = {.request = request, .report = report};
    struct slc_csv_reading *reading = &opening.reading;
    struct slc_input_info info = {.name = request->name};

    *source = NULL;
    *report = (struct slc_csv_report){.rows = 0};
    opening.csv = *csv = slc_calloc(1, sizeof **csv);
    SLC_TRY(slc_check_memory(*csv != NULL, err, "to read a table"));
    (*csv)->spec = request->spec;
    (*csv)->stop = request->stop;
    (*csv)->files = slc_files_or_system(request->spool.files);
    if (request->feed == NULL) {
        slc_input_info(request->input, &info);
    }
    reading->request = request;
    reading->workers = slc_csv_workers(request);
    reading->stored_bytes = info.stored_bytes;
    slc_csv_table_init(&reading->table, request->spec, info.name);
    slc_csv_lay_out_rows(&reading->table, request->memory_bytes);
    reading->table.dictionaries = (*csv)->dictionaries;
    reading->table.feed = request->feed;
    enum slc_status status = prepare_reading(&opening, err);
    SLC_THEN(status, recall_modes(&opening, err));
    SLC_THEN(status, slc_csv_read(reading, slc_csv_bind_columns, err));
    if (status == SLC_OK) {
        add_old_bins(&opening);
        report->rows = reading->rows;
        report->skipped = reading->skipped;
        report->text_bytes = request->feed == NULL ? reading->text_bytes : 0;
        status = set_modes(&opening, err);
    }
    if (status == SLC_OK) {
        report->spooled_bytes += slc_spool_bytes(reading->spool);
        status = open_rows(&opening, header, source, err);
    }
    slc_spool_destroy(reading->spool);
    return status;
}

void slc_csv_destroy(struct slc_csv *csv)
{
    for (unsigned m = 0; csv != NULL && m < SLC_MAX_ORDER; m++) {
        slc_dictionary_destroy(csv->dictionaries[m]);
    }
    slc_free(csv);
}
