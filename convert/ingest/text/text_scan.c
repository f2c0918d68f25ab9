/* Finds lines and fields of a text tensor. Speed is not important here, because the row parser has
 * its own loop over valid rows. */
#include "convert/ingest/text/text_scan.h"

#include <string.h>

enum { QUOTED_BYTES_MAX = 24 };

struct slc_text_line slc_text_line_at(const char *p, const char *end)
{
    const char *newline = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    struct slc_text_line line = {p, newline ? newline : end, newline ? newline + 1 : end};

    if (line.end > line.begin && line.end[-1] == '\r') {
        line.end--;
    }
    return line;
}

bool slc_text_field_next(const char **p, const char *line_end, struct slc_text_field *field)
{
    const char *q = slc_skip_blanks(*p, line_end);

    field->begin = q;
    while (q < line_end && *q != ' ' && *q != '\t') {
        q++;
    }
    field->end = q;
    *p = q;
    return field->end > field->begin;
}

uint64_t slc_text_field_count(const char *p, const char *line_end)
{
    struct slc_text_field field;
    uint64_t count = 0;

    while (slc_text_field_next(&p, line_end, &field)) {
        count++;
    }
    return count;
}

bool slc_text_is_comment(const char *comment, const char *p, const char *end)
{
    if (p >= end || *p == '\0' || !strchr(comment, *p)) {
        return false;
    }
    return *p != '/' || (end - p >= 2 && p[1] == '/');
}

bool slc_text_field_is(const struct slc_text_field *field, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(field->end - field->begin) != length) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        char c = field->begin[i];

        if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        if (c != word[i]) {
            return false;
        }
    }
    return true;
}

const char *slc_text_quote(char quoted[SLC_QUOTE_BYTES], const struct slc_text_field *field)
{
    static const char hex[] = "0123456789abcdef";
    size_t length = 0;
    const char *p = field->begin;

    quoted[length++] = '\'';
    for (; p < field->end && p - field->begin < QUOTED_BYTES_MAX; p++) {
        unsigned char c = (unsigned char)*p;

        if (c >= 0x20 && c < 0x7f) {
            quoted[length++] = (char)c;
        } else {
            quoted[length++] = '\\';
            quoted[length++] = 'x';
            quoted[length++] = hex[c >> 4];
            quoted[length++] = hex[c & 15];
        }
    }
    memcpy(quoted + length, p < field->end ? "'.." : "'", p < field->end ? 4 : 2);
    return quoted;
}
