/* See sheet_cut.h. */
#include "convert/sheet_cut.h"

#include <string.h>

/* Behind the quote that closes the field whose text begins at `at`; NULL: it is not in sight. */
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

size_t slc_sheet_cut(const char *text, size_t bytes, char delimiter)
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
        /* Only at the beginning of a field it is more than a character. */
        at = quote == text || quote[-1] == delimiter || quote[-1] == '\n' ? closed(quote + 1, end)
                                                                          : quote + 1;
    }
    return (size_t)(whole - text);
}
