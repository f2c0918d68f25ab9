/*
 * Lines and fields of a text tensor, shared by the recognition of dialects and the row parser.
 * Blanks are spaces and tabs; a line ends with LF or CR LF, the last one possibly with neither.
 */
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

/* The content of the line at `p`, without its end, and where the next one starts. */
struct slc_text_line {
    const char *begin;
    const char *end;
    const char *next;
};

struct slc_text_line slc_text_line_at(const char *p, const char *end);

/* A run of bytes that are not blanks. */
struct slc_text_field {
    const char *begin;
    const char *end;
};

/* The next field from *p on; false at the end of the line. Advances *p behind it. */
bool slc_text_field_next(const char **p, const char *line_end, struct slc_text_field *field);

/* Fields left from `p` to the end of the line. */
uint64_t slc_text_field_count(const char *p, const char *line_end);

/* True when the line at `p`, blanks skipped, starts a comment in a dialect with these characters.
 */
bool slc_text_is_comment(const char *comment, const char *p, const char *end);

/* True when the field equals `word` (lower case), whatever its own case. */
bool slc_text_field_is(const struct slc_text_field *field, const char *word);

enum { SLC_QUOTE_BYTES = 128 };

/* The field in single quotes for a message: at most 24 bytes, those that are not ASCII text as
 * \xNN. */
const char *slc_text_quote(char quoted[SLC_QUOTE_BYTES], const struct slc_text_field *field);

#endif
