
#include "convert/ingest/csv/csv_index.h"

#include <string.h>

/* Returns the position after the closing quote of the field whose text begins at `at`; NULL if the
 * text has no closing quote. */
static const char *closed(const char *at, const char *end)
{
    for (;;) {
        const char *quote = memchr(at, '"', (size_t)(end - at));

        if (quote == NULL || quote + 1 == end) {
            return NULL;
        }
        if (quote[1] != '"') {
            return quote + 1;
        }
        at = quote + 2;
    }
}

/* Finds the end of the last whole record. Follows all quotes from the start of a record. */
static size_t cut_slowly(const char *text, size_t bytes, char delimiter)
{
    const char *at = text, *end = text + bytes, *whole = text;

    while (at != NULL && at < end) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        const char *stop = quote != NULL ? quote : end;
        const char *line = memrchr(at, '\n', (size_t)(stop - at));

        whole = line != NULL ? line + 1 : whole;
        if (quote == NULL) {
            break;
        }
        /* A quote that is not at the start of a field is an ordinary character. */
        at = quote == text || quote[-1] == delimiter || quote[-1] == '\n' ? closed(quote + 1, end)
                                                                          : quote + 1;
    }
    return (size_t)(whole - text);
}

size_t slc_csv_cut(const char *text, size_t bytes, char delimiter)
{
    const char *quote = memchr(text, '"', bytes);
    const char *line = memrchr(text, '\n', quote != NULL ? (size_t)(quote - text) : bytes);
    size_t whole = line != NULL ? (size_t)(line + 1 - text) : 0;
    bool regular = true;

    if (quote != NULL) {
        whole += slc_csv_last_by(NULL)(text + whole, bytes - whole, delimiter, &regular);
    }
    /* If the text after `whole` is irregular, search it slowly. If it is faulty, the cut may be
     * anywhere after the fault, because the fault is reported when its record is read. */
    return regular ? whole : whole + cut_slowly(text + whole, bytes - whole, delimiter);
}
