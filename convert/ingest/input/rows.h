/* What the header of an input says, and rows parsed from it; of binary formats, too. */
#ifndef SLC_CONVERT_ROWS_H
#define SLC_CONVERT_ROWS_H

#include "base/memory/limits.h"
#include "convert/ingest/input/dialect.h"

#include <stdbool.h>
#include <stdint.h>

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
static inline void slc_text_rows_clear(struct slc_text_rows *rows)
{
    rows->count = 0;
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        rows->smallest[m] = UINT64_MAX;
        rows->largest[m] = 0;
    }
}

#endif
