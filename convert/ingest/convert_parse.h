/* Parser threads of a conversion, which parse pieces of rows and pass batches of entries to the
 * builder. Internal to convert.c (control flow), convert_parse.c (threads) and convert_piece.c (one
 * piece). */
#ifndef SLC_CONVERT_CONVERT_PARSE_H
#define SLC_CONVERT_CONVERT_PARSE_H

#include "base/memory/memory.h"
#include "convert/build/builder.h"
#include "convert/ingest/input/row_source.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    /* Number of rows per batch, which are parsed, then checked, then passed to the builder. A batch
     * has 320 KiB at order 4, which fit in the second-level cache. */
    SLC_BATCH_ROWS = 8192
};

/* State of one parser thread. */
struct slc_parser {
    struct slc_buffer buffer; /* memory of all arrays below */
    struct slc_text_rows rows;
    /* arrays of 2 * SLC_BATCH_ROWS for a batch of a symmetric matrix with mirrored entries */
    uint64_t *mirror_coords[2];
    double *mirror_values;
    /* number of entries of the current piece so far, including mirrored entries */
    uint32_t piece_entries;
    uint64_t row_count;
    uint64_t line_count;
    uint64_t entry_count;
    /* hash of all entries of this parser, if hashes_content is set (slc_parse_content) */
    uint64_t content;
    uint64_t smallest[SLC_MAX_ORDER]; /* smallest index per mode in the rows of this parser */
    uint64_t largest[SLC_MAX_ORDER];
    double parse_seconds;
    double scatter_seconds;
};

struct slc_parse_job {
    /* The caller sets the members from here on. */
    struct slc_row_source *source;
    const struct slc_text_header *header;
    struct slc_builder *builder; /* NULL if entries are checked and discarded */
    /* First sequence number of new entries; lower numbers belong to entries of the old store. */
    uint64_t first_sequence;
    bool hashes_content; /* true if slc_parse_content will be called */
    unsigned workers;
    int index_base;                  /* 0 or 1; -1 if unknown until the whole input is read */
    const char *base_reason;         /* reason for the index base if it is known, for messages */
    uint64_t lengths[SLC_MAX_ORDER]; /* mode sizes if declared, otherwise SLC_MAX_MODE_LENGTH */
    bool dims_declared;
    /* workers + 2: one piece per worker, one that the reader fills and one that waits */
    unsigned piece_count;
    struct slc_piece *pieces; /* the first piece holds the beginning of the input */
    struct slc_parser *parsers;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    uint64_t stored_bytes;
    /* request to stop, which is checked before each piece; may be NULL */
    const struct slc_stop *stop;
    bool all_read; /* true if an earlier run read the whole input */
    /* Commits the builder. The builder has received all pieces before piece number `sequence`,
     * which starts after the bytes read so far. */
    enum slc_status (*commit)(struct slc_parse_job *job, uint64_t sequence, struct slc_error *err);

    /* Results. */
    uint64_t row_count;
    uint64_t line_count;
    uint64_t text_bytes;
    uint64_t smallest[SLC_MAX_ORDER]; /* UINT64_MAX without rows */
    uint64_t largest[SLC_MAX_ORDER];
    struct slc_mark zero; /* place of the first index 0, if the index base is unknown */
    /* place of the first index that equals its mode size, if the index base is unknown */
    struct slc_mark at_length;
    double read_seconds;
    double parse_seconds;
    double scatter_seconds;

    struct slc_parse_queue *queue; /* defined in convert_parse.c */
    pthread_mutex_t *lock;         /* lock of the queue, `zero` and `at_length` */
};

/* Sums and ranges over all parsers. */
struct slc_parse_totals {
    uint64_t row_count;
    uint64_t line_count; /* number of lines without those of the header */
    uint64_t smallest[SLC_MAX_ORDER];
    uint64_t largest[SLC_MAX_ORDER];
};
void slc_parse_totals(const struct slc_parse_job *job, struct slc_parse_totals *totals);

/* Returns the hash of the entries of all parsers, computed with the final index base. The hash does
 * not depend on the order of the entries. Stores the number of entries in *entries. Needs:
 * job->hashes_content. */
uint64_t slc_parse_content(const struct slc_parse_job *job, uint64_t *entries);

/* Returns the size in bytes of the arrays of a parser. */
uint64_t slc_parser_bytes(unsigned order, bool symmetric);

/* Allocates the arrays of a parser. Ownership: release with slc_parser_destroy, which accepts an
 * all-zero struct. */
enum slc_status slc_parser_create(struct slc_parser *parser,
                                  unsigned order,
                                  bool symmetric,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_parser_destroy(struct slc_parser *parser);

/* Reads and parses the rest of the input and passes all entries to the builder. Needs: the first
 * piece of the job is filled and its position is set. The calling thread reads; `workers` other
 * threads parse. Errors: the first fault in input order, for any number of threads; SLC_ERR_SYSTEM
 * if a thread cannot be created. */
enum slc_status slc_parse_run(struct slc_parse_job *job, struct slc_error *err) SLC_NODISCARD;

/* Parses and checks one piece and passes its entries to the builder, as worker `worker` of the
 * builder. */
enum slc_status slc_parse_piece(struct slc_parse_job *job,
                                unsigned worker,
                                const struct slc_piece *piece,
                                struct slc_error *err) SLC_NODISCARD;

#endif
