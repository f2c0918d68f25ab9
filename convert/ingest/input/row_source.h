/* Interface of a row source, the input of a conversion. A row source delivers the input in order,
 * in pieces of whole rows, and parses pieces to coordinates and values. Several threads may parse
 * at the same time. The rest of a conversion (threads, index checks, duplicates, commits) is the
 * same for text and binary files.
 *
 * A position in the input is a number of bytes and a number of *lines*. A line is a line of text,
 * or a nonzero of a binary file. */
#ifndef SLC_CONVERT_ROW_SOURCE_H
#define SLC_CONVERT_ROW_SOURCE_H

#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "convert/ingest/input/dialect.h"
#include "convert/ingest/input/input.h"

#include <stdbool.h>
#include <stdint.h>

/* Properties known from the header of a text or binary input or, without a header, from its first
 * row. */
struct slc_text_header {
    enum slc_dialect dialect;
    unsigned order; /* 0 if the input has neither a header nor a row */
    bool has_dims;
    uint64_t dims[SLC_MAX_ORDER];
    bool has_nnz;
    uint64_t nnz;   /* declared number of rows */
    int index_base; /* 0 or 1 if the header states it, otherwise -1 */
    /* True if files of the dialect may start indices at 0 or at 1. Only an index 0, an index equal
     * to its mode size, or the user then determines the index base. */
    bool ambiguous_base;
    bool has_values; /* false for Matrix Market `pattern`, in which every value is 1 */
    int symmetry;    /* Matrix Market: 0 general, 1 symmetric, -1 skew-symmetric */
    /* characters that start a comment line, such as "#", "%" or "/" (for "//") */
    char comment[4];
    uint64_t header_bytes; /* length of the header; rows start after it */
    uint64_t header_lines;
};

/* Rows parsed from one piece. The caller owns the arrays, each with at least `capacity`
 * elements. */
struct slc_text_rows {
    uint32_t capacity;
    uint32_t count;
    uint64_t *coords[SLC_MAX_ORDER]; /* indices as in the input: the index base is not subtracted */
    double *values;
    /* smallest index per mode in the rows so far; UINT64_MAX without rows */
    uint64_t smallest[SLC_MAX_ORDER];
    uint64_t largest[SLC_MAX_ORDER];
    uint64_t lines; /* number of lines parsed, including comments and empty lines */
};

/* Removes the rows and resets their ranges, but not `lines`, which counts all lines so far. */
static inline void slc_text_rows_clear(struct slc_text_rows *rows)
{
    rows->count = 0;
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        rows->smallest[m] = UINT64_MAX;
        rows->largest[m] = 0;
    }
}

enum {
    /* Bytes of one piece, the unit of work of a parser. This is the smallest capacity that
     * slc_input_next accepts. A parser needs a few milliseconds per piece, so the lock of the queue
     * is acquired only a few hundred times per second. Larger pieces would not fit in the cache. */
    SLC_PIECE_BYTES = 2 * SLC_LINE_BYTES_MAX
};

struct slc_piece {
    struct slc_buffer buffer;
    size_t bytes;
    /* byte at which rows start; in the first piece, rows start after the header */
    size_t position;
    uint64_t sequence;     /* number of the piece in input order, from 0 */
    uint64_t offset;       /* number of bytes of the input before this piece */
    uint64_t lines_before; /* number of lines of the input before `position` */
};

/* The first place in the input at which a condition is true. */
struct slc_mark {
    bool set;
    uint64_t sequence; /* number of the piece */
    uint64_t line;
    uint64_t column; /* column in the text; 0 for binary files */
    unsigned mode;
    uint64_t index; /* index as in the input */
};

struct slc_row_source;

