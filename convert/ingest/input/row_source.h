/*
 * Row source of a conversion. It delivers its input in order, in pieces of whole rows. Several
 * parsers turn the pieces into coordinates and values. All later steps (threads, index checks,
 * duplicates, commits) are the same for text and binary files.
 *
 * Pieces are counted in bytes of rows and in *lines*: lines of text, or nonzeros of a binary file.
 */
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
    unsigned order; /* 0: the input has neither a header nor a row */
    bool has_dims;
    uint64_t dims[SLC_MAX_ORDER];
    bool has_nnz;
    uint64_t nnz;   /* rows declared */
    int index_base; /* 0 or 1 if stated by the header, otherwise -1 */
    /* The dialect exists in both bases; only an index 0 or the user determines the base. */
    bool ambiguous_base;
    bool has_values;       /* false: Matrix Market `pattern`, every value is 1 */
    int symmetry;          /* Matrix Market: 0 general, 1 symmetric, -1 skew-symmetric */
    char comment[3];       /* characters that start a comment line, e.g. "#", "%", "/" (as "//") */
    uint64_t header_bytes; /* rows start here */
    uint64_t header_lines;
};

/* Rows parsed from one piece. The caller owns the arrays of at least `capacity` entries. */
struct slc_text_rows {
    uint32_t capacity;
    uint32_t count;
    uint64_t *coords[SLC_MAX_ORDER]; /* exactly as written: the base is not yet subtracted */
    double *values;
    uint64_t smallest[SLC_MAX_ORDER]; /* over the rows so far; UINT64_MAX when empty */
    uint64_t largest[SLC_MAX_ORDER];
    uint64_t lines; /* lines consumed, including comments and empty lines */
};

/* Removes the rows and resets their ranges, but keeps `lines`, a running count. */
static inline void slc_text_rows_clear(struct slc_text_rows *rows)
{
    rows->count = 0;
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        rows->smallest[m] = UINT64_MAX;
        rows->largest[m] = 0;
    }
}

enum {
    /*
     * Bytes of one piece, the unit of work of a parser: the smallest capacity that slc_input_next
     * accepts. A parser needs a few milliseconds per piece, so the queue's lock is acquired only a
     * few hundred times per second. Larger pieces would not fit the cache.
     */
    SLC_PIECE_BYTES = 2 * SLC_LINE_BYTES_MAX
};

struct slc_piece {
    struct slc_buffer buffer;
    size_t bytes;
    size_t position;       /* where rows start: after the header in the first piece */
    uint64_t sequence;     /* 0, 1, 2 .. in input order */
    uint64_t offset;       /* bytes of the input before this piece */
    uint64_t lines_before; /* lines of the input before `position` */
};

/* The first place in the input where a condition was met. */
struct slc_mark {
    bool set;
    uint64_t sequence; /* of the piece */
    uint64_t line;
    uint64_t column; /* column in the text; 0 for binary files */
    unsigned mode;
    uint64_t index; /* as written */
};

struct slc_row_source;

struct slc_row_source_ops {
    /* Fills the piece's buffer, bytes, position and lines_before; bytes is 0 at the end. */
    enum slc_status (*next)(struct slc_row_source *source,
                            struct slc_piece *piece,
                            struct slc_error *err);
    /* As slc_row_source_go_to. */
    enum slc_status (*go_to)(struct slc_row_source *source,
                             uint64_t offset,
                             uint64_t lines,
                             struct slc_piece *piece,
                             bool *there,
                             struct slc_error *err);
    /* Fills the piece with whole rows, at most `bytes`, from around byte `offset` of all rows. */
    enum slc_status (*sample)(struct slc_row_source *source,
                              uint64_t offset,
                              size_t bytes,
                              struct slc_piece *piece,
                              struct slc_error *err);
    /* As slc_row_source_parse. */
    enum slc_status (*parse)(const struct slc_row_source *source,
                             const struct slc_piece *piece,
                             size_t *position,
                             struct slc_text_rows *rows,
                             struct slc_error *err);
    /* As slc_row_source_place. */
    void (*place)(const struct slc_row_source *source,
                  const struct slc_piece *piece,
                  size_t begin,
                  size_t end,
                  unsigned mode,
                  struct slc_mark *mark);
    /* As slc_row_source_locate_fault. */
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
    const char *name;                     /* for messages */
    const struct slc_text_header *header; /* known properties of all rows */
    /* Bytes of rows if they can be read at any offset; 0: sequential reads only. */
    uint64_t sampled_bytes;
};

/* Accepts NULL. */
static inline void slc_row_source_close(struct slc_row_source *source)
{
    if (source) {
        source->ops->close(source);
    }
}

/* Fills a piece with the next rows: bytes, position and lines_before; bytes is 0 at the end.
 * Threads: one at a time. Errors: as slc_input_next. */
static inline SLC_NODISCARD enum slc_status
slc_row_source_next(struct slc_row_source *source, struct slc_piece *piece, struct slc_error *err)
{
    return source->ops->next(source, piece, err);
}

/*
 * Advances to byte `offset` of the input, which is after `lines` lines and where an earlier run
 * ended a piece. The piece's buffer is scratch for data read on the way. *there is false if no
 * piece ends there. Errors: as slc_input_next.
 */
static inline SLC_NODISCARD enum slc_status slc_row_source_go_to(struct slc_row_source *source,
                                                                 uint64_t offset,
                                                                 uint64_t lines,
                                                                 struct slc_piece *piece,
                                                                 bool *there,
                                                                 struct slc_error *err)
{
    return source->ops->go_to(source, offset, lines, piece, there, err);
}

/*
 * Parses rows of a piece from byte *position until the piece ends or `rows` is full, and advances
 * *position past them. Threads: any. Errors: SLC_ERR_INPUT with the position of the faulty row;
 * `rows` then holds the rows before the faulty row.
 */
static inline SLC_NODISCARD enum slc_status
slc_row_source_parse(const struct slc_row_source *source,
                     const struct slc_piece *piece,
                     size_t *position,
                     struct slc_text_rows *rows,
                     struct slc_error *err)
{
    return source->ops->parse(source, piece, position, rows, err);
}

/* Completes a mark whose line is set: finds the index of mode `mode` in the last line of bytes
 * [begin, end) of the piece. */
static inline void slc_row_source_place(const struct slc_row_source *source,
                                        const struct slc_piece *piece,
                                        size_t begin,
                                        size_t end,
                                        unsigned mode,
                                        struct slc_mark *mark)
{
    source->ops->place(source, piece, begin, end, mode, mark);
}

/* Adds the place of a row to a recorded error. */
static inline void slc_row_source_locate_fault(const struct slc_row_source *source,
                                               uint64_t line,
                                               uint64_t column,
                                               struct slc_error *err)
{
    source->ops->locate_fault(source, line, column, err);
}

/* Lines of the input in all pieces delivered so far. */
static inline uint64_t slc_row_source_lines(const struct slc_row_source *source)
{
    return source->ops->lines(source);
}

/* Stored bytes of the input read so far. */
static inline uint64_t slc_row_source_consumed(const struct slc_row_source *source)
{
    return source->ops->consumed(source);
}

#endif
