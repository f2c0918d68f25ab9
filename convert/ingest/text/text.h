/*
 * Text tensors: recognizing the dialect from the first lines, and parsing rows. Nothing here reads
 * files; convert/ingest/input/input.h delivers the bytes.
 */
#ifndef SLC_CONVERT_TEXT_H
#define SLC_CONVERT_TEXT_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "convert/ingest/convert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest line accepted: no dialect needs more than 16 indices and a value. */
enum { SLC_LINE_BYTES_MAX = 1 << 20 };

/* What the header (or, without one, the first row) says. */
struct slc_text_header {
    enum slc_dialect dialect;
    unsigned order; /* 0: neither a header nor a row, only comments or nothing */
    bool has_dims;
    uint64_t dims[SLC_MAX_ORDER];
    bool has_nnz;
    uint64_t nnz;        /* rows declared */
    int index_base;      /* 0 or 1 where the header states it, -1 where it does not */
    bool ambiguous_base; /* the dialect exists in both bases: only an index 0 or the user decides */
    bool has_values;     /* false: Matrix Market `pattern`, every value is 1 */
    int symmetry;        /* Matrix Market: 0 general, 1 symmetric, -1 skew-symmetric */
    char comment[3];     /* characters that start a comment line, e.g. "#", "%", "/" (as "//") */
    uint64_t header_bytes; /* rows start here */
    uint64_t header_lines;
};

/* The base by convention, where neither the header nor the indices tell: 0 for GenTen and
 * binary formats, else 1. */
unsigned slc_dialect_base(enum slc_dialect dialect);

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

/* Rows parsed from one piece of text; arrays of at least `capacity` entries, the caller's. */
struct slc_text_rows {
    uint32_t capacity;
    uint32_t count;
    uint64_t *coords[SLC_MAX_ORDER]; /* exactly as written: the base is not yet subtracted */
    double *values;
    uint64_t smallest[SLC_MAX_ORDER]; /* over the rows so far; UINT64_MAX when none */
    uint64_t largest[SLC_MAX_ORDER];
    uint64_t lines; /* lines consumed, comments and empty ones included */
};

/* Forgets the rows and their ranges; `lines`, which counts on, stays. */
void slc_text_rows_clear(struct slc_text_rows *rows);

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

/*
 * Parses a decimal floating-point number, correctly rounded, independent of the locale, from
 * [text, end). Returns the first byte after it, or NULL when there is none. Fast path for up to 19
 * digits and exponents within +-22, strtod's result always.
 */
const char *slc_parse_f64(const char *text, const char *end, double *value);

#endif
