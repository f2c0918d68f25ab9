/* Writes and parses the record of a table in a manifest. Its text is: MISSING ["NULL,.."] HEADER
 * DELIMITER LOWEST,.. "VALUE" COLUMNS. */
#include "convert/ingest/csv/csv_remember.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const missings[] = {"error", "skip", "name"};

struct text {
    char *text;
    size_t bytes;
    bool full;
};

__attribute__((format(printf, 2, 3))) static void
append_text(struct text *to, const char *format, ...)
{
    const size_t capacity = SLC_TABLE_BYTES - to->bytes;
    va_list list;

    va_start(list, format);
    int bytes = vsnprintf(to->text + to->bytes, capacity, format, list);
    va_end(list);
    to->full = to->full || bytes < 0 || (size_t)bytes >= capacity;
    to->bytes += to->full ? 0 : (size_t)bytes;
}

/* Returns true if parsing the text yields the same specification. This is not the case if an item
 * was longer than its buffer. */
static bool is_recalled(const char *text, const struct slc_csv_spec *spec)
{
    struct slc_csv_spec again = {.order = 0};
    int64_t lowest[SLC_MAX_ORDER];
    bool same = slc_csv_recall(text, &again, lowest, NULL) == SLC_OK &&
                slc_csv_spec_hash(&again) == slc_csv_spec_hash(spec);

    for (unsigned m = 0; same && m < spec->order; m++) {
        same = strcmp(again.items[m].column, spec->items[m].column) == 0 &&
               again.items[m].rule == spec->items[m].rule;
    }
    return same;
}

void slc_csv_remember(const struct slc_csv_spec *spec,
                      const int64_t *lowest,
                      char text[SLC_TABLE_BYTES])
{
    struct text to = {.text = text};

    append_text(&to, "%s ", missings[spec->missing]);
    if (spec->null_count > 0) {
        append_text(&to, "\"%s\" ", spec->null);
    }
    append_text(&to, "%s %u ", spec->no_header ? "none" : "header",
                (unsigned)(unsigned char)spec->delimiter);
    for (unsigned m = 0; m < spec->order; m++) {
        append_text(&to, "%s%" PRId64, m > 0 ? "," : "", lowest[m]);
    }
    append_text(&to, " \"");
    for (const char *at = spec->value; *at != '\0'; at++) {
        append_text(&to, *at == '"' ? "\"\"" : "%c", *at);
    }
    append_text(&to, "\" ");
    for (unsigned m = 0; m < spec->order; m++) {
        append_text(&to, "%s%s", m > 0 ? "," : "", spec->items[m].title);
    }
    if (to.full || !is_recalled(text, spec)) {
        text[0] = '\0';
    }
}

/* Advances past a word and the blank after it. Returns false if the text does not start with
 * both. */
static bool skip_word(const char **at, const char *word)
{
    const size_t bytes = strlen(word);
    const bool there = strncmp(*at, word, bytes) == 0 && (*at)[bytes] == ' ';

    *at += there ? bytes + 1 : 0;
    return there;
}

/* Parses a number and the character after it. */
static bool parse_number(const char **at, char stop, int64_t *number)
{
    char *end;

    if (**at != '-' && (**at < '0' || **at > '9')) {
        return false;
    }
    *number = strtoll(*at, &end, 10);
    if (*end != stop) {
        return false;
    }
    *at = end + 1;
    return true;
}

static bool parse_value(const char **at, char value[SLC_CSV_NAME_BYTES])
{
    size_t bytes = 0;

    if (*(*at)++ != '"') {
        return false;
    }
    for (; **at != '\0' && (**at != '"' || (*at)[1] == '"'); (*at)++) {
        if (bytes == SLC_CSV_NAME_BYTES - 1) {
            return false;
        }
        value[bytes++] = **at;
        *at += **at == '"';
    }
    value[bytes] = '\0';
    if (**at != '"' || (*at)[1] != ' ') {
        return false;
    }
    *at += 2;
    return true;
}

enum slc_status
slc_csv_recall(const char *text, struct slc_csv_spec *spec, int64_t *lowest, struct slc_error *err)
{
    const char *at = text;
    int64_t delimiter = 0;
    char null[SLC_CSV_NAME_BYTES] = "";
    unsigned missing = 0, count = 0;

    *spec = (struct slc_csv_spec){.order = 0};
    while (missing < 3 && !skip_word(&at, missings[missing])) {
        missing++;
    }
    spec->missing = (enum slc_csv_missing)missing;
    bool sound = missing < 3 && (*at != '"' || parse_value(&at, null)) &&
                 slc_csv_spec_set_null(spec, null, NULL) == SLC_OK;
    spec->no_header = sound && skip_word(&at, "none");
    sound = sound && (spec->no_header || skip_word(&at, "header")) &&
            parse_number(&at, ' ', &delimiter) && delimiter >= 0 && delimiter < 256 &&
            delimiter != '"' && delimiter != '\n' && delimiter != '\r';
    spec->delimiter = (char)(unsigned char)delimiter;
    while (sound && count < SLC_MAX_ORDER && parse_number(&at, ',', &lowest[count])) {
        count++;
    }
    sound = sound && count < SLC_MAX_ORDER && parse_number(&at, ' ', &lowest[count]) &&
            parse_value(&at, spec->value) && slc_csv_spec_parse(at, spec, NULL) == SLC_OK &&
            spec->order == count + 1;
    return sound ? SLC_OK
                 : slc_fail(err, SLC_ERR_FORMAT,
                            "the record of the table in the store is invalid: '%.60s'", text);
}
