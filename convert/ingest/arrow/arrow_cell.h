/* Writes elements of Arrow columns as the fields of a table. */
#ifndef SLC_CONVERT_ARROW_CELL_H
#define SLC_CONVERT_ARROW_CELL_H

#include "convert/ingest/arrow/arrow_batch.h"

/* How a field is written. */
enum slc_arrow_form {
    SLC_ARROW_TEXT,
    SLC_ARROW_VALUE, /* a double in memory format, or text if it is not finite */
    SLC_ARROW_CLOCK  /* struct slc_time in memory format, or text beyond the years 1 to 9999 */
};

/* Returns the form of a column for a mode of times (`times`), or for the value. */
enum slc_arrow_form slc_arrow_form_of(const struct slc_arrow_column *column, bool times);

enum {
    SLC_ARROW_CELL_BYTES = 256,    /* space for a field that is not a string */
    SLC_ARROW_STRING_MAX = 1 << 20 /* longest string */
};

/* A column of a batch that is being written. */
struct slc_arrow_cells {
    const struct slc_arrow_column *column;
    const struct slc_arrow_vector *vector, *dictionary;
    enum slc_arrow_form form;
    struct slc_arrow_offset offset; /* current offset of the zone; all zero at first */
};

/* Writes the elements of `rows` rows of a batch, from row `first` on, to text[*at] up to
 * text[end - 1]; 0 bytes for a null. Stores where each begins and one byte after its end in two
 * elements of `starts`, which has `stride` elements per row. Returns the number of rows written;
 * fewer if there is too little space or, with a fault in `err`, if an element contradicts its type:
 * the strings of an array are not in order, an index is beyond its dictionary, or a time is out of
 * range. */
unsigned slc_arrow_write(struct slc_arrow_cells *cells,
                         const struct slc_arrow_batch *batch,
                         int64_t first,
                         unsigned rows,
                         char *text,
                         size_t *at,
                         size_t end,
                         uint32_t *starts,
                         unsigned stride,
                         struct slc_error *err);

#endif
