/*
 * A table (CSV, TSV) as a row source. Several threads read the text once (csv_read.c). The indices
 * and the value of each record go to an unnamed temporary file, which is then read like any binary
 * tensor. Strings go to dictionaries (csv_names.h), which number them in order of first appearance.
 * This needs one pass over the text, which may be a pipe, and no sort. The numbers depend only on
 * the input.
 */
#ifndef SLC_CONVERT_CSV_H
#define SLC_CONVERT_CSV_H

#include "convert/ingest/binary/binary.h"
#include "convert/ingest/csv/csv_spec.h"
#include "convert/ingest/input/input.h"
#include "storage/manifest/store.h"

struct slc_csv;

/* The store to which a table is appended: existing indices keep their numbers and names. */
struct slc_csv_old {
    const char *store; /* the folder */
    const struct slc_manifest *manifest;
    int64_t lowest[SLC_MAX_ORDER]; /* for modes of consecutive bins: the bin with index 0 */
};

struct slc_csv_request {
    const struct slc_csv_spec *spec;
    const struct slc_csv_old *old; /* NULL: not an append */
    struct slc_input *input;
    struct slc_spool_options spool;
    void *buffer; /* buffer for the text */
    size_t buffer_bytes;
    uint64_t memory_bytes; /* memory for dictionaries and for threads beyond the first */
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
    /* Held by the table until it is destroyed, and needed at the end to write its names. */
    uint64_t memory_bytes;
};

/*
 * Reads the table. Owns: slc_csv_destroy, after slc_row_source_close. Borrows the spec and the
 * header. Errors: SLC_ERR_INPUT with file, line, column, name of the column and the text found;
 * SLC_ERR_USAGE if a column is missing, naming the most similar column; SLC_ERR_BUDGET;
 * SLC_ERR_INPUT if strings cannot be looked up in the names of the old store; errors of file
 * operations.
 */
enum slc_status slc_csv_open(const struct slc_csv_request *request,
                             struct slc_text_header *header,
                             struct slc_csv **csv,
                             struct slc_row_source **source,
                             struct slc_csv_report *report,
                             struct slc_error *err) SLC_NODISCARD;
void slc_csv_destroy(struct slc_csv *csv);

/* True if the file name has the ending of a table. */
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
