/*
 * Text tensors: recognizing the dialect from the first lines, and parsing rows. Only the source of
 * rows reads files; convert/ingest/input/input.h delivers the bytes.
 */
#ifndef SLC_CONVERT_TEXT_H
#define SLC_CONVERT_TEXT_H

#include "base/error/error.h"
#include "convert/ingest/input/row_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Recognizes the dialect and reads the header from the first bytes of the input: `bytes` of them,
 * the whole input when `complete`. `forced`: the user's choice, or SLC_DIALECT_AUTO.
 * Errors: SLC_ERR_INPUT with line and column (file is added by the caller).
 */
enum slc_status slc_text_sniff(const char *text,
                               size_t bytes,
                               bool complete,
                               enum slc_dialect forced,
                               struct slc_text_header *header,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Parses rows from [*position, bytes) of `text` until the piece ends or `rows` is full, and
 * advances *position to the next unparsed line. The piece starts at a line start and ends at a line
 * end (or at the end of the input, where a final newline may be missing). CRLF, blanks and tabs are
 * accepted. Errors: SLC_ERR_INPUT; err->line counts from 1 within what `rows->lines` counts,
 * err->column from
 * 1. Wrong number of fields, letters, a sign on an index, index or value overflow, NaN, infinity, a
 * zero byte: each has its own message naming what was found and what is expected.
 */
enum slc_status slc_text_parse_rows(const struct slc_text_header *header,
                                    const char *text,
                                    size_t bytes,
                                    size_t *position,
                                    struct slc_text_rows *rows,
                                    struct slc_error *err) SLC_NODISCARD;

/* The column (from 1) of field `field_index` (from 0) of the line that starts at `line_start`. */
uint64_t
slc_text_field_column(const char *text, size_t bytes, size_t line_start, unsigned field_index);

/* A source of rows of text: what `input` delivers. Borrows both. Owns: slc_row_source_close. */
enum slc_status slc_text_source_open(struct slc_input *input,
                                     const struct slc_text_header *header,
                                     struct slc_row_source **source,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
