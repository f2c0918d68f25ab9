/* Lines and fields of a text tensor, shared by the dialect recognition and the row parser.
 * Blanks are spaces and tabs; a line ends with LF or CR LF, and the last line may lack its end. */
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

/* The content of the line at `p`, without its end, and the start of the next line. */
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

/* Finds the next field, starting at *p, and advances *p past it; false at the end of the line. */
bool slc_text_field_next(const char **p, const char *line_end, struct slc_text_field *field);

/* Number of fields from `p` to the end of the line. */
uint64_t slc_text_field_count(const char *p, const char *line_end);

/* True if the line at `p`, after skipping blanks, starts with the comment characters `comment`. */
bool slc_text_is_comment(const char *comment, const char *p, const char *end);

/* True if the field equals `word` (lower case), ignoring case. */
bool slc_text_field_is(const struct slc_text_field *field, const char *word);

enum { SLC_QUOTE_BYTES = 128 };

/* The field in single quotes for a message, cut after 24 bytes; bytes that are not ASCII text are
 * written as \xNN. */
const char *slc_text_quote(char quoted[SLC_QUOTE_BYTES], const struct slc_text_field *field);

#endif
