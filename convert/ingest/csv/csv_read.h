/*
 * The threads that read a table. Each in turn takes the next piece of text, cut behind a record
 * (csv_cut.h), translates it while others do the same with theirs, and waits until all before it
 * is settled to settle it. What is in order is short: the search for quotes, strings that are new,
 * and places in the temporary file, to which rows are written outside of it.
 */
#ifndef SLC_CONVERT_CSV_READ_H
#define SLC_CONVERT_CSV_READ_H

#include "convert/ingest/csv/csv.h"
#include "convert/ingest/csv/csv_rows.h"

struct slc_csv_reading {
    const struct slc_csv_request *request;
    struct slc_csv_table table; /* all but its columns */
    struct slc_spool *spool;    /* gets the rows */
    uint64_t stored_bytes;      /* of the input, for progress */
    unsigned workers;
    /* What comes of it. */
    uint64_t rows, skipped, text_bytes;
    int64_t lowest[SLC_MAX_ORDER], highest[SLC_MAX_ORDER];
};

/* Bytes that each worker but the first takes, whose text goes through the request's room. */
uint64_t slc_csv_worker_bytes(void);

/*
 * Reads the whole input. `header` is called once, with the fields of the first record, and sets the
 * columns. Errors: those of `header`; the first fault of the input, for any number of workers.
 */
enum slc_status slc_csv_read(struct slc_csv_reading *reading,
                             enum slc_status (*header)(struct slc_csv_table *table,
                                                       const struct slc_csv_field *fields,
                                                       unsigned count,
                                                       uint64_t line,
                                                       struct slc_error *err),
                             struct slc_error *err) SLC_NODISCARD;

#endif
