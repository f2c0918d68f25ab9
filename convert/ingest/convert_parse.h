/*
 * Parser threads of a conversion: parse pieces of rows and push chunks of entries to the builder.
 * Internal to convert.c (control flow), convert_parse.c (threads) and convert_piece.c (one piece).
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
    /* Rows parsed before they are checked and pushed: 320 KiB at order 4, which fit the level-2
     * cache. */
    SLC_BATCH_ROWS = 8192
};

/* State of one parser thread. */
struct slc_parser {
    struct slc_buffer buffer; /* memory of all arrays below */
    struct slc_text_rows rows;
    uint64_t *mirror_coords[2]; /* expanded symmetric entries, 2 * SLC_BATCH_ROWS */
    double *mirror_values;
    uint32_t piece_entries; /* entries of the current piece so far, including mirrored entries */
    uint64_t row_count;
    uint64_t line_count;
    uint64_t entry_count;
    uint64_t content; /* hash of all entries if the job needs it: see slc_parse_content */
    uint64_t smallest[SLC_MAX_ORDER]; /* over all rows of this parser */
    uint64_t largest[SLC_MAX_ORDER];
    double parse_seconds;
    double scatter_seconds;
};

struct slc_parse_job {
    /* Set by the caller. */
    struct slc_row_source *source;
    const struct slc_text_header *header;
    struct slc_builder *builder; /* NULL: entries are checked and discarded */
    /* First sequence of new entries; lower sequences belong to the old store. */
    uint64_t first_sequence;
    bool hashes_content; /* see slc_parse_content */
    unsigned workers;
    int index_base;                  /* -1: unknown until all input is read */
    const char *base_reason;         /* reason for the base, once it is known */
    uint64_t lengths[SLC_MAX_ORDER]; /* mode sizes: declared, or SLC_MAX_MODE_LENGTH */
    bool dims_declared;
    unsigned piece_count; /* workers + 2: one piece per worker, one being filled and one waiting */
    struct slc_piece *pieces; /* the first holds the start of the input */
    struct slc_parser *parsers;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    uint64_t stored_bytes;
    const struct slc_stop *stop; /* checked before each piece; may be NULL */
    bool all_read;               /* an earlier run read the whole input */
    /* Commits the builder, which has received all pieces before piece `sequence`. That piece starts
     * after the bytes read so far. */
    enum slc_status (*commit)(struct slc_parse_job *job, uint64_t sequence, struct slc_error *err);

    /* Results. */
    uint64_t row_count;
    uint64_t line_count;
    uint64_t text_bytes;
    uint64_t smallest[SLC_MAX_ORDER]; /* UINT64_MAX without rows */
    uint64_t largest[SLC_MAX_ORDER];
    struct slc_mark zero;      /* first index 0, if the base is unknown */
    struct slc_mark at_length; /* first index equal to its mode size, if the base is unknown */
    double read_seconds;
    double parse_seconds;
    double scatter_seconds;

    struct slc_parse_queue *queue; /* convert_parse.c */
    pthread_mutex_t *lock;         /* lock of the queue and of the marks */
};

/* Totals over all parsers. */
struct slc_parse_totals {
    uint64_t row_count;
    uint64_t line_count; /* without the lines of the header */
    uint64_t smallest[SLC_MAX_ORDER];
    uint64_t largest[SLC_MAX_ORDER];
};
void slc_parse_totals(const struct slc_parse_job *job, struct slc_parse_totals *totals);

/* Content hash of the entries of all parsers under the final index base. It does not depend on the
 * order of the entries. *entries: number of entries. Needs: job->hashes_content. */
uint64_t slc_parse_content(const struct slc_parse_job *job, uint64_t *entries);

/* Bytes of a parser's arrays. */
uint64_t slc_parser_bytes(unsigned order, bool symmetric);

/* Owns: slc_parser_destroy, which accepts an all-zero struct. */
enum slc_status slc_parser_create(struct slc_parser *parser,
                                  unsigned order,
                                  bool symmetric,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_parser_destroy(struct slc_parser *parser);

/*
 * Reads and parses the rest of the input and pushes all of it. The job's first piece must be filled
 * and its position set. The calling thread reads; `workers` other threads parse. Errors: the first
 * fault in input order, for any number of threads; SLC_ERR_SYSTEM if no thread can be created.
 */
enum slc_status slc_parse_run(struct slc_parse_job *job, struct slc_error *err) SLC_NODISCARD;

/* Parses, checks and pushes one piece as worker `worker` of the builder. */
enum slc_status slc_parse_piece(struct slc_parse_job *job,
                                unsigned worker,
                                const struct slc_piece *piece,
                                struct slc_error *err) SLC_NODISCARD;

#endif
