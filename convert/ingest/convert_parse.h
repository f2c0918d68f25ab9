/*
 * The parsing half of a conversion: pieces of rows in, chunks of entries pushed to the builder.
 * Internal to convert/ingest/convert.c (decisions), convert/ingest/convert_parse.c (threads) and
 * convert/ingest/convert_piece.c (what happens to one piece).
 */
#ifndef SLC_CONVERT_CONVERT_PARSE_H
#define SLC_CONVERT_CONVERT_PARSE_H

#include "base/memory/memory.h"
#include "convert/build/builder.h"
#include "convert/ingest/input/row_source.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    /* Rows parsed before they are checked and pushed: 320 KiB at order 4, within a level-2 cache.
     */
    SLC_BATCH_ROWS = 8192
};

/* What one parser thread owns. */
struct slc_parser {
    struct slc_buffer buffer; /* behind all arrays below */
    struct slc_text_rows rows;
    uint64_t *mirror_coords[2]; /* expanded symmetric entries, 2 * SLC_BATCH_ROWS */
    double *mirror_values;
    uint32_t piece_entries; /* of the piece at hand, so far; mirrored ones included */
    uint64_t row_count;
    uint64_t line_count;
    uint64_t entry_count;
    uint64_t content; /* of all entries, where the job asks for it: see slc_parse_content */
    uint64_t smallest[SLC_MAX_ORDER]; /* over all rows this parser saw */
    uint64_t largest[SLC_MAX_ORDER];
    double parse_seconds;
    double scatter_seconds;
};

struct slc_parse_job {
    /* Set before. */
    struct slc_row_source *source;
    const struct slc_text_header *header;
    struct slc_builder *builder; /* NULL: entries are checked and dropped */
    uint64_t first_sequence;     /* of entries: lower ones are those of the store appended to */
    bool tells_content;          /* see slc_parse_content */
    unsigned workers;
    int index_base;                  /* -1: not known before all input is read */
    const char *base_reason;         /* when known */
    uint64_t lengths[SLC_MAX_ORDER]; /* declared, or SLC_MAX_MODE_LENGTH */
    bool dims_declared;
    unsigned piece_count;     /* workers + 2: one being filled, one waiting */
    struct slc_piece *pieces; /* the first holds the start of the input */
    struct slc_parser *parsers;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    uint64_t stored_bytes;
    const struct slc_stop *stop; /* looked at before each piece; may be NULL */
    bool all_read;               /* nothing is left to be read: an earlier run did */
    /* Notes that all before piece `sequence`, which begins behind what was read, is in the builder.
     */
    enum slc_status (*commit)(struct slc_parse_job *job, uint64_t sequence, struct slc_error *err);

    /* Found. */
    uint64_t row_count;
    uint64_t line_count;
    uint64_t text_bytes;
    uint64_t smallest[SLC_MAX_ORDER]; /* UINT64_MAX without rows */
    uint64_t largest[SLC_MAX_ORDER];
    struct slc_mark zero;      /* first index 0, where the base is not known */
    struct slc_mark at_length; /* first index equal to its mode's length, likewise */
    double read_seconds;
    double parse_seconds;
    double scatter_seconds;

    struct slc_parse_queue *queue; /* convert_parse.c */
    pthread_mutex_t *lock;         /* the queue's; of marks, too */
};

/* What all parsers saw so far, added up. */
struct slc_parse_totals {
    uint64_t row_count;
    uint64_t line_count; /* without the header's */
    uint64_t smallest[SLC_MAX_ORDER];
    uint64_t largest[SLC_MAX_ORDER];
};
void slc_parse_totals(const struct slc_parse_job *job, struct slc_parse_totals *totals);

/*
 * What tells the entries that all parsers saw from others, in whatever order they came, under the
 * index base that they turned out to have; and how many they are. Needs: job->tells_content.
 */
uint64_t slc_parse_content(const struct slc_parse_job *job, uint64_t *entries);

/* Bytes of a parser's arrays. */
uint64_t slc_parser_bytes(unsigned order, bool symmetric);

/* Owns: slc_parser_destroy, which takes an all-zero struct. */
enum slc_status slc_parser_create(struct slc_parser *parser,
                                  unsigned order,
                                  bool symmetric,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_parser_destroy(struct slc_parser *parser);

/*
 * Reads and parses the rest of the input and pushes all of it. The job's first piece is filled and
 * has its position set; the calling thread reads, `workers` more parse.
 * Errors: the first fault in the order of the input, whatever the threads; SLC_ERR_SYSTEM without
 * threads.
 */
enum slc_status slc_parse_run(struct slc_parse_job *job, struct slc_error *err) SLC_NODISCARD;

/* Parses, checks and pushes one piece as worker `worker` of the builder. */
enum slc_status slc_parse_piece(struct slc_parse_job *job,
                                unsigned worker,
                                const struct slc_piece *piece,
                                struct slc_error *err) SLC_NODISCARD;

#endif
