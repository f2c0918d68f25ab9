/* Finds lines and fields of a text tensor, for the recognition of dialects and the row parser.
 * Blanks are spaces and tabs. A line ends with LF or CR LF; the line end of the last line may be
 * missing. */
#ifndef SLC_CONVERT_TEXT_SCAN_H
#define SLC_CONVERT_TEXT_SCAN_H

#include "convert/ingest/text/text.h"

#include <stdbool.h>
#include <stddef.h>

static inline const char *slc_skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }
    return p;
}

/* The content of a line, without its line end, and the start of the next line. */
struct slc_text_line {
    const char *begin;
    const char *end;
    const char *next;
};

struct slc_text_line slc_text_line_at(const char *p, const char *end);

/* A field: consecutive bytes that are not blanks. */
struct slc_text_field {
    const char *begin;
    const char *end;
};

/* Finds the next field, starting at *p, and advances *p past it. Returns false at the end of the
 * line. */
bool slc_text_field_next(const char **p, const char *line_end, struct slc_text_field *field);

/* Returns the number of fields from `p` to the end of the line. */
uint64_t slc_text_field_count(const char *p, const char *line_end);

/* Returns true if a line whose leading blanks end at `p` is a comment. `comment` has the characters
 * that start a comment. */
bool slc_text_is_comment(const char *comment, const char *p, const char *end);

/* Returns true if the field equals `word` (lower case), ignoring case. */
bool slc_text_field_is(const struct slc_text_field *field, const char *word);

enum { SLC_QUOTE_BYTES = 128 };

/* Writes the field in single quotes, for a message, and returns the text. The field is cut after 24
 * bytes; bytes that are not printable ASCII are written as \xNN. */
const char *slc_text_quote(char quoted[SLC_QUOTE_BYTES], const struct slc_text_field *field);

#endif
