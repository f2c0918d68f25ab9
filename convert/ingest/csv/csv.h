/*
 * A table (CSV, TSV) as a source of rows. It is read once, by several threads (csv_read.c): of
 * every record the modes' indices and the value go to a temporary file without a name, which then
 * is read like any binary tensor, by several threads, and the strings of columns to dictionaries
 * (csv_names.h). Strings are numbered as they first appear: that takes one pass over the text,
 * which so may be a pipe, needs no sort, and depends on nothing but the input.
 */
#ifndef SLC_CONVERT_CSV_H
#define SLC_CONVERT_CSV_H

#include "convert/ingest/binary/binary.h"
#include "convert/ingest/csv/csv_spec.h"
#include "convert/ingest/input/input.h"
#include "storage/manifest/store.h"

struct slc_csv;

/* A store of a table that more rows go to: its indices keep their numbers and names. */
struct slc_csv_old {
    const char *store; /* the folder */
    const struct slc_manifest *manifest;
    int64_t lowest[SLC_MAX_ORDER]; /* of consecutive bins that of index 0 */
};

struct slc_csv_request {
    const struct slc_csv_spec *spec;
    const struct slc_csv_old *old; /* NULL: the table is all there is */
    struct slc_input *input;
    struct slc_spool_options spool;
    void *room; /* the text goes through it */
    size_t room_bytes;
    uint64_t memory_bytes; /* for dictionaries, and threads beyond the first */
    unsigned threads;      /* that read, where that leaves most of it to dictionaries; at least 1 */
    const struct slc_stop *stop; /* also of slc_csv_attach: SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_csv_report {
    uint64_t rows, skipped; /* of the table, and of these those that lack something */
    uint64_t text_bytes;    /* decompressed */
    uint64_t spooled_bytes;
    uint64_t memory_bytes; /* that the table holds from now on, and its names take at the end */
};

/*
 * Reads the table. Owns: slc_csv_destroy, and slc_row_source_close before. Borrows the spec and
 * the header. Errors: SLC_ERR_INPUT with file, line and column, the column's name and what is
 * there; SLC_ERR_USAGE naming the column nearest to one that is not there; SLC_ERR_BUDGET;
 * SLC_ERR_INPUT where strings cannot be found by the old store's names; those of files.
 */
enum slc_status slc_csv_open(const struct slc_csv_request *request,
                             struct slc_text_header *header,
                             struct slc_csv **csv,
                             struct slc_row_source **source,
                             struct slc_csv_report *report,
                             struct slc_error *err) SLC_NODISCARD;
void slc_csv_destroy(struct slc_csv *csv);

/* Whether a file of that name is a table by convention. */
bool slc_csv_is_name(const char *name);

/* How it was read, for the store's manifest. */
void slc_csv_tell(const struct slc_csv *csv, char text[SLC_TABLE_BYTES]);

/* Names of indices and titles of modes: `attach` of struct slc_builder_options, `csv` its
 * context. */
enum slc_status slc_csv_attach(void *csv,
                               const char *folder,
                               struct slc_manifest *manifest,
                               struct slc_error *err) SLC_NODISCARD;

#endif
