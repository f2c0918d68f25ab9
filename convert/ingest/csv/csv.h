/*
 * A table (CSV, TSV) as a row source. Several threads read the text once (csv_read.c): the indices
 * and the value of each record go to an unnamed temporary file, which is then read like any binary
 * tensor, and strings go to dictionaries (csv_names.h). Strings are numbered in order of first
 * appearance. This needs one pass over the text, which may be a pipe, and no sort, and depends only
 * on the input.
 */
#ifndef SLC_CONVERT_CSV_H
#define SLC_CONVERT_CSV_H

#include "convert/ingest/binary/binary.h"
#include "convert/ingest/csv/csv_spec.h"
#include "convert/ingest/input/input.h"
#include "storage/manifest/store.h"

struct slc_csv;

/* The store that a table is appended to: indices keep their numbers and names. */
struct slc_csv_old {
    const char *store; /* the folder */
    const struct slc_manifest *manifest;
    int64_t lowest[SLC_MAX_ORDER]; /* of consecutive bins: the bin of index 0 */
};

struct slc_csv_request {
    const struct slc_csv_spec *spec;
    const struct slc_csv_old *old; /* NULL: not an append */
    struct slc_input *input;
    struct slc_spool_options spool;
    void *buffer; /* buffer for the text */
    size_t buffer_bytes;
    uint64_t memory_bytes; /* for dictionaries, and threads beyond the first */
    unsigned threads; /* reading threads, at least 1; fewer are used if they would need much of the
                         dictionaries' memory */
    const struct slc_stop *stop; /* also for slc_csv_attach: SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_csv_report {
    uint64_t rows, skipped; /* rows of the table, and rows skipped for missing fields */
    uint64_t text_bytes;    /* decompressed */
    uint64_t spooled_bytes;
    uint64_t memory_bytes; /* held by the table from now on, and needed for its names at the end */
};

/*
 * Reads the table. Owns: slc_csv_destroy, after slc_row_source_close. Borrows the spec and the
 * header. Errors: SLC_ERR_INPUT with file, line, column, name of the column and the text found;
 * SLC_ERR_USAGE naming the column most similar to a missing one; SLC_ERR_BUDGET; SLC_ERR_INPUT if
 * strings cannot be looked up in the names of the old store; those of files.
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

/* Describes how the table was read, for the store's manifest. */
void slc_csv_describe(const struct slc_csv *csv, char text[SLC_TABLE_BYTES]);

/* Writes names of indices and titles of modes: `attach` of struct slc_builder_options, with `csv`
 * as its context. */
enum slc_status slc_csv_attach(void *csv,
                               const char *folder,
                               struct slc_manifest *manifest,
                               struct slc_error *err) SLC_NODISCARD;

#endif