struct slc_row_source_ops {
    /* Implements slc_row_source_next. */
    enum slc_status (*next)(struct slc_row_source *source,
                            struct slc_piece *piece,
                            struct slc_error *err);
    /* Implements slc_row_source_go_to. */
    enum slc_status (*go_to)(struct slc_row_source *source,
                             uint64_t offset,
                             uint64_t lines,
                             struct slc_piece *piece,
                             bool *there,
                             struct slc_error *err);
    /* Fills the piece with whole rows, at most `bytes` bytes, that start near byte `offset` of all
     * rows. */
    enum slc_status (*sample)(struct slc_row_source *source,
                              uint64_t offset,
                              size_t bytes,
                              struct slc_piece *piece,
                              struct slc_error *err);
    /* Implements slc_row_source_parse. */
    enum slc_status (*parse)(const struct slc_row_source *source,
                             const struct slc_piece *piece,
                             size_t *position,
                             struct slc_text_rows *rows,
                             struct slc_error *err);
    /* Implements slc_row_source_place. NULL if rows have no columns. */
    void (*place)(const struct slc_row_source *source,
                  const struct slc_piece *piece,
                  size_t begin,
                  size_t end,
                  unsigned mode,
                  struct slc_mark *mark);
    /* Implements slc_row_source_locate_fault. */
    void (*locate_fault)(const struct slc_row_source *source,
                         uint64_t line,
                         uint64_t column,
                         struct slc_error *err);
    uint64_t (*lines)(const struct slc_row_source *source);
    uint64_t (*consumed)(const struct slc_row_source *source);
    void (*close)(struct slc_row_source *source);
};

struct slc_row_source {
    const struct slc_row_source_ops *ops;
    const char *name;                     /* name of the input, for messages */
    const struct slc_text_header *header; /* known properties of all rows */
    /* Bytes of all rows if they can be read at any offset; 0 if rows can only be read
     * sequentially. */
    uint64_t sampled_bytes;
};

/* Frees a row source; accepts NULL. */
static inline void slc_row_source_close(struct slc_row_source *source)
{
    if (source) {
        source->ops->close(source);
    }
}

/* Fills the buffer of a piece with the next rows, and sets its bytes, position and lines_before;
 * bytes is 0 at the end of the input. Threads: one at a time. Errors: those of slc_input_next. */
static inline SLC_NODISCARD enum slc_status
slc_row_source_next(struct slc_row_source *source, struct slc_piece *piece, struct slc_error *err)
{
    return source->ops->next(source, piece, err);
}

/* Advances to byte `offset` of the input, where an earlier run ended a piece after `lines` lines.
 * The buffer of the piece is used for the data before this byte. *there becomes false if no piece
 * ends at this byte. Errors: those of slc_input_next. */
static inline SLC_NODISCARD enum slc_status slc_row_source_go_to(struct slc_row_source *source,
                                                                 uint64_t offset,
                                                                 uint64_t lines,
                                                                 struct slc_piece *piece,
                                                                 bool *there,
                                                                 struct slc_error *err)
{
    return source->ops->go_to(source, offset, lines, piece, there, err);
}

/* Parses rows of a piece, starting at byte *position, until the piece ends or `rows` is full, and
 * advances *position past these rows. Threads: any. Errors: SLC_ERR_INPUT with the position of the
 * faulty row; `rows` then holds the rows before the faulty row. */
static inline SLC_NODISCARD enum slc_status
slc_row_source_parse(const struct slc_row_source *source,
                     const struct slc_piece *piece,
                     size_t *position,
                     struct slc_text_rows *rows,
                     struct slc_error *err)
{
    return source->ops->parse(source, piece, position, rows, err);
}

/* Sets the column of a mark: that of the index of mode `mode` in the last line of bytes [begin,
 * end) of the piece; 0 if rows have no columns. */
static inline void slc_row_source_place(const struct slc_row_source *source,
                                        const struct slc_piece *piece,
                                        size_t begin,
                                        size_t end,
                                        unsigned mode,
                                        struct slc_mark *mark)
{
    mark->column = 0;
    if (source->ops->place != NULL) {
        source->ops->place(source, piece, begin, end, mode, mark);
    }
}

/* Adds the position of a row to a recorded error. */
static inline void slc_row_source_locate_fault(const struct slc_row_source *source,
                                               uint64_t line,
                                               uint64_t column,
                                               struct slc_error *err)
{
    source->ops->locate_fault(source, line, column, err);
}

/* Returns the number of lines in all pieces delivered so far. */
static inline uint64_t slc_row_source_lines(const struct slc_row_source *source)
{
    return source->ops->lines(source);
}

/* Returns the number of stored bytes of the input that were read so far. */
static inline uint64_t slc_row_source_consumed(const struct slc_row_source *source)
{
    return source->ops->consumed(source);
}

#endif
