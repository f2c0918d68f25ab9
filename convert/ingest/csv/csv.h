/* Delivers a table (CSV, TSV) as a row source. Several threads read the text once (csv_read.c). The
 * threads write the indices and the value of each record to an unnamed temporary file, which is
 * then read like a binary tensor. Dictionaries (csv_names.h) number strings in order of first
 * appearance, so the numbers depend only on the input. One pass over the text suffices, without a
 * sort, so the text may come from a pipe. */
#ifndef SLC_CONVERT_CSV_H
#define SLC_CONVERT_CSV_H

#include "convert/ingest/binary/binary.h"
#include "convert/ingest/csv/csv_spec.h"
#include "convert/ingest/input/input.h"
#include "storage/manifest/store.h"

struct slc_csv;
struct slc_csv_feed;

/* The store to which a table is appended. Indices of the store keep their numbers and names. */
struct slc_csv_old {
    const char *store; /* path of the folder */
    const struct slc_manifest *manifest;
    /* for modes of consecutive bins: number of the bin that has index 0 */
    int64_t lowest[SLC_MAX_ORDER];
};

struct slc_csv_request {
    const struct slc_csv_spec *spec;
    const struct slc_csv_old *old; /* the old store of an append, otherwise NULL */
    struct slc_input *input;
    const struct slc_csv_feed *feed; /* source of rows that are not text; `input` is then NULL */
    const char *name;                /* name of the table of a feed, for messages */
    struct slc_spool_options spool;
    void *buffer; /* buffer for the text */
    size_t buffer_bytes;
    uint64_t memory_bytes; /* memory for dictionaries and for threads beyond the first */
    /* number of reading threads, at least 1; reduced if the threads would need much of the memory
     * for dictionaries */
    unsigned threads;
    /* request to stop with SLC_ERR_INTERRUPTED, also for slc_csv_attach; may be NULL */
    const struct slc_stop *stop;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_csv_report {
    /* number of rows of the table, and number of rows that were skipped because of missing
     * fields */
    uint64_t rows, skipped;
    uint64_t text_bytes; /* decompressed size of the text */
    uint64_t spooled_bytes;
    uint64_t memory_bytes; /* memory that the table holds until it is destroyed */
    uint64_t names_bytes;  /* additional memory to write its names */
};

/* Reads the table. Borrows the specification and the header. Ownership: release with
 * slc_csv_destroy, called after slc_row_source_close. Errors: SLC_ERR_INPUT for a faulty field,
 * with file, line and column, the name of the table column and the text of the field; SLC_ERR_USAGE
 * if a column is missing, with the most similar column; SLC_ERR_INPUT if the names of the old store
 * do not determine its strings; SLC_ERR_BUDGET; errors of file operations. */
enum slc_status slc_csv_open(const struct slc_csv_request *request,
                             struct slc_text_header *header,
                             struct slc_csv **csv,
                             struct slc_row_source **source,
                             struct slc_csv_report *report,
                             struct slc_error *err) SLC_NODISCARD;
void slc_csv_destroy(struct slc_csv *csv);

/* Returns true if the file name has the suffix of a table. */
bool slc_csv_is_name(const char *name);

/* Describes how the table was read, for the manifest of the store. */
void slc_csv_describe(const struct slc_csv *csv, char text[SLC_TABLE_BYTES]);

/* Writes names of indices and titles of modes to the store. This is the callback `attach` of struct
 * slc_builder_options, with `csv` as context. */
enum slc_status slc_csv_attach(void *csv,
                               const char *folder,
                               struct slc_manifest *manifest,
                               struct slc_error *err) SLC_NODISCARD;

#endif
