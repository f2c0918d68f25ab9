#include "convert/ingest/csv/csv_record.h"

#include <string.h>

struct scan {
    const char *at, *end;
    bool last;
    char delimiter;
    uint32_t line;
    const char *line_start;
};

/* Reads a quoted field after its opening quote. */
static enum slc_csv_scan quoted(struct scan *scan, struct slc_csv_field *field)
{
    const char *from = scan->at;

    for (;;) {
        const char *quote = memchr(scan->at, '"', (size_t)(scan->end - scan->at));
        const char *stop = quote != NULL ? quote : scan->end;

        for (const char *line = scan->at;
             (line = memchr(line, '\n', (size_t)(stop - line))) != NULL; line++) {
            scan->line++;
            scan->line_start = line + 1;
        }
        if (quote == NULL || (quote + 1 == scan->end && !scan->last)) {
            return scan->last ? SLC_CSV_UNCLOSED : SLC_CSV_PARTIAL;
        }
        scan->at = quote + 1;
        if (scan->at == scan->end || *scan->at != '"') {
            field->text = from;
            field->bytes = (size_t)(quote - from);
            return SLC_CSV_RECORD;
        }
        field->doubled = true;
        scan->at++;
    }
}

/* Reads a field without quotes. */
static void plain(struct scan *scan, struct slc_csv_field *field)
{
    const char *at = scan->at;

    while (at < scan->end && *at != scan->delimiter && *at != '\n') {
        at++;
    }
    field->text = scan->at;
    field->bytes = (size_t)(at - scan->at);
    if ((at == scan->end || *at == '\n') && at > scan->at && at[-1] == '\r') {
        field->bytes--;
    }
    scan->at = at;
}

enum slc_csv_scan slc_csv_scan(const char *text,
                               size_t bytes,
                               bool last,
                               char delimiter,
                               size_t *position,
                               struct slc_csv_field *fields,
                               unsigned *count,
                               uint32_t *lines)
{
    struct scan scan = {.at = text + *position,
                        .end = text + bytes,
                        .last = last,
                        .delimiter = delimiter,
                        .line_start = text + *position};

    for (*count = 0; *count < SLC_CSV_COLUMNS_MAX;) {
        struct slc_csv_field *field = &fields[(*count)++];

        *field = (struct slc_csv_field){.line = scan.line,
                                        .column = (uint32_t)(scan.at - scan.line_start) + 1};
        if (scan.at < scan.end && *scan.at == '"') {
            scan.at++;
            enum slc_csv_scan fault = quoted(&scan, field);
            if (fault != SLC_CSV_RECORD) {
                return fault;
            }
            /* Remove the CR of a line end. A single CR at the end of the input is also a line
             * end. */
            if (scan.at < scan.end && *scan.at == '\r' &&
                (scan.at + 1 < scan.end ? scan.at[1] == '\n' : last)) {
                scan.at++;
            }
        } else {
            plain(&scan, field);
        }
        if (scan.at == scan.end || *scan.at == '\n') {
            if (scan.at == scan.end && !last) {
                return SLC_CSV_PARTIAL;
            }
            *lines = scan.line + (scan.at < scan.end);
            *position = (size_t)(scan.at - text) + (scan.at < scan.end);
            return SLC_CSV_RECORD;
        }
        if (*scan.at != delimiter) {
            return *scan.at == '\r' && scan.at + 1 == scan.end ? SLC_CSV_PARTIAL
                                                               : SLC_CSV_AFTER_QUOTE;
        }
        scan.at++;
    }
    return SLC_CSV_WIDE;
}

size_t slc_csv_unquote(const struct slc_csv_field *field, char *to, size_t capacity)
{
    size_t bytes = 0;

    for (size_t i = 0; i < field->bytes && bytes < capacity; i++) {
        to[bytes++] = field->text[i];
        i += field->doubled && field->text[i] == '"';
    }
    return bytes;
}
