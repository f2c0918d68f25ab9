/* Reads text tensors: recognizes the dialect from the first lines, and parses rows. Only
 * slc_text_source_open uses a file; convert/ingest/input/input.h delivers its bytes. */
#ifndef SLC_CONVERT_TEXT_H
#define SLC_CONVERT_TEXT_H

#include "base/error/error.h"
#include "convert/ingest/input/row_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Recognizes the dialect and reads the header from the first `bytes` bytes of the input. `complete`
 * is true if these bytes are the whole input. `forced` is the dialect that the user chose, or
 * SLC_DIALECT_AUTO. Errors: SLC_ERR_INPUT with line and column; the caller adds the file. */
enum slc_status slc_text_sniff(const char *text,
                               size_t bytes,
                               bool complete,
                               enum slc_dialect forced,
                               struct slc_text_header *header,
                               struct slc_error *err) SLC_NODISCARD;

/* Parses the rows in [*position, bytes) of `text` until the text ends or `rows` is full, and
 * advances *position to the next unparsed line. The text starts with a whole line and ends with a
 * line end, or at the end of the input, where the last newline may be missing. CRLF, blanks and
 * tabs are accepted. Errors: SLC_ERR_INPUT; err->line counts from 1, starting with the first line
 * that rows->lines counts; err->column counts from 1. There are messages for a wrong number of
 * fields, letters, the sign of an index, overflow of an index or value, NaN, infinity and a zero
 * byte. Each message states the text found and the text expected. */
enum slc_status slc_text_parse_rows(const struct slc_text_header *header,
                                    const char *text,
                                    size_t bytes,
                                    size_t *position,
                                    struct slc_text_rows *rows,
                                    struct slc_error *err) SLC_NODISCARD;

/* Returns the column (from 1) of field `field_index` (from 0) of the line that starts at
 * `line_start`. */
uint64_t
slc_text_field_column(const char *text, size_t bytes, size_t line_start, unsigned field_index);

/* Creates a row source of the text of `input`. Borrows the input and the header. Ownership:
 * release with slc_row_source_close. */
enum slc_status slc_text_source_open(struct slc_input *input,
                                     const struct slc_text_header *header,
                                     struct slc_row_source **source,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
